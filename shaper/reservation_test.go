package shaper

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// timeline records what happened when, in the virtual time of a synctest bubble.
type timeline struct {
	start time.Time
	mu    sync.Mutex
	what  []string
	when  []time.Duration
}

func (l *timeline) note(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.what, l.when = append(l.what, what), append(l.when, time.Since(l.start))
}

func (l *timeline) expect(t *testing.T, what []string, when ...time.Duration) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.what, what) || !slices.Equal(l.when, when) {
		t.Errorf("%v at %v, want %v at %v", l.what, l.when, what, when)
	}
}

type waits interface {
	Wait(ctx context.Context, n int) error
}

// line starts one Wait after another and notes when each returns; "-" stands before those that got an error.
func (l *timeline) line(ctx context.Context, b waits, name string, n int) {
	go func() {
		if err := b.Wait(ctx, n); err != nil {
			name = "-" + name
		}
		l.note(name)
	}()
	synctest.Wait()
}

const sec = time.Second

func TestWaitServesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewTokenBucket(8*Kbit, 1000) // 1000 bytes a second
		l := timeline{start: time.Now()}
		for i, name := range []string{"a", "b", "c", "d"} {
			l.line(t.Context(), b, name, []int{1000, 500, 1000, 1}[i])
		}
		time.Sleep(time.Minute)
		l.expect(t, []string{"a", "b", "c", "d"}, 0, sec/2, 3*sec/2, 1501*time.Millisecond)
	})
}

func TestWaitForMoreThanTheBurstIsPaidOverTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewTokenBucket(8*Kbit, 1000)
		l := timeline{start: time.Now()}
		l.line(t.Context(), b, "big", 61_000)
		if d := b.RetryAfter(1000); d != 61*sec {
			t.Errorf("after it 1000 bytes are there in %v, want 61s", d)
		}
		time.Sleep(2 * time.Minute)
		l.expect(t, []string{"big"}, time.Minute)
		if got := b.Tokens(); got != 1000 {
			t.Errorf("%d tokens a minute later, want the burst", got)
		}
	})
}

func TestAllowDoesNotOvertakeThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewTokenBucket(8*Kbit, 1000)
		l := timeline{start: time.Now()}
		b.Allow(1000)
		l.line(t.Context(), b, "a", 1000)
		var stolen int
		for range 999 {
			time.Sleep(time.Millisecond)
			if b.Allow(1) {
				stolen++
			}
		}
		if stolen > 0 || b.Tokens() != 0 || !errors.Is(b.Take(1), ErrNoTokens) {
			t.Errorf("%d bytes went by the one who waits; %d tokens, want none", stolen, b.Tokens())
		}
		time.Sleep(10 * time.Millisecond)
		l.expect(t, []string{"a"}, sec)
		if !b.Allow(9) || b.Allow(1) {
			t.Errorf("what was earned since is not there: %d tokens", b.Tokens())
		}
	})
}

func TestCancelledWaitGivesBackExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewTokenBucket(8*Kbit, 1000)
		l := timeline{start: time.Now()}
		b.Allow(1000)
		first, cancelFirst := context.WithCancel(t.Context())
		middle, cancelMiddle := context.WithTimeout(t.Context(), sec/2)
		defer cancelMiddle()
		l.line(first, b, "first", 700)
		l.line(middle, b, "middle", 10_000)
		l.line(t.Context(), b, "last", 1000)
		time.Sleep(600 * time.Millisecond)
		cancelFirst()
		time.Sleep(time.Minute)
		l.expect(t, []string{"-middle", "-first", "last"}, sec/2, 600*time.Millisecond, sec)
	})
}

func TestWaitThatIsOverBeforeItBeginsTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		b, leaky := NewTokenBucket(8*Kbit, 1000), NewLeakyBucket(8*Kbit, 1000)
		if err := b.Wait(ctx, 1); !errors.Is(err, context.Canceled) || b.Tokens() != 1000 {
			t.Errorf("%v, %d tokens left", err, b.Tokens())
		}
		if err := leaky.Wait(ctx, 1); !errors.Is(err, context.Canceled) || leaky.Queued() != 0 {
			t.Errorf("%v, %d bytes queued", err, leaky.Queued())
		}
	})
}

func TestChangeOfRateReachesThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, b := range map[string]interface {
			waits
			SetRate(Rate)
		}{"token": NewTokenBucket(8*Kbit, 1000), "leaky": NewLeakyBucket(8*Kbit, 1000)} {
			l := timeline{start: time.Now()}
			l.line(t.Context(), b, "start", 1000)
			l.line(t.Context(), b, "a", 1000)
			l.line(t.Context(), b, "b", 1000)
			if name == "leaky" { // where a's turn is when start has left, and b's when a has
				l.line(t.Context(), b, "c", 1000)
			}
			time.Sleep(sec / 2)
			b.SetRate(80 * Kbit) // half of a is paid: the rest takes 50 ms
			time.Sleep(100 * time.Millisecond)
			b.SetRate(8) // half of b
			time.Sleep(time.Minute)
			b.SetRate(8 * Mbit) // 440 bytes are left
			time.Sleep(time.Minute)
			want := []string{"start", "a", "b"}
			when := []time.Duration{0, sec/2 + sec/20, time.Minute + 600*time.Millisecond + 440*time.Microsecond}
			if name == "leaky" {
				want, when = append(want, "c"), append(when, when[2]+time.Millisecond)
			}
			l.expect(t, want, when...)
		}
	})
}

func TestChangeOfBurstReachesThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewTokenBucket(8*Kbit, 1000)
		l := timeline{start: time.Now()}
		b.Allow(1000)
		l.line(t.Context(), b, "a", 2000)
		time.Sleep(sec)
		b.SetBurst(10) // those who pay over time keep what they have paid
		time.Sleep(sec / 2)
		b.SetBurst(3000)
		time.Sleep(2 * sec)
		l.expect(t, []string{"a"}, 2*sec)
		if got := b.Tokens(); got != 1500 {
			t.Errorf("%d tokens, want 1500: the burst is 3000 now", got)
		}
	})
}

func TestReservationsMoveForwardWhenOneIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewTokenBucket(8*Kbit, 1000)
		now, a, c, d := b.Reserve(1000), b.Reserve(500), b.Reserve(300), b.Reserve(200)
		expect := func(r *Reservation, want time.Duration) {
			t.Helper()
			if got := r.Delay(); got != want {
				t.Errorf("delay %v, want %v", got, want)
			}
		}
		expect(now, 0)
		expect(a, sec/2)
		expect(c, 8*sec/10)
		expect(d, sec)
		time.Sleep(sec / 10)
		expect(d, 9*sec/10)
		if !c.Cancel() || c.Cancel() || now.Cancel() {
			t.Error("want c given back once, and now, whose turn had come, not at all")
		}
		expect(c, 0)
		expect(a, 4*sec/10)
		expect(d, 6*sec/10)
		if !a.Cancel() {
			t.Error("a is not given back")
		}
		expect(d, sec/10)
		time.Sleep(sec / 10)
		expect(d, 0)
		if d.Cancel() {
			t.Error("d is given back though its turn had come")
		}
		if got := b.Tokens(); got != 0 {
			t.Errorf("%d tokens, want 0", got)
		}
	})
}

// What a request above the burst has paid when it is cancelled is more than may pass at once.
func TestCancelOfARequestAboveTheBurstLeavesNoMoreThanTheBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewTokenBucket(8*Kbit, 1000)
		big, next, last := b.Reserve(61_000), b.Reserve(800), b.Reserve(700)
		time.Sleep(50 * sec)
		if !big.Cancel() || next.Delay() != 0 || last.Delay() != sec/2 {
			t.Errorf("delays %v and %v, want 0 and 500ms", next.Delay(), last.Delay())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := NewTokenBucket(8*Kbit, 1000)
		b.Allow(1000)
		big := b.Reserve(61_000)
		time.Sleep(sec + sec/2000)
		if !big.Cancel() || !b.Allow(1000) || b.RetryAfter(1) != sec/1000 {
			t.Errorf("the next byte after the burst is there in %v, want 1ms: not even half a byte is kept", b.RetryAfter(1))
		}
	})
}

func TestCancelWakesThoseBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewTokenBucket(8*Kbit, 1000)
		l := timeline{start: time.Now()}
		b.Allow(1000)
		big := b.Reserve(61_000)
		l.line(t.Context(), b, "a", 100)
		l.line(t.Context(), b, "b", 500)
		time.Sleep(sec / 5)
		big.Cancel()
		time.Sleep(time.Minute)
		l.expect(t, []string{"a", "b"}, sec/5, 6*sec/10)
	})
}

