package shaper

import (
	"context"
	"sync/atomic"
	"time"
)

// A TokenBucket earns tokens at a rate, holds up to a burst of them, and starts full. A byte costs one
// token. In every window of length w at most rate·w + burst bytes pass, to the byte, however the calls
// interleave. Wait and Reserve for more than the burst may exceed that, having paid in advance, and so may
// those whose turn comes within a nanosecond, by what that nanosecond earns: the clock shows its end.
//
// It reads the monotonic clock: a change of the wall clock or of the time zone means nothing to it.
// Those who Wait or Reserve are served in order, and nobody overtakes them: while they wait, Allow refuses.
// Safe for concurrent use. There is nothing to close.
type TokenBucket struct {
	lane atomic.Pointer[lane] // nil while somebody waits: then pacer has the state
	pacer
}

// NewTokenBucket returns a full bucket. It panics unless rate and burst are above zero: such a limit lets nothing pass, ever.
func NewTokenBucket(rate Rate, burst Size) *TokenBucket {
	b := &TokenBucket{pacer: pacer{
		base: time.Now(), rate: positive("rate", rate), most: int64(positive("burst", burst)), prepay: true,
	}}
	b.fill()
	b.open()
	return b
}

// Allow takes n tokens now, or none and returns false. It neither blocks nor allocates.
func (b *TokenBucket) Allow(n int) bool { return b.take(int64(n), b.now()) == granted }

// AllowAt is Allow at the time t, for callers who have read the clock already: with time.Now, as a time without
// its monotonic reading follows the wall clock. Times may come out of order; an earlier one earns nothing.
func (b *TokenBucket) AllowAt(t time.Time, n int) bool {
	return b.take(int64(n), t.Sub(b.base)) == granted
}

// Take is Allow with the reason: ErrNoTokens when it may succeed later, a *LimitError when n is more than the burst.
func (b *TokenBucket) Take(n int) error {
	switch b.take(int64(n), b.now()) {
	case granted:
		return nil
	case tooMuch:
		return &LimitError{N: n, What: "burst", Limit: b.Burst()}
	}
	return ErrNoTokens
}

// Reserve takes n tokens in advance and says with Delay when they are earned. More than the burst is paid over time.
func (b *TokenBucket) Reserve(n int) *Reservation { return b.reserve(int64(n), b.now(), nil) }

// Wait blocks until n tokens are taken, in the order of the calls, or ctx ends; then it returns ctx.Err and
// has taken nothing. More than the burst is paid over time. A deadline too near is no error until it passes,
// since a change of rate may come first.
func (b *TokenBucket) Wait(ctx context.Context, n int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now := b.now()
	if b.take(int64(n), now) == granted {
		return nil
	}
	return b.reserve(int64(n), now, make(chan struct{})).wait(ctx)
}

// RetryAfter returns how long it takes until n tokens are there, if nobody else takes any; 0 when they are.
func (b *TokenBucket) RetryAfter(n int) time.Duration { return b.retryAfter(int64(n), b.now()) }

// Tokens returns what could be taken now.
func (b *TokenBucket) Tokens() Size { return b.tokens(b.now()) }

// Rate returns the rate in force.
func (b *TokenBucket) Rate() Rate {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rate
}

// Burst returns the burst in force.
func (b *TokenBucket) Burst() Size {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Size(b.most)
}

// SetRate changes the rate from now on. The level stays, and those who wait are served at the new rate at once.
// It panics unless rate is above zero.
func (b *TokenBucket) SetRate(rate Rate) { b.setRate(rate, b.now()) }

// SetBurst changes the burst. The level stays but for what is above the new burst. It panics unless burst is above zero.
func (b *TokenBucket) SetBurst(burst Size) { b.setBurst(burst, b.now()) }

func (b *TokenBucket) take(n int64, now time.Duration) verdict {
	if n <= 0 {
		return granted
	}
	if l := b.lane.Load(); l != nil {
		if v := l.take(n, now); v != moved {
			return v
		}
	}
	b.lock(now)
	defer b.unlock(now)
	switch {
	case n > b.most:
		return tooMuch
	case b.head != nil || n > b.credit:
		return short
	}
	b.credit -= n
	return granted
}

func (b *TokenBucket) reserve(n int64, now time.Duration, ready chan struct{}) *Reservation {
	if ready == nil && b.take(n, now) == granted {
		return &Reservation{p: &b.pacer, n: n, gone: true}
	}
	b.lock(now)
	defer b.unlock(now)
	return b.enqueue(n, ready, now)
}

func (b *TokenBucket) retryAfter(n int64, now time.Duration) time.Duration {
	if n <= 0 {
		return 0
	}
	if l := b.lane.Load(); l != nil {
		if credit, rem, at, ok := l.level(now); ok && at >= now {
			return timeToEarn(l.rate, subCapped(n, credit), rem)
		}
	}
	b.lock(now)
	defer b.unlock(now)
	return b.delay(addCapped(b.ahead(nil), n), now)
}

func (b *TokenBucket) tokens(now time.Duration) Size {
	if l := b.lane.Load(); l != nil {
		if credit, _, at, ok := l.level(now); ok && at >= now {
			return Size(max(credit, 0))
		}
	}
	b.lock(now)
	defer b.unlock(now)
	if b.head != nil {
		return 0
	}
	return Size(max(b.credit, 0))
}

func (b *TokenBucket) setRate(rate Rate, now time.Duration) {
	positive("rate", rate)
	b.lock(now)
	defer b.unlock(now)
	b.rate = rate
}

func (b *TokenBucket) setBurst(burst Size, now time.Duration) {
	positive("burst", burst)
	b.lock(now)
	defer b.unlock(now)
	b.most = int64(burst)
	if b.head == nil && b.credit >= b.most {
		b.fill()
	}
}

// lock closes the lane: the pacer then has the state, settled to now.
func (b *TokenBucket) lock(now time.Duration) {
	b.mu.Lock()
	if l := b.lane.Load(); l != nil {
		b.credit, b.rem, b.at = l.close(now)
		b.lane.Store(nil)
	}
	b.settle(now)
}

func (b *TokenBucket) unlock(now time.Duration) {
	b.arm(now)
	b.open()
	b.mu.Unlock()
}

// open gives the state to a lane if nobody waits.
func (b *TokenBucket) open() {
	if b.head == nil {
		b.lane.Store(openLane(b.rate, b.most, b.credit, b.rem, b.at))
	}
}
