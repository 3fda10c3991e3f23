package shaper

import (
	"context"
	"time"
)

// A Reservation is a place in a bucket's line. Whoever holds it sends its bytes after Delay, or gives
// them back with Cancel. Safe for concurrent use.
type Reservation struct {
	p     *pacer
	n     int64
	ready chan struct{} // closed when the bytes go; nil when nobody blocks on it

	// Guarded by p.mu.
	gone       bool // no longer in line: went or was cancelled
	prev, next *Reservation
}

// Delay returns how long to wait from now before sending; 0 when the turn has come. It becomes shorter when
// someone in front cancels, and changes with the bucket's rate.
func (r *Reservation) Delay() time.Duration { return r.delay(r.p.now()) }

func (r *Reservation) delay(now time.Duration) time.Duration {
	p := r.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if !r.gone {
		p.settle(now)
	}
	if r.gone {
		return 0
	}
	return p.delay(addCapped(p.ahead(r), p.need(r)), now)
}

// Cancel gives all bytes back, exactly: those behind move forward as if it had never stood in line. Once its
// turn has come they are spent; then it does nothing and returns false.
func (r *Reservation) Cancel() bool { return r.cancel(r.p.now()) }

func (r *Reservation) cancel(now time.Duration) bool {
	p := r.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.gone {
		return false
	}
	p.settle(now)
	defer p.arm(now)
	if r.gone {
		return false
	}
	first := p.head == r
	p.unlink(r)
	r.gone = true
	if first && p.credit >= p.most {
		p.fill() // more than that was only for a request above the burst
	}
	return true
}

// wait blocks until the bytes go, or gives them back when ctx ends first.
func (r *Reservation) wait(ctx context.Context) error {
	select {
	case <-r.ready:
		return nil
	case <-ctx.Done():
		if r.Cancel() {
			return ctx.Err()
		}
		return nil
	}
}
