package shaper

import (
	"math/bits"
	"time"
)

const (
	priorities = 8
	// maxDepth is how many levels of classes a link may have below itself.
	maxDepth = 7
)

// A class is a node of the tree: the link itself, an inner class or a leaf.
//
// What may send now is kept where it is offered. Each class offers its parent
// at most two things: its best turn that needs no loan from the parent (a leaf
// under its guarantee, or a lender with a borrower below), and, while it is
// over its guarantee, its best borrower. So the next turn is found by going
// down from the link, and a class that changes touches only its ancestors.
type class struct {
	name     string
	parent   *class
	level    uint8 // 0 for a leaf, else one more than the highest child
	priority uint8
	mode     Mode
	kids     []*class
	weight   int64 // its share among its siblings, in bytes a round

	rate  bucket // the guarantee; never open when it is 0, except the link's
	ceil  bucket // what it may send at all
	chunk int64  // the most in one turn
	free  bool   // neither it nor anything above it has a limit
	need  int64  // of its own best turn

	ring  *flow // of a leaf: its sources that may send
	turns turns // of an inner class: children whose best turn needs no loan from here, by key
	loans turns // of an inner class: children that would borrow from here or above, by priority
	own   seat  // in the parent's turns
	loan  seat  // in the parent's loans
	event event // its ceil or its guarantee fills

	queues, backlogged int
	emptied            time.Duration // when it last ran out of something to send
	stats              counters
}

// A seat is a class's place in one ring of its parent.
type seat struct {
	c          *class
	next, prev *seat
	key        int8
	deficit    int64
}

// turns are rings of seats by key: the lower, the earlier.
type turns struct {
	used uint64 // the keys that have a ring
	ring [64]*seat
}

// key orders turns: guarantees first, then loans from the lowest lender, each by priority.
func key(level, priority uint8) int8 { return int8(level*priorities + priority) }

// first returns the lowest key in use, or -1.
func (ts *turns) first() int8 {
	if ts.used == 0 {
		return -1
	}
	return int8(bits.TrailingZeros64(ts.used))
}

// seat puts s into the ring of key, behind the others, or out of all when key is -1.
func (ts *turns) seat(s *seat, key int8) {
	if s.next != nil {
		if s.key == key {
			return
		}
		ts.leave(s)
	}
	if key < 0 {
		return
	}
	s.key = key
	head := ts.ring[key]
	if head == nil {
		ts.ring[key], s.next, s.prev = s, s, s
		ts.used |= 1 << key
		return
	}
	s.next, s.prev = head, head.prev
	s.prev.next, head.prev = s, s
	if s.deficit > 0 { // its turn was interrupted
		ts.ring[key] = s
	}
}

func (ts *turns) leave(s *seat) {
	if s.next == s {
		ts.ring[s.key] = nil
		ts.used &^= 1 << s.key
	} else {
		s.prev.next, s.next.prev = s.next, s.prev
		if ts.ring[s.key] == s {
			ts.ring[s.key] = s.next
		}
	}
	s.next, s.prev = nil, nil
}

// turn returns the seat of the ring whose turn it is: deficit round robin by weight.
func (ts *turns) turn(key int8) *class {
	s := ts.ring[key]
	for passes := 0; s.deficit <= 0; s = s.next {
		if s == ts.ring[key] {
			if passes++; passes > 2 {
				ts.skip(key)
			}
		}
		s.deficit += s.c.weight
		if s.deficit > 0 {
			break
		}
	}
	ts.ring[key] = s
	return s.c
}

// skip adds as many rounds to every seat of the ring as pass before one of them has its turn.
func (ts *turns) skip(key int8) {
	head := ts.ring[key]
	rounds := -head.deficit / head.c.weight
	for s := head.next; s != head; s = s.next {
		rounds = min(rounds, -s.deficit/s.c.weight)
	}
	for s, again := head, true; again; again = s != head {
		s.deficit += rounds * s.c.weight
		s = s.next
	}
}

// best returns the keys under which c is to be seated at its parent, -1 for
// none, and sets what its own best turn needs. A guarantee needs no more than
// its own chunk on the way to the link, so that it does not wait until there is
// room for the larger chunks of borrowers.
func (c *class) best(now time.Duration) (own, loan int8) {
	own, loan = -1, -1
	if c.level == 0 {
		if c.ring == nil || !c.ceil.open(now) {
			return own, loan
		}
		// A class under its guarantee keeps its seat among the borrowers, and its share of their
		// round: it comes first anyway, and is back among them after the next turn.
		if c.guaranteed(now) {
			own, c.need = key(0, c.priority), min(c.chunk, c.rate.need)
		}
		return own, int8(c.priority)
	}
	if own = c.turns.first(); own >= 0 {
		if c.need = c.turns.turn(own).need; !c.ceil.holds(c.need, now) {
			own = -1
		}
	}
	if !c.ceil.open(now) {
		return own, loan
	}
	if loan = c.loans.first(); loan >= 0 && c.guaranteed(now) {
		if k := key(c.level, uint8(loan)); own < 0 || k < own {
			own, c.need = k, c.chunk
		}
	}
	return own, loan
}

// guaranteed reports whether c is under its guarantee.
func (c *class) guaranteed(now time.Duration) bool {
	return (c.rate.rate > 0 || c.parent == nil) && c.rate.open(now)
}

// place seats c and its ancestors where they belong now, as far as that changes.
func (t *Tree) place(c *class, now time.Duration) {
	for ; c.parent != nil; c = c.parent {
		own, loan := c.best(now)
		p := c.parent
		p.turns.seat(&c.own, own)
		p.loans.seat(&c.loan, loan)
		t.events.set(&c.event, c.changes(now))
	}
}

// changes returns when time alone will change what c offers.
func (c *class) changes(now time.Duration) time.Duration {
	switch {
	case c.ring == nil && c.turns.used|c.loans.used == 0:
		return never
	case !c.ceil.open(now):
		if c.turns.used != 0 && !c.ceil.holds(c.need, now) {
			return c.ceil.when(c.need, now)
		}
		return c.ceil.opens(now)
	case c.rate.rate > 0 && !c.rate.open(now):
		return c.rate.opens(now)
	}
	return never
}

// due: one of the class's buckets has filled.
func (c *class) due(t *Tree, now time.Duration) { t.place(c, now) }

// spend takes n bytes from the seat's share of the round; who has none left steps behind the others.
func (s *seat) spend(n int64) {
	if s.deficit -= n; s.deficit <= 0 && s.next != nil {
		ring := &s.c.parent.turns
		if s == &s.c.loan {
			ring = &s.c.parent.loans
		}
		if ring.ring[s.key] == s {
			ring.ring[s.key] = s.next
		}
	}
}

// forgetCredit is for a leaky class that had nothing to send: quiet time earns
// nothing, so one chunk is left. A pause shorter than a chunk's own time is not
// quiet, only a sender that was not quite ready: it keeps one more.
func (c *class) forgetCredit(now time.Duration) {
	chunks := int64(1)
	if now-c.emptied < chunkTime {
		chunks = 2
	}
	for _, b := range [...]*bucket{&c.ceil, &c.rate} {
		if b.refill(now); b.tokens > chunks*b.need {
			b.tokens, b.rem = chunks*b.need, 0
		}
	}
}