// Whatever is reserved, cancelled and taken in any order, and however often the rate changes: bytes that went,
// and tokens that are left, make what was earned.
func TestReservationsLoseNoByte(t *testing.T) {
	random := seeded(t)
	for range 10 {
		synctest.Test(t, func(t *testing.T) {
			rate, burst := Rate(logUniform(random, int64(Gbit))), GiB
			b := NewTokenBucket(rate, burst)
			b.Allow(int(burst))
			var went, earned int64
			var rem uint64
			var line []*Reservation
			for range 1000 {
				n := int(logUniform(random, 1+int64(rate)/100))
				switch random.IntN(5) {
				case 0, 1:
					line = append(line, b.Reserve(n))
				case 2:
					if len(line) > 0 {
						i := random.IntN(len(line))
						if line[i].Cancel() {
							line = slices.Delete(line, i, i+1)
						}
					}
				case 3:
					if b.Allow(n) {
						went += int64(n)
					}
				case 4:
					d := time.Duration(logUniform(random, int64(10*time.Millisecond)))
					time.Sleep(d)
					var got int64
					got, rem = earn(rate, d, rem)
					earned += got
					if random.IntN(3) == 0 {
						rate = Rate(logUniform(random, int64(Gbit)))
						b.SetRate(rate)
					}
				}
				if random.IntN(10) == 0 {
					for i := range line { // in order: those behind have the longer delay
						if i > 0 && line[i-1].Delay() > line[i].Delay() {
							t.Fatalf("place %d goes before the one in front", i)
						}
					}
				}
			}
			for _, r := range line { // in turn, so that none waits for a cancelled one
				if d := r.Delay(); d == 0 {
					went += r.n
				} else if !r.Cancel() {
					t.Fatalf("not given back %v before its turn", d)
				}
			}
			if got := went + int64(b.Tokens()); got != earned || earned >= int64(burst) {
				t.Errorf("%d went and the rest make %d, want %d, below %d", went, got, earned, burst)
			}
		})
	}
}

func TestImmenseRequestsWaitWithoutOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, leaky := NewTokenBucket(8*Kbit, 1000), NewLeakyBucket(8*Kbit, math.MaxInt64)
		first, second := b.Reserve(math.MaxInt), b.Reserve(math.MaxInt)
		if first.Delay() != math.MaxInt64 || second.Delay() != math.MaxInt64 || b.RetryAfter(math.MaxInt) != math.MaxInt64 {
			t.Errorf("delays %v, %v and %v, want the longest there is", first.Delay(), second.Delay(), b.RetryAfter(math.MaxInt))
		}
		if !second.Cancel() || !first.Cancel() || !b.Allow(1000) {
			t.Error("not given back")
		}
		if r, err := leaky.Offer(math.MaxInt); err != nil || r.Delay() != 0 {
			t.Errorf("leaky, first: %v", err)
		}
		if _, err := leaky.Offer(1); !errors.Is(err, ErrQueueFull) {
			t.Errorf("leaky, second: %v, want it full", err)
		}
	})
}

// Waits, cancelled and served, beside Allow and changes of rate, on the machine's own clock.
func TestManyWaitAndCancelAtOnce(t *testing.T) {
	const burst = 64 * KiB
	b := NewTokenBucket(10*Gbit, burst)
	var sum atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if (g+i)%3 == 0 {
					cancel()
				}
				if (g+i)%5 == 0 {
					go func() { runtime.Gosched(); cancel() }()
				}
				n := 1000 * (1 + (g+i)%4)
				if b.Wait(ctx, n) == nil {
					sum.Add(int64(n))
				}
				if b.Allow(1) {
					sum.Add(1)
				}
				if g == 0 {
					b.SetRate(10*Gbit - Rate(i)*Mbit)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	earned, _ := earn(10*Gbit, time.Since(b.base), 0)
	b.mu.Lock()
	defer b.mu.Unlock()
	if got := sum.Load(); got > earned+int64(burst) || got < 1000 || b.head != nil || b.tail != nil {
		t.Errorf("%d bytes, want at most %d, and nobody left in line", got, earned+int64(burst))
	}
}
