package admission

import (
	"cmp"
	"slices"
	"sync/atomic"
)

// MaxWaiters is how many may wait at once. Others are answered as if they did not want to.
// Who serves them has to have more connections than that.
const MaxWaiters = 256

// Stats are a class's decisions so far, and what it holds.
type Stats struct {
	Class    string
	Granted  uint64
	Refused  uint64
	TooLarge uint64
	Outage   uint64 // refused since the store was away and the class is closed then
	Alone    uint64 // of those granted and refused: by this host, since the store was away
	Keys     int    // that have a bucket here; those of a shared class are in the store
	Waiting  int
}

// counts belong to a class's name and outlive changes of it.
type counts struct {
	granted, refused, tooLarge, outage, alone atomic.Uint64
	waiting                                   atomic.Int64
}

// enter takes a waiter's place, if there is one.
func (a *Admission) enter(c *class) bool {
	c.counts.waiting.Add(1)
	if a.waiting.Add(1) > MaxWaiters {
		a.leave(c)
		return false
	}
	return true
}

func (a *Admission) leave(c *class) {
	c.counts.waiting.Add(-1)
	a.waiting.Add(-1)
}

func (n *counts) count(granted, alone bool) {
	if granted {
		n.granted.Add(1)
	} else {
		n.refused.Add(1)
	}
	if alone {
		n.alone.Add(1)
	}
}

// Stats returns those of all classes, by name. Counters of a class that was
// removed go on when it comes back.
func (a *Admission) Stats() []Stats {
	var all []Stats
	for _, c := range *a.classes.Load() {
		n := c.counts
		all = append(all, Stats{
			Class: c.Name, Granted: n.granted.Load(), Refused: n.refused.Load(), TooLarge: n.tooLarge.Load(),
			Outage: n.outage.Load(), Alone: n.alone.Load(), Keys: c.local.keys.len(), Waiting: int(n.waiting.Load()),
		})
	}
	slices.SortFunc(all, func(a, b Stats) int { return cmp.Compare(a.Class, b.Class) })
	return all
}
