package admission

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Options of an Admission. The zero value does for classes that are not shared.
type Options struct{}

// An Admission decides for a set of classes. See New. Safe for concurrent use.
type Admission struct {
	options Options
	classes atomic.Pointer[map[string]*class]

	mu     sync.Mutex // held by Update
	counts map[string]*counts
}

// A class as it is in force; what changes with use is behind its pointers.
type class struct {
	Class
	limits
	local  *local // of a shared class: for when the store is away
	counts *counts
}

// New returns an Admission without classes.
func New(o Options) *Admission {
	a := &Admission{options: o, counts: map[string]*counts{}}
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
		if was := old[name]; was != nil && was.unit == c.unit && was.Shared == c.Shared {
			c.local = was.local
			c.local.set(c.limits, c.burst, c.Keys)
		} else {
			c.local = newLocal(c.limits, c.burst, c.Keys)
		}
	}
	a.classes.Store(&next)
	return nil
}

// Take decides on a request. An error is *UnknownClassError, *TooLargeError,
// *OutageError, ctx's, or wraps ErrRequest; then nothing is taken. It blocks for
// Request.Wait at most.
func (a *Admission) Take(ctx context.Context, r Request) (Decision, error) {
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
	granted, s, err := c.local.take(ctx, c, int(r.Cost*c.each), &r)
	if err != nil {
		return Decision{}, err
	}
	c.counts.count(granted, false)
	return c.decision(granted, s), nil
}

func (c *class) decision(granted bool, s state) Decision {
	return Decision{
		Granted: granted, Unit: c.unit, Limit: int64(c.burst) / c.each, Remaining: s.tokens / c.each,
		RetryAfter: s.retry, Reset: s.reset, Window: c.window(),
	}
}
