package shaper

import (
	"sync"
	"time"
)

// A pacer lets bytes go at a rate, first come, first served: what TokenBucket
// and LeakyBucket share. It counts in whole bytes and carries the rest, so no
// order of calls and no number of changes of rate wins or loses any part of a byte.
//
// The methods are called with mu held, now being the time since base.
type pacer struct {
	base time.Time
	mu   sync.Mutex

	rate   Rate
	most   int64 // the most credit that quiet time leaves
	prepay bool  // whether bytes go when they are paid in full, or as soon as those before them are

	// credit + rem/8e9 bytes were earned and not spent at the time at.
	credit int64
	rem    uint64
	at     time.Duration

	// Those who wait, in order. The timer runs while there are any.
	head, tail *Reservation
	timer      *time.Timer
}

func (p *pacer) now() time.Duration { return time.Since(p.base) }

// need is the credit at which r goes.
func (p *pacer) need(r *Reservation) int64 {
	if p.prepay {
		return r.n
	}
	return 0
}

// earn moves the clock to t, which must not lie beyond the time at which the head goes.
func (p *pacer) earn(t time.Duration) {
	if t <= p.at {
		return
	}
	n, rem := earn(p.rate, t-p.at, p.rem)
	p.at = t
	if p.head == nil && n >= p.most-p.credit {
		p.fill()
		return
	}
	p.credit += n // the head needs less than an int64, and waits for no more
	p.rem = rem
}

// fill sets the credit to the most there may be.
func (p *pacer) fill() { p.credit, p.rem = p.most, 0 }

// settle moves the clock to now and lets everything go that is due by then, each at its own time:
// whoever learns of it late loses nothing.
func (p *pacer) settle(now time.Duration) {
	for p.head != nil {
		r := p.head
		t := timeToEarn(p.rate, p.need(r)-p.credit, p.rem)
		if t > max(now-p.at, 0) {
			break
		}
		p.earn(p.at + t)
		p.unlink(r)
		p.credit -= r.n
		r.gone = true
		if r.ready != nil {
			close(r.ready)
		}
	}
	p.earn(now)
}

// enqueue puts n bytes at the end of the line; they may go at once. The clock has been settled to now:
// what quiet time leaves was bounded before somebody waited.
func (p *pacer) enqueue(n int64, ready chan struct{}, now time.Duration) *Reservation {
	r := &Reservation{p: p, n: n, ready: ready, prev: p.tail}
	if p.tail == nil {
		p.head = r
	} else {
		p.tail.next = r
	}
	p.tail = r
	p.settle(now)
	return r
}

func (p *pacer) unlink(r *Reservation) {
	if r.prev == nil {
		p.head = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		p.tail = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.prev, r.next = nil, nil
}

// ahead returns the bytes that wait in front of r, with nil those of all.
func (p *pacer) ahead(r *Reservation) (n int64) {
	for q := p.head; q != r; q = q.next {
		n = addCapped(n, q.n)
	}
	return n
}

// delay returns how long it takes from now until the credit has reached n.
func (p *pacer) delay(n int64, now time.Duration) time.Duration {
	t := timeToEarn(p.rate, subCapped(n, p.credit), p.rem)
	if t == 0 {
		return 0
	}
	return time.Duration(addCapped(int64(t), int64(max(p.at-now, 0))))
}

// arm sets the timer to the time at which the head goes.
func (p *pacer) arm(now time.Duration) {
	switch {
	case p.head == nil:
		if p.timer != nil {
			p.timer.Stop()
		}
	case p.timer == nil:
		p.timer = time.AfterFunc(p.delay(p.need(p.head), now), p.tick)
	default:
		p.timer.Reset(p.delay(p.need(p.head), now))
	}
}

func (p *pacer) tick() {
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.head != nil {
		p.settle(now)
		p.arm(now)
	}
}

// addCapped is a + b for numbers from 0 up, at most the largest int64.
func addCapped(a, b int64) int64 {
	return saturate(uint64(a) + uint64(b))
}

// subCapped is a − b with a from 0 up, at most the largest int64.
func subCapped(a, b int64) int64 {
	if b >= 0 {
		return a - b
	}
	return addCapped(a, -b)
}
