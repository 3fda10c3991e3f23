package shaper

import (
	"math"
	"time"
)

// never is a time that does not come.
const never = time.Duration(math.MaxInt64)

// A bucket is a token bucket with one owner: no lock, and the time is the
// caller's. It is exact: what does not make a whole byte is carried in rem.
// A rate of 0 is no limit.
type bucket struct {
	rate   Rate
	burst  int64 // bytes it holds at most
	need   int64 // bytes it must hold for a turn
	tokens int64
	rem    uint64
	last   time.Duration
}

// set changes the limits and keeps the level: what has been earned so far was earned at the old rate.
func (b *bucket) set(rate Rate, burst, need int64, now time.Duration) {
	wasLimited := b.rate > 0
	b.refill(now)
	b.rate, b.burst, b.need = rate, burst, need
	if !wasLimited || b.tokens >= burst {
		b.tokens, b.rem = burst, 0
	}
}

func (b *bucket) refill(now time.Duration) {
	if b.rate > 0 {
		n, rem := earn(b.rate, now-b.last, b.rem)
		if n >= b.burst-b.tokens { // a full bucket has no part of a byte either
			b.tokens, b.rem = b.burst, 0
		} else {
			b.tokens, b.rem = b.tokens+n, rem
		}
	}
	b.last = max(b.last, now)
}

// holds reports whether the bucket has n bytes now.
func (b *bucket) holds(n int64, now time.Duration) bool {
	if b.rate == 0 || b.tokens >= n { // time only adds
		return true
	}
	b.refill(now)
	return b.tokens >= n
}

// when returns the earliest time at which holds will report true.
func (b *bucket) when(n int64, now time.Duration) time.Duration {
	if b.holds(n, now) {
		return now
	}
	d := timeToEarn(b.rate, n-b.tokens, b.rem)
	if d > never-b.last {
		return never
	}
	return b.last + d
}

// open reports whether the bucket holds enough for a turn now.
func (b *bucket) open(now time.Duration) bool { return b.holds(b.need, now) }

// opens returns the earliest time at which open will report true.
func (b *bucket) opens(now time.Duration) time.Duration { return b.when(b.need, now) }

// take charges n bytes that were sent.
func (b *bucket) take(n int64, now time.Duration) {
	if b.rate > 0 {
		b.refill(now)
		b.tokens -= n
	}
}

// most is the largest turn that the bucket allows.
func (b *bucket) most() int64 {
	if b.rate == 0 {
		return chunkMax
	}
	return b.need
}
