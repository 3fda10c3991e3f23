package shaper

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestLeakyBucketSpacesExactly(t *testing.T) {
	random := seeded(t)
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range everyRate {
			b := NewLeakyBucket(rate, 1<<40)
			var sum int64
			for range 200 {
				n := logUniform(random, 1<<20)
				r, err := b.Offer(int(n))
				if err != nil {
					t.Fatal(err)
				}
				if got, want := r.Delay(), timeToEarn(rate, sum, 0); got != want {
					t.Fatalf("%v: behind %d bytes the delay is %v, want %v", rate, sum, got, want)
				}
				sum += n
			}
		}
	})
}

func TestLeakyBucketEarnsNothingFromQuietTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range everyRate {
			b := NewLeakyBucket(rate, MiB)
			for range 3 {
				time.Sleep(time.Hour + 1)
				l := timeline{start: time.Now()}
				for _, name := range []string{"a", "b", "c"} {
					l.line(t.Context(), b, name, 1000)
				}
				time.Sleep(time.Minute)
				l.expect(t, []string{"a", "b", "c"}, 0, timeToEarn(rate, 1000, 0), timeToEarn(rate, 2000, 0))
			}
		}
	})
}

func TestLeakyBucketBoundsEveryWindow(t *testing.T) {
	random := seeded(t)
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range everyRate {
			b := NewLeakyBucket(rate, 1<<40)
			inNanosecond, _ := earn(rate, 1, perByte-1) // whose end is when a turn comes that falls into it
			p := passed{rate: rate, burst: 1500 + Size(inNanosecond)}
			start := time.Now()
			for range 1000 {
				n := int(logUniform(random, 1500))
				if err := b.Wait(t.Context(), n); err != nil {
					t.Fatal(err)
				}
				p.grant(int64(n), time.Since(start))
				if random.IntN(10) == 0 {
					time.Sleep(gap(random, rate, 15_000))
				}
			}
			if p.violations > 0 {
				t.Errorf("%v: %d requests made a window exceed rate·w and one request", rate, p.violations)
			}
		}
	})
}

func TestLeakyBucketDriftsByNoByteInHours(t *testing.T) {
	random := seeded(t)
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range everyRate {
			b := NewLeakyBucket(rate, 1<<50)
			start := time.Now()
			var sum int64
			for time.Since(start) < 3*time.Hour {
				for b.Queued() < Size(rate) { // what takes 8 s to leave
					n := logUniform(random, 2*int64(rate))
					if _, err := b.Offer(int(n)); err != nil {
						t.Fatal(err)
					}
					sum += n
				}
				time.Sleep(time.Duration(random.Int64N(int64(5 * time.Second))))
			}
			left, _ := earn(rate, time.Since(start), 0)
			if got := int64(b.Queued()); got != sum-left || got == 0 {
				t.Errorf("%v in %v: %d bytes are left of %d, want %d", rate, time.Since(start), got, sum, sum-left)
			}
		}
	})
}

func TestLeakyBucketKeepsNoFractionOfAByteWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewLeakyBucket(8*Kbit, 1000) // a byte in a millisecond
		for range 3 {
			for i, want := range []time.Duration{0, sec / 1000} {
				if r, err := b.Offer(1); err != nil || r.Delay() != want {
					t.Errorf("byte %d: %v, want a delay of %v", i, err, want)
				}
			}
			time.Sleep(5 * sec / 2000)
		}
	})
}

func TestLeakyBucketDropsWhatFindsNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewLeakyBucket(8*Kbit, 1000)
		offer := func(n int, want time.Duration) *Reservation {
			t.Helper()
			r, err := b.Offer(n)
			if err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
			if got := r.Delay(); got != want {
				t.Errorf("%d bytes: delay %v, want %v", n, got, want)
			}
			return r
		}
		full := func(n int) {
			t.Helper()
			if _, err := b.Offer(n); !errors.Is(err, ErrQueueFull) {
				t.Errorf("%d bytes: %v, want %v", n, err, ErrQueueFull)
			}
		}
		offer(400, 0)
		second := offer(600, 400*time.Millisecond)
		full(1)
		time.Sleep(sec / 10)
		full(101)
		offer(100, 900*time.Millisecond)
		full(1)
		if got := b.Queued(); got != 1000 {
			t.Errorf("%d bytes are queued, want 1000", got)
		}
		if !second.Cancel() || b.Queued() != 400 {
			t.Errorf("%d bytes are queued after a cancel, want 400", b.Queued())
		}
		offer(600, 400*time.Millisecond)

		var limit *LimitError
		if _, err := b.Offer(1001); !errors.As(err, &limit) || err.Error() != "1001 bytes exceed the queue of 1000b" {
			t.Errorf("more than the queue: %v", err)
		}
		if b.Rate() != 8*Kbit {
			t.Errorf("rate %v", b.Rate())
		}
	})
}

func TestLeakyBucketWaitTakesRoomAndGivesItBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewLeakyBucket(8*Kbit, 1000)
		l := timeline{start: time.Now()}
		ctx, cancel := context.WithTimeout(t.Context(), 3*sec/2)
		defer cancel()
		l.line(t.Context(), b, "a", 1000)
		l.line(ctx, b, "b", 5000)
		l.line(t.Context(), b, "c", 1000)
		time.Sleep(sec / 2)
		if _, err := b.Offer(1); !errors.Is(err, ErrQueueFull) || b.Queued() != 6500 {
			t.Errorf("%d bytes are queued, and one more found %v", b.Queued(), err)
		}
		time.Sleep(time.Minute)
		l.expect(t, []string{"a", "b", "c"}, 0, sec, 6*sec)
	})
}
