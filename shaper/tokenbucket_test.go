package shaper

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// everyRate has the ends of what is promised, and rates that divide by nothing.
var everyRate = []Rate{8 * Kbit, 56_001, Mbit, 1500 * Kbit, 10 * Mbit, 123_456_789, Gbit, 40 * Gbit, 399_999_999_999, 400 * Gbit}

// An account is the token bucket as its definition says it, in units of 1/8e9 byte of any size.
type account struct {
	rate        Rate
	level, full *big.Int
	at          time.Duration
}

func inUnits(n int64) *big.Int { return new(big.Int).Mul(big.NewInt(n), big.NewInt(perByte)) }

func newAccount(rate Rate, burst Size) *account {
	return &account{rate: rate, level: inUnits(int64(burst)), full: inUnits(int64(burst))}
}

func (a *account) advance(now time.Duration) {
	a.level.Add(a.level, earnedExactly(a.rate, now-a.at, 0))
	a.at = now
	a.trim()
}

func (a *account) trim() {
	if a.level.Cmp(a.full) > 0 {
		a.level.Set(a.full)
	}
}

func (a *account) take(n int64) verdict {
	cost := inUnits(n)
	switch {
	case cost.Cmp(a.full) > 0:
		return tooMuch
	case cost.Cmp(a.level) > 0:
		return short
	}
	a.level.Sub(a.level, cost)
	return granted
}

func (a *account) tokens() int64 { return new(big.Int).Quo(a.level, big.NewInt(perByte)).Int64() }

// Rates that need the lock as well as those of one lane, over hours, with changes of both limits:
// the bucket says what the definition says, each time.
func TestTokenBucketIsItsDefinition(t *testing.T) {
	random := seeded(t)
	for range 200 {
		rate, burst := Rate(logUniform(random, int64(Tbit))), Size(logUniform(random, 1<<40))
		if random.IntN(2) == 0 {
			rate = everyRate[random.IntN(len(everyRate))]
		}
		b, want := NewTokenBucket(rate, burst), newAccount(rate, burst)
		for now := time.Duration(0); now < 3*time.Hour; {
			if random.IntN(4) > 0 {
				now += gap(random, rate, burst)
			}
			want.advance(now)
			n := logUniform(random, int64(burst)+2)
			if got, want := b.take(n, now), want.take(n); got != want {
				t.Fatalf("%v with %v at %v: take %d: %d, want %d", rate, burst, now, n, got, want)
			}
			switch random.IntN(20) {
			case 0:
				rate = Rate(logUniform(random, int64(Tbit)))
				b.setRate(rate, now)
				want.rate = rate
			case 1:
				burst = Size(logUniform(random, 1<<40))
				b.setBurst(burst, now)
				want.full = inUnits(int64(burst))
				want.trim()
			case 2:
				if got := b.tokens(now); int64(got) != want.tokens() {
					t.Fatalf("%v with %v at %v: %d tokens, want %d", rate, burst, now, got, want.tokens())
				}
			}
		}
	}
}

// gap is a pause of any length, mostly such that the bucket is neither full nor empty after it.
func gap(random *rand.Rand, rate Rate, burst Size) time.Duration {
	fill := timeToEarn(rate, int64(burst), 0)
	return time.Duration(logUniform(random, int64(min(max(fill, 10*time.Second), time.Hour))))
}

// passed checks windows: every one that begins with a grant and ends with a grant, so every one.
type passed struct {
	rate       Rate
	burst      Size
	sum        int64
	least      *big.Int // of what was granted before a grant, less what was earned by then
	violations int
}

func (p *passed) grant(n int64, now time.Duration) {
	earned := earnedExactly(p.rate, now, 0)
	before := new(big.Int).Sub(inUnits(p.sum), earned)
	if p.least == nil || before.Cmp(p.least) < 0 {
		p.least = before
	}
	p.sum += n
	after := new(big.Int).Sub(inUnits(p.sum), earned)
	if after.Sub(after, p.least).Cmp(inUnits(int64(p.burst))) > 0 {
		p.violations++
	}
}

func TestTokenBucketBoundsEveryWindow(t *testing.T) {
	random := seeded(t)
	for _, rate := range everyRate {
		burst := Size(logUniform(random, 10<<20))
		b, p := NewTokenBucket(rate, burst), passed{rate: rate, burst: burst}
		for now := time.Duration(0); now < time.Hour/4; now += gap(random, rate, burst) {
			for range 20 {
				if n := logUniform(random, int64(burst)); b.take(n, now) == granted {
					p.grant(n, now)
				}
			}
		}
		if p.sum == 0 || p.violations > 0 {
			t.Errorf("%v with %v: %d bytes passed, %d grants made a window exceed rate·w + burst", rate, burst, p.sum, p.violations)
		}
	}
}

