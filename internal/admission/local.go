package admission

import (
	"context"
	"time"

	"shaperd/shaper"
)

// A state is what a bucket holds after a decision.
type state struct {
	tokens int64
	retry  time.Duration // until what was refused could be had
	reset  time.Duration // until the bucket is full
	full   bool          // there is no room for another key
}

// take takes n tokens or none.
func take(b *shaper.TokenBucket, n int, l limits) (granted bool, s state) {
	granted = b.Allow(n)
	return granted, after(b, n, l, granted)
}

// after is the state once n tokens were granted, or not. It reads the clock more than
// once: what another takes in between, or time earns, shows.
func after(b *shaper.TokenBucket, n int, l limits, granted bool) (s state) {
	if !granted {
		s.retry = max(b.RetryAfter(n), 1)
	}
	s.tokens, s.reset = int64(b.Tokens()), b.RetryAfter(int(l.burst))
	return s
}

// local is the buckets of one class in this process.
type local struct {
	bucket *shaper.TokenBucket
	keys   *keys
}

// newLocal returns buckets that have start tokens.
func newLocal(l limits, start shaper.Size, most int) *local {
	b := shaper.NewTokenBucket(l.rate, start)
	b.SetBurst(l.burst)
	return &local{b, newKeys(l, start, most)}
}

func (o *local) set(l limits, start shaper.Size, most int) {
	o.bucket.SetRate(l.rate)
	o.bucket.SetBurst(l.burst)
	o.keys.set(l, start, most)
}

// takeLocal decides by the class's buckets in this process. Only the path with a
// key takes a lock, and only a new key, or waiting, allocates.
func (a *Admission) takeLocal(ctx context.Context, c *class, n int, r *Request) (granted bool, s state, err error) {
	o, ok := c.local, true
	if r.Key == "" {
		granted, s = take(o.bucket, n, c.limits)
	} else {
		granted, s, ok = o.keys.take(r.Key, n)
	}
	if granted || !ok || s.retry > r.Wait || !a.enter(c) {
		return granted, s, nil
	}
	defer a.leave(c)
	b := o.bucket
	if r.Key != "" {
		held, wait := o.keys.hold(r.Key)
		if held == nil {
			return false, state{retry: wait, reset: wait, full: true}, nil
		}
		defer o.keys.release(held)
		b = held.TokenBucket
	}
	limited, cancel := context.WithTimeout(ctx, r.Wait)
	defer cancel()
	granted = b.Wait(limited, n) == nil
	if !granted && ctx.Err() != nil {
		return false, s, context.Cause(ctx)
	}
	return granted, after(b, n, c.limits, granted), nil
}
