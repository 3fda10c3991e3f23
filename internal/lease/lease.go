package lease

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"shaperd/internal/store"
)

// A Client holds this host's leases.
type Client struct {
	store *store.Store
	core  *core // Run's

	woken   chan struct{}
	mu      sync.Mutex
	budgets []Budget // to be set; nil for none
	status  atomic.Pointer[Status]
}

// New makes a Client, which asks for nothing before Run. An error is in the options.
func New(s *store.Store, o Options) (*Client, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if s.Timeout() > o.Period/2 {
		return nil, fmt.Errorf("shared classes: a request may take %v, which is more than half of the period of %v", s.Timeout(), o.Period)
	}
	if s.Backoff() > o.Period { // or it would find Redis again when that has learned without it
		return nil, fmt.Errorf("shared classes: the store may pause for %v, which is more than the period of %v", s.Backoff(), o.Period)
	}
	c := &Client{store: s, core: newCore(o, s.Timeout()), woken: make(chan struct{}, 1)}
	c.status.Store(&Status{})
	return c, nil
}

// Set says what this host holds, from now on. Each Holder is there once. Leases
// of holders that stay are kept, those of others are given back: their traffic
// must have ended.
func (c *Client) Set(budgets []Budget) {
	c.mu.Lock()
	c.budgets = append([]Budget{}, budgets...)
	c.mu.Unlock()
	c.Wake()
}

// Wake has the traffic observed now: for who sees that an idle holder has traffic waiting.
func (c *Client) Wake() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

// Run renews the leases until ctx is done, then gives them back and returns nil.
// By then the traffic must have ended. Run is called once.
func (c *Client) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			c.end(context.WithoutCancel(ctx))
			return nil
		case <-c.woken:
		case <-timer.C:
		}
		c.turn(ctx)
		c.publish()
		timer.Reset(time.Until(c.core.next(time.Now())))
	}
}

func (c *Client) turn(ctx context.Context) {
	c.mu.Lock()
	budgets := c.budgets
	c.budgets = nil
	c.mu.Unlock()
	if budgets != nil {
		c.core.set(time.Now(), budgets)
	}
	c.apply()
	c.core.observe(time.Now(), c.core.o.Observe())
	if now := time.Now(); c.core.due(now) {
		t := c.core.begin(now)
		_ = c.store.Do(ctx, t.calls...) // each call has its error
		if ctx.Err() != nil {
			return
		}
		c.core.finish(time.Now(), t)
		c.apply()
	}
}

// apply puts shares into force that are not.
func (c *Client) apply() {
	shares := c.core.changes(time.Now())
	if shares == nil {
		return
	}
	given := maps.Clone(shares)
	if err := c.core.o.Apply(given); err != nil {
		c.core.problem = fmt.Errorf("apply shares: %w", err)
		return
	}
	c.core.inForce(time.Now(), shares)
}

// end gives the leases back, if Redis answers.
func (c *Client) end(ctx context.Context) {
	c.core.set(time.Now(), nil)
	if t := c.core.begin(time.Now()); len(t.calls) > 0 {
		_ = c.store.Do(ctx, t.calls...) // else they end by themselves
	}
	c.publish()
}

func (c *Client) publish() {
	s := c.core.status(time.Now())
	c.status.Store(&s)
}

// Status returns what was so at the end of the last turn. Any goroutine may call it.
func (c *Client) Status() Status {
	s := *c.status.Load()
	s.Holders = slices.Clone(s.Holders)
	now := time.Now()
	for i, h := range s.Holders {
		s.Holders[i].Left = max(0, h.end.Sub(now))
	}
	return s
}
