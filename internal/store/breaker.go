package store

import (
	"math/rand/v2"
	"sync"
	"time"
)

// The breaker opens after so many failures in a row, for a time that doubles
// with each probe that fails. Half of it is random, so that hosts that lost
// their Redis together do not come back together.
const (
	tolerated    = 3
	firstBackoff = 100 * time.Millisecond
)

// DefaultBackoff is the longest time without a request that tries, where Options
// name none.
const DefaultBackoff = 3 * time.Second

// A breaker decides which requests are made. Closed: all of them. Open: none,
// but one at a time that tries, after each backoff.
type breaker struct {
	random  func() float64 // in [0, 1)
	longest time.Duration  // between two that try

	mu         sync.Mutex
	problem    *AwayError // of the last request that was decided; nil when it was answered
	failures   int        // in a row
	open       bool
	until      time.Time // while open: no request before that
	probing    bool      // while open: one is under way
	generation uint64    // of open and probing: what reports from before is too late
}

func newBreaker(longest time.Duration) *breaker {
	return &breaker{random: rand.Float64, longest: longest}
}

// last returns what the last request failed with, nil if it did not.
func (b *breaker) last() *AwayError {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.problem
}

// allow says whether a request may be made now. If so, its end must be
// reported with the ticket; if not, the problem says why.
func (b *breaker) allow(now time.Time) (ticket uint64, refused *AwayError) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open {
		if b.probing || now.Before(b.until) {
			return 0, b.problem
		}
		b.probing = true
		b.generation++
	}
	return b.generation, nil
}

// report tells how a request ended: with a problem; or answered, which it may
// be with an error of its own; or neither, when its caller gave up.
func (b *breaker) report(ticket uint64, now time.Time, p *AwayError, answered bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case ticket != b.generation:
	case p != nil && p.local: // the server is well, the request was not
		b.problem = p
		b.close()
	case p != nil:
		b.problem = p
		b.failures++
		b.probing = false
		if b.open || b.failures >= tolerated {
			b.open = true
			b.until = now.Add(b.backoff())
			b.generation++
		}
	case answered:
		b.problem = nil
		b.close()
	default:
		b.probing = false
	}
}

func (b *breaker) close() {
	b.failures = 0
	if b.open {
		b.open, b.probing = false, false
		b.generation++
	}
}

func (b *breaker) backoff() time.Duration {
	d := b.longest
	if doublings := b.failures - tolerated; doublings < 10 {
		d = min(firstBackoff<<max(doublings, 0), b.longest)
	}
	return d/2 + time.Duration(b.random()*float64(d/2))
}