// The flaw of a counter that starts anew each second: twice the limit around the boundary.
func TestTokenBucketHasNoBoundaryToGatherAt(t *testing.T) {
	const rate, burst = 8 * Mbit, Size(Mbit) // 1 MB in a second, for both
	var window time.Duration
	var used int64
	fixedWindow := func(n int64, now time.Duration) bool {
		if w := now.Truncate(time.Second); w != window {
			window, used = w, 0
		}
		if used+n > int64(rate)/8 {
			return false
		}
		used += n
		return true
	}
	b := NewTokenBucket(rate, burst)
	tokenBucket := func(n int64, now time.Duration) bool { return b.take(n, now) == granted }

	around := func(allow func(int64, time.Duration) bool) (sum int64) {
		for now := 900 * time.Millisecond; now <= 1100*time.Millisecond; now += time.Millisecond / 10 {
			for allow(1000, now) {
				sum += 1000
			}
		}
		return sum
	}
	const limit = int64(rate/8)/5 + int64(burst) // what 200 ms may pass
	if got := around(fixedWindow); got != 2*int64(rate)/8 || got <= limit {
		t.Errorf("a fixed window passed %d bytes in 200 ms: the test does not show its flaw", got)
	}
	if got := around(tokenBucket); got > limit || got <= limit-1000 {
		t.Errorf("%d bytes passed in 200 ms, want at most %d and all but one request of it", got, limit)
	}
}

func TestTokenBucketDriftsByNoByteInHours(t *testing.T) {
	random := seeded(t)
	for _, rate := range everyRate {
		// Never full, so that all that is earned is passed on.
		burst := Size(rate) + 2 // 8 s and a fraction
		b := NewTokenBucket(rate, burst)
		var sum int64
		var now time.Duration
		for now < 5*time.Hour {
			for n := int64(burst); n > 0; n /= 2 {
				for b.take(n, now) == granted {
					sum += n
				}
			}
			now += time.Duration(random.Int64N(int64(8 * time.Second)))
		}
		for n := int64(burst); n > 0; n /= 2 {
			for b.take(n, now) == granted {
				sum += n
			}
		}
		if earned, _ := earn(rate, now, 0); sum != earned+int64(burst) {
			t.Errorf("%v in %v: %d bytes, want %d", rate, now, sum, earned+int64(burst))
		}
	}
}

// One nanosecond at a time, and with a change of rate each time: what is left over is never dropped.
func TestTokenBucketCarriesTheRemainderThroughChangesOfRate(t *testing.T) {
	random := seeded(t)
	b := NewTokenBucket(Mbit, MiB)
	if !b.take1(int64(MiB)) {
		t.Fatal("a new bucket is not full")
	}
	rate, want := Mbit, new(big.Int)
	for now := time.Duration(1); now <= 100_000; now++ {
		want.Add(want, earnedExactly(rate, 1, 0))
		rate = Rate(logUniform(random, int64(Gbit)))
		if now%2 == 0 {
			rate = everyRate[random.IntN(len(everyRate)-3)] // in units that do not divide what is left of the other
		}
		b.setRate(rate, now)
	}
	if got := int64(b.tokens(100_000)); got != want.Quo(want, big.NewInt(perByte)).Int64() {
		t.Errorf("%d tokens, want %v", got, want)
	}
}

func (b *TokenBucket) take1(n int64) bool { return b.take(n, 0) == granted }

func TestTokenBucketPassesAtMostTheBurstAfterIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range everyRate {
			b := NewTokenBucket(rate, 5000)
			for range 3 {
				time.Sleep(time.Minute + 1)
				var n int
				for b.Allow(1) {
					n++
				}
				if n != 5000 {
					t.Errorf("%v: %d bytes at once after a minute, want 5000", rate, n)
				}
			}
		}
	})
}

func TestTokenBucketChangesKeepTheLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewTokenBucket(8*Kbit, 1000)
		expect := func(what string, want Size) {
			t.Helper()
			if got := b.Tokens(); got != want {
				t.Errorf("%s: %d tokens, want %d", what, got, want)
			}
		}
		b.Allow(900)
		expect("900 of 1000 taken", 100)
		for range 100 {
			b.SetRate(8 * Mbit)
			b.SetRate(8 * Kbit)
		}
		expect("rate changed", 100)
		b.SetBurst(5000)
		expect("burst raised", 100)
		b.SetBurst(50)
		expect("burst below the level", 50)
		b.SetBurst(1000)
		expect("burst raised again", 50)
		time.Sleep(100 * time.Millisecond)
		expect("100 ms at 1000 bytes a second", 150)
		b.SetRate(16 * Kbit)
		time.Sleep(100 * time.Millisecond)
		expect("100 ms at 2000 bytes a second", 350)
		if b.Rate() != 16*Kbit || b.Burst() != 1000 {
			t.Errorf("%v with %v, want what was set", b.Rate(), b.Burst())
		}
	})
}

func TestTokenBucketSaysWhyItRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewTokenBucket(8*Kbit, 1000)
		if err := b.Take(1000); err != nil {
			t.Error(err)
		}
		if err := b.Take(1); !errors.Is(err, ErrNoTokens) {
			t.Errorf("empty: %v", err)
		}
		var limit *LimitError
		if err := b.Take(1025); !errors.As(err, &limit) || err.Error() != "1025 bytes exceed the burst of 1000b" {
			t.Errorf("more than the burst: %v", err)
		}
		if err := b.Take(0); err != nil || !b.Allow(0) || !b.Allow(-1) {
			t.Errorf("nothing was asked for and refused: %v", err)
		}
		if got := b.Tokens(); got != 0 {
			t.Errorf("%d tokens after what was refused or nothing, want 0", got)
		}
	})
}

func TestTokenBucketRefusesLimitsThatLetNothingPass(t *testing.T) {
	b := NewTokenBucket(Mbit, KiB)
	for want, f := range map[string]func(){
		"shaper: a rate of 0bit lets nothing pass":  func() { NewTokenBucket(0, KiB) },
		"shaper: a rate of -1bit lets nothing pass": func() { b.SetRate(-1) },
		"shaper: a burst of 0b lets nothing pass":   func() { NewTokenBucket(Mbit, 0) },
		"shaper: a burst of -1b lets nothing pass":  func() { b.SetBurst(-1) },
		"shaper: a queue of 0b lets nothing pass":   func() { NewLeakyBucket(Mbit, 0) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); got != want {
					t.Errorf("panic %q, want %q", got, want)
				}
			}()
			f()
		}()
	}
	if !b.Allow(1) || b.Rate() != Mbit || b.Burst() != KiB {
		t.Error("a refused change changed the bucket or left it locked")
	}
}

func TestTokenBucketRetryAfterIsExact(t *testing.T) {
	random := seeded(t)
	for _, rate := range everyRate {
		b := NewTokenBucket(rate, MiB)
		var now time.Duration
		for range 1000 {
			n := logUniform(random, int64(MiB))
			wait := b.retryAfter(n, now)
			if wait < 0 || wait > 0 && b.take(n, now+wait-1) == granted || b.take(n, now+wait) != granted {
				t.Fatalf("%v at %v: %d bytes are not there after %v, or are before", rate, now, n, wait)
			}
			now += wait
		}
	}
	b := NewTokenBucket(8*Kbit, 1000)
	for n, want := range map[int]time.Duration{
		-1: 0, 0: 0, 1000: 0, 1001: time.Millisecond, 61_000: time.Minute, math.MaxInt: math.MaxInt64,
	} {
		if got := b.retryAfter(int64(n), 0); got != want {
			t.Errorf("%d bytes from a full bucket: %v, want %v", n, got, want)
		}
	}
}

// Many at once, while the lane is closed and opened again and again: each byte is granted once, none is lost.
func TestTokenBucketGrantsEachByteOnceToManyAtOnce(t *testing.T) {
	for _, rate := range []Rate{10 * Mbit, 123_456_789, 399_999_999_999} {
		const takers, each, tick = 8, 20_000, 5 * time.Microsecond
		burst := Size(int64(rate) / 8) // more than is earned: never full again
		b := NewTokenBucket(rate, burst)
		if !b.take1(int64(burst)) {
			t.Fatal("a new bucket is not full")
		}
		var clock, sum atomic.Int64
		var wg, changes sync.WaitGroup
		done := make(chan struct{})
		for range takers {
			wg.Go(func() {
				for range each {
					now := time.Duration(clock.Add(int64(tick)))
					if n := int64(rate) / 300_000; b.take(n, now) == granted {
						sum.Add(n)
					}
				}
			})
		}
		changes.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					b.setRate(rate, time.Duration(clock.Load()))
					b.setBurst(burst, time.Duration(clock.Load()))
				}
			}
		})
		wg.Wait()
		close(done)
		changes.Wait()
		now := time.Duration(clock.Load())
		earned, _ := earn(rate, now, 0)
		if got := sum.Load() + int64(b.tokens(now)); got != earned || sum.Load() < earned/2 {
			t.Errorf("%v: %d granted and the rest make %d, want %d", rate, sum.Load(), got, earned)
		}
	}
}

