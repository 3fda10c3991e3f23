package admission

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"shaperd/internal/store"
)

// An Admission decides for a set of classes. See New. Safe for concurrent use.
type Admission struct {
	classes atomic.Pointer[map[string]*class]
	cluster atomic.Pointer[cluster]
	waiting atomic.Int64

	mu     sync.Mutex // held by what changes classes
	counts map[string]*counts
	share  float64
}

// A class as it is in force; what changes with use is behind its pointers.
type class struct {
	Class
	limits
	local  *local // of a shared class those of alone
	alone  *alone // of a shared class
	lines  *lines // of a shared class
	counts *counts
}

// New returns an Admission without classes and without a store.
func New() *Admission {
	a := &Admission{counts: map[string]*counts{}, share: minPart}
	a.classes.Store(&map[string]*class{})
	return a
}

// Update puts other classes into force. A class that there was keeps its levels,
// its keys and its counters; only where it counts something else, or becomes
// shared or stops being so, it starts anew, full. On an error nothing has changed.
func (a *Admission) Update(classes []Class) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	old, next := *a.classes.Load(), make(map[string]*class, len(classes))
	for _, c := range classes {
		l, err := c.limits()
		if err != nil {
			return err
		}
		if next[c.Name] != nil {
			return fmt.Errorf("class %q is there twice", c.Name)
		}
		if c.Keys <= 0 {
			c.Keys = DefaultKeys
		}
		next[c.Name] = &class{Class: c, limits: l}
	}
	for name, c := range next {
		if c.counts = a.counts[name]; c.counts == nil {
			c.counts = &counts{}
			a.counts[name] = c.counts
		}
		was := old[name]
		kept := was != nil && was.unit == c.unit && was.Shared == c.Shared
		switch {
		case kept && c.Shared:
			c.local, c.alone, c.lines = was.local, was.alone, was.lines
			c.alone.set(c.limits, c.Keys, a.part(c))
		case kept:
			c.local = was.local
			c.local.set(c.limits, c.burst, c.Keys)
		case c.Shared:
			c.alone, c.lines = newAlone(c.limits, c.Keys, a.part(c)), &lines{}
			c.local = c.alone.local
		default:
			c.local = newLocal(c.limits, c.burst, c.Keys)
		}
	}
	a.classes.Store(&next)
	return nil
}

// SetStore sets where shared classes are decided, and the cluster's name, which
// hosts that share have in common. Without a store, which nil is too, it counts
// as away. It does not close the store that there was. This host's part is not
// known then: see SetShare.
func (a *Admission) SetStore(s *store.Store, name string) {
	a.SetShare(minPart)
	if s == nil {
		a.cluster.Store(nil)
		return
	}
	a.cluster.Store(newCluster(s, name))
}

// SetShare sets this host's part of the rates of classes with OutageShare, from 0 to
// 1: with four hosts it may be 0.25. Before, a host knows of no others, of which there
// may be many: its part is that of OutageMin.
func (a *Admission) SetShare(part float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.share = min(max(part, 0), 1)
	for _, c := range *a.classes.Load() {
		if c.alone != nil {
			c.alone.setPart(a.part(c))
		}
	}
}

// part is how much of a shared class this host alone may grant. Called with mu held.
func (a *Admission) part(c *class) float64 {
	switch c.OnOutage {
	case store.OutageOpen:
		return 1
	case store.OutageShare:
		return a.share
	}
	return minPart
}

// Take decides on a request. An error is *UnknownClassError, *TooLargeError,
// *OutageError, ctx's, or wraps ErrRequest; then nothing is taken. It blocks for
// Request.Wait at most.
func (a *Admission) Take(ctx context.Context, r Request) (Decision, error) {
	for {
		d, err := a.take(ctx, &r)
		if err != errChanged { //nolint:errorlint // it is not wrapped
			return d, err
		}
	}
}

func (a *Admission) take(ctx context.Context, r *Request) (Decision, error) {
	all := *a.classes.Load()
	c := all[r.Class]
	if c == nil {
		return Decision{}, &UnknownClassError{r.Class, nearest(r.Class, slices.Sorted(maps.Keys(all)))}
	}
	if err := r.check(c); err != nil {
		if _, ok := err.(*TooLargeError); ok { //nolint:errorlint // it is not wrapped
			c.counts.tooLarge.Add(1)
		}
		return Decision{}, err
	}
	if c.Shared {
		return c.decision(a.takeShared(ctx, c, int(r.Cost*c.each), r))
	}
	granted, s, err := a.takeLocal(ctx, c, int(r.Cost*c.each), r)
	return c.decision(granted, false, s, err)
}

func (c *class) decision(granted, alone bool, s state, err error) (Decision, error) {
	if err != nil {
		return Decision{}, err
	}
	c.counts.count(granted, alone)
	return Decision{
		Granted: granted, Alone: alone, NoRoom: s.full, Unit: c.unit, Limit: int64(c.burst) / c.each, Remaining: s.tokens / c.each,
		RetryAfter: s.retry, Reset: s.reset, Window: c.window(),
	}, nil
}
