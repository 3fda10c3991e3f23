package shaper

import (
	"context"
	"time"
)

// A LeakyBucket gives a steady output: bytes leave one request after another at the rate, each as soon as those
// before it have left. Quiet time earns nothing. In every window of length w what begins to leave is at most
// rate·w and one request, to the nanosecond.
//
// Like TokenBucket it reads the monotonic clock, is safe for concurrent use, and there is nothing to close.
type LeakyBucket struct {
	pacer
	queue int64
}

// NewLeakyBucket returns an empty bucket that holds up to queue bytes, those that are just leaving included.
// It panics unless rate and queue are above zero: such a bucket lets nothing pass, ever.
func NewLeakyBucket(rate Rate, queue Size) *LeakyBucket {
	return &LeakyBucket{
		pacer: pacer{base: time.Now(), rate: positive("rate", rate)},
		queue: int64(positive("queue", queue)),
	}
}

// Offer puts n bytes in line and says with Delay when they leave. Bytes that find no room are dropped, with
// ErrQueueFull, or a *LimitError when they are more than the whole queue. It does not block.
func (b *LeakyBucket) Offer(n int) (*Reservation, error) { return b.offer(n, b.now()) }

// Wait blocks until n bytes leave, in the order of the calls, or ctx ends; then it returns ctx.Err and they are
// out of the line. It never finds the queue full, since it is the caller who keeps the bytes; but to those
// who Offer they take room.
func (b *LeakyBucket) Wait(ctx context.Context, n int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now := b.now()
	b.lock(now)
	r := b.enqueue(int64(max(n, 0)), make(chan struct{}), now)
	b.unlock(now)
	return r.wait(ctx)
}

// Queued returns the bytes that have not left.
func (b *LeakyBucket) Queued() Size { return b.queued(b.now()) }

// Rate returns the rate in force.
func (b *LeakyBucket) Rate() Rate {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rate
}

// SetRate changes the rate from now on, for the bytes in line too. It panics unless rate is above zero.
func (b *LeakyBucket) SetRate(rate Rate) { b.setRate(rate, b.now()) }

func (b *LeakyBucket) offer(n int, now time.Duration) (*Reservation, error) {
	b.lock(now)
	defer b.unlock(now)
	size := int64(max(n, 0))
	switch {
	case size > b.queue:
		return nil, &LimitError{N: n, What: "queue", Limit: Size(b.queue)}
	case size > b.queue-b.waiting():
		return nil, ErrQueueFull
	}
	return b.enqueue(size, nil, now), nil
}

func (b *LeakyBucket) queued(now time.Duration) Size {
	b.lock(now)
	defer b.unlock(now)
	return Size(b.waiting())
}

func (b *LeakyBucket) setRate(rate Rate, now time.Duration) {
	positive("rate", rate)
	b.lock(now)
	defer b.unlock(now)
	b.rate = rate
}

// waiting returns the bytes in line and, as debt, those that are just leaving.
func (b *LeakyBucket) waiting() int64 { return addCapped(b.ahead(nil), max(-b.credit, 0)) }

func (b *LeakyBucket) lock(now time.Duration) {
	b.mu.Lock()
	b.settle(now)
}

func (b *LeakyBucket) unlock(now time.Duration) {
	b.arm(now)
	b.mu.Unlock()
}