// Readings of the clock reach the bucket in any order.
func TestTokenBucketTakesTimesOutOfOrder(t *testing.T) {
	const ms = time.Millisecond
	b := NewTokenBucket(8*Kbit, 1000) // a byte in a millisecond
	b.setRate(16*Kbit, time.Hour)
	b.setRate(8*Kbit, time.Hour)
	if b.take(400, 0) != granted || b.retryAfter(600, 0) != 0 {
		t.Error("a time before the last change does not find what is there")
	}
	ready := make(chan struct{})
	b.reserve(500, 0, ready)
	select {
	case <-ready:
	default:
		t.Error("a time before the last change does not find what is there when it waits")
	}
	if r := b.reserve(101, 0, nil); r.delay(0) != time.Hour+ms || r.delay(time.Hour) != ms || !r.cancel(time.Hour) {
		t.Errorf("a byte that is earned 1 ms after the change is not due then")
	}

	b = NewTokenBucket(8*Kbit, 1000)
	b.take(1000, 0)
	b.take(10, 10*ms)
	b.setRate(8*Kbit, 5*ms+ms/2) // 4.5 bytes short
	if b.tokens(6*ms) != 0 || b.retryAfter(0, 6*ms) != 0 || b.retryAfter(1, 6*ms) != 5*ms {
		t.Errorf("%d tokens, the next in %v, want 0 and 5ms", b.tokens(6*ms), b.retryAfter(1, 6*ms))
	}
	if b.take(1, 11*ms-1) != short || b.take(1, 11*ms) != granted {
		t.Error("the next byte is not granted when it is earned")
	}
}

func TestTokenBucketGrantsNothingFromALaneThatIsClosed(t *testing.T) {
	b := NewTokenBucket(8*Kbit, 1000)
	late := b.lane.Load()
	b.setRate(8*Mbit, 0)
	if v := late.take(1, time.Minute); v != moved {
		t.Errorf("verdict %d, want to be sent to the lock", v)
	}
}

// On the machine's own clock, read by everybody for himself.
func TestTokenBucketAdmitsNoMoreThanEarnedAndTheBurst(t *testing.T) {
	const rate, burst, most = Gbit, 64 * KiB, 2 * Gbit
	b := NewTokenBucket(rate, burst)
	start := b.base
	var sum atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 20_000 {
				if b.Allow(500) {
					sum.Add(500)
				}
				if g == 0 && i%100 == 0 {
					b.SetRate(rate + Rate(i)*Kbit)
				}
			}
		})
	}
	wg.Wait()
	earned, _ := earn(most, time.Since(start), 0)
	if got := sum.Load(); got > earned+int64(burst) || got < int64(burst)-500 {
		t.Errorf("%d bytes, want from the burst of %d to %d more", got, int64(burst), earned)
	}
}

// A year's change to summer time, in the hour that the wall clock skips, is an hour like any other.
func TestTokenBucketKnowsNoWallClock(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	summer := time.FixedZone("CEST", 7200)
	synctest.Test(t, func(t *testing.T) {
		b := NewTokenBucket(8*Kbit, 1000)
		for i := range 24 * 60 {
			zone := berlin
			if i%2 == 1 {
				zone = summer
			}
			now := time.Now().In(zone)
			if !b.AllowAt(now, 1000) || b.AllowAt(now, 1) || b.AllowAt(now.Add(-time.Hour), 1) {
				t.Fatalf("at %v: want 1000 bytes each second", now)
			}
			time.Sleep(time.Second)
		}
	})
}

func TestTokenBucketAllowNeitherAllocatesNorLocks(t *testing.T) {
	b := NewTokenBucket(Mbit, 64*KiB)
	b.mu.Lock() // Allow gets by without it
	defer b.mu.Unlock()
	if n := testing.AllocsPerRun(1000, func() {
		b.Allow(1000)
		_ = b.Take(1000)
		b.Tokens()
		b.RetryAfter(1000)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
