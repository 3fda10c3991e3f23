package shaper

import (
	"fmt"
	"time"
)

// A limit is what every queue, or every source, may take.
type limit struct {
	rate        Rate
	burst, need int64
}

func newLimit(r Rate) limit {
	return limit{r, int64(DefaultBurst(r)), int64(Chunk(r))}
}

func (l limit) apply(b *bucket, now time.Duration) { b.set(l.rate, l.burst, l.need, now) }

// SetLimits sets the rate, in bits per second, of every queue and of every
// source; 0 is no limit. Levels are kept, and those who wait are looked at again.
func (t *Tree) SetLimits(perQueue, perSource Rate, now time.Duration) {
	t.perQueue, t.perSrc = newLimit(perQueue), newLimit(perSource)
	for _, s := range t.sources {
		t.perSrc.apply(&s.limit, now)
	}
	for _, q := range t.queues {
		t.perQueue.apply(&q.limit, now)
	}
	t.reseat(now)
}

// Update changes the tree in place to l; classes are the same when they have
// the same name. Every bucket keeps its level, clipped to its new burst: a
// change refills nothing. Queues of a class that is gone move to the default.
// A link that is not a valid tree is refused, and changes nothing.
func (t *Tree) Update(l Link, now time.Duration) error {
	if len(l.Classes) == 0 {
		l.Classes = []Class{{Name: "default", Default: true}}
	}
	if err := l.check(); err != nil {
		return err
	}
	for _, c := range t.byName {
		c.unseat(t)
	}
	old := t.byName
	t.name, t.byName, t.leaves, t.fallback = l.Name, make(map[string]*class, len(old)), nil, nil
	r := t.root
	r.name, r.level, r.kids, r.turns, r.loans = l.Name, 0, nil, turns{}, turns{}
	r.limit(Class{Ceil: l.Rate, Burst: l.Burst}, chunkMax, now)
	r.free = l.Rate == 0
	for i := range l.Classes {
		t.grow(r, &l.Classes[i], old, now)
	}
	r.weigh()
	for _, q := range t.queues {
		if t.byName[q.leaf.name] != q.leaf {
			t.withdraw(q, now)
			t.move(q, t.fallback, now)
		}
	}
	t.reseat(now)
	return nil
}

// grow adds spec below parent, with the class it was before if there was one.
func (t *Tree) grow(parent *class, spec *Class, old map[string]*class, now time.Duration) {
	c := old[spec.Name]
	if c == nil || (c.level == 0) != spec.Leaf() {
		c = &class{}
		c.own.c, c.loan.c, c.event.who = c, c, c
	}
	c.name, c.parent, c.priority, c.mode, c.kids, c.level = spec.Name, parent, spec.Priority, spec.Mode, nil, 0
	parent.kids = append(parent.kids, c)
	t.byName[c.name] = c
	limits := *spec
	if spec.Budget > 0 { // no share is a share, and no ceil is none
		limits.Rate = max(spec.Rate, 1)
		limits.Ceil = limits.Rate
	}
	c.limit(limits, parent.chunk, now)
	c.free = parent.free && limits.Ceil == 0 && limits.Rate == 0
	for i := range spec.Children {
		t.grow(c, &spec.Children[i], old, now)
	}
	if spec.Leaf() {
		t.leaves = append(t.leaves, c)
		if spec.Default {
			t.fallback = c
		}
	}
	c.weigh()
	parent.level = max(parent.level, c.level+1)
}

// limit sets the class's buckets; most bounds its chunk: that of its parent.
func (c *class) limit(spec Class, most int64, now time.Duration) {
	fastest := spec.Ceil
	if fastest == 0 {
		fastest = spec.Rate
	}
	burst := int64(spec.Burst)
	if burst == 0 {
		burst = int64(DefaultBurst(fastest))
	}
	own := min(int64(Chunk(spec.Ceil)), max(1, burst/2)) // a turn must not need a full bucket
	c.chunk = min(own, most)
	c.ceil.set(spec.Ceil, burst, own, now)
	guarantee := int64(DefaultBurst(spec.Rate))
	if spec.Burst != 0 {
		guarantee = min(guarantee, burst)
	}
	c.rate.set(spec.Rate, guarantee, min(int64(Chunk(spec.Rate)), max(1, guarantee/2), c.chunk), now)
}

// weigh shares a round among the children in proportion to their guarantees:
// the largest has one chunk of the link, one without a guarantee a thousandth.
func (c *class) weigh() {
	var largest Rate
	for _, k := range c.kids {
		largest = max(largest, k.rate.rate)
	}
	for _, k := range c.kids {
		k.weight = c.chunk
		if largest > 0 {
			k.weight = max(int64(float64(c.chunk)*float64(k.rate.rate)/float64(largest)), c.chunk/1000, 1)
		}
	}
}

func (c *class) unseat(t *Tree) {
	c.turns, c.loans = turns{}, turns{}
	c.own.next, c.own.prev, c.loan.next, c.loan.prev = nil, nil, nil, nil
	t.events.remove(&c.event)
}

// reseat looks at everybody again.
func (t *Tree) reseat(now time.Duration) {
	for _, q := range t.queues {
		if q.backlog {
			t.withdraw(q, now)
			t.offer(q, now)
		}
	}
	for _, s := range t.sources {
		s.due(t, now)
	}
	for _, c := range t.leaves {
		t.place(c, now)
	}
}

// check reports what makes l no valid tree.
func (l *Link) check() error {
	names, defaults := map[string]bool{}, 0
	var walk func(list []Class, depth int) error
	walk = func(list []Class, depth int) error {
		for i := range list {
			c := &list[i]
			switch {
			case names[c.Name]:
				return fmt.Errorf("link %q: two classes are named %q", l.Name, c.Name)
			case depth > maxDepth:
				return fmt.Errorf("link %q: class %q is nested more than %d deep", l.Name, c.Name, maxDepth)
			case c.Priority >= priorities:
				return fmt.Errorf("link %q: class %q: priority %d is not within 0 to 7", l.Name, c.Name, c.Priority)
			case c.Rate < 0 || c.Ceil < 0 || c.Burst < 0:
				return fmt.Errorf("link %q: class %q: negative rate, ceil or burst", l.Name, c.Name)
			}
			names[c.Name] = true
			if c.Default && c.Leaf() {
				defaults++
			}
			if err := walk(c.Children, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(l.Classes, 1); err != nil {
		return err
	}
	if l.Rate < 0 || l.Burst < 0 {
		return fmt.Errorf("link %q: negative rate or burst", l.Name)
	}
	if defaults != 1 {
		return fmt.Errorf("link %q: %d default classes, want 1", l.Name, defaults)
	}
	return nil
}
