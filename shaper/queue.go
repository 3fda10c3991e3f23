package shaper

import (
	"net/netip"
	"time"
)

// A Queue is one stream of bytes that waits for its turn: one direction of a
// session. Its owner attaches it to a Tree, says when it has something to send,
// and sends when the tree says so. The zero value is ready to be attached.
type Queue struct {
	// User is the owner's; the tree never touches it.
	User any

	leaf    *class
	flow    *flow
	next    *Queue // in the flow's ring, when it may send
	prev    *Queue
	limit   bucket // per queue
	deficit int64
	event   event // waiting for its own bucket
	since   time.Duration
	place   int32 // in the tree's list of queues
	backlog bool
}

// A flow is what one source has in one leaf: the ring of its queues that may send.
type flow struct {
	leaf     *class
	source   *source
	ring     *Queue // the one whose turn is next
	next     *flow  // in the leaf's ring, when it may send
	prev     *flow
	deficit  int64
	attached int
	waiting  bool // for the source's bucket, with something to send
}

// A source is one client address, in all leaves of a tree.
type source struct {
	addr  netip.Addr
	limit bucket // per source
	event event
	flows []*flow
}

// due: the queue's own bucket has filled.
func (q *Queue) due(t *Tree, now time.Duration) { t.offer(q, now) }

// due: the source's bucket has filled; all of its flows may send again.
func (s *source) due(t *Tree, now time.Duration) {
	for _, f := range s.flows {
		if f.waiting {
			f.waiting = false
			t.offerFlow(f, now)
		}
	}
}

// offer lets q take part in its flow if its own bucket allows.
func (t *Tree) offer(q *Queue, now time.Duration) {
	if !q.backlog || q.next != nil {
		return
	}
	if !q.limit.open(now) {
		t.events.set(&q.event, q.limit.opens(now))
		return
	}
	t.events.remove(&q.event)
	f := q.flow
	if f.ring == nil {
		f.ring, q.next, q.prev = q, q, q
		t.offerFlow(f, now)
		return
	}
	q.next, q.prev = f.ring, f.ring.prev // behind all others
	q.prev.next, q.next.prev = q, q
}

// withdraw takes q out of its flow's ring.
func (t *Tree) withdraw(q *Queue, now time.Duration) {
	if q.next == nil {
		return
	}
	f := q.flow
	if q.next == q {
		f.ring = nil
		t.withdrawFlow(f, now)
	} else {
		q.prev.next, q.next.prev = q.next, q.prev
		if f.ring == q {
			f.ring = q.next
		}
	}
	q.next, q.prev = nil, nil
}

// offerFlow lets f take part in its leaf if its source's bucket allows.
func (t *Tree) offerFlow(f *flow, now time.Duration) {
	if f.ring == nil || f.next != nil {
		return
	}
	if s := f.source; !s.limit.open(now) {
		f.waiting = true
		t.events.set(&s.event, s.limit.opens(now))
		return
	}
	c := f.leaf
	if c.ring == nil {
		c.ring, f.next, f.prev = f, f, f
		t.place(c, now)
		return
	}
	f.next, f.prev = c.ring, c.ring.prev
	f.prev.next, f.next.prev = f, f
}

func (t *Tree) withdrawFlow(f *flow, now time.Duration) {
	f.waiting = false
	if f.next == nil {
		return
	}
	c := f.leaf
	if f.next == f {
		c.ring = nil
		t.place(c, now)
	} else {
		f.prev.next, f.next.prev = f.next, f.prev
		if c.ring == f {
			c.ring = f.next
		}
	}
	f.next, f.prev = nil, nil
}

// pick returns the queue of leaf c whose turn it is: deficit round robin among
// the flows, then among the flow's queues, by the chunk of each.
func (c *class) pick() *Queue {
	for c.ring.deficit <= 0 {
		c.ring.deficit += c.chunk
		if c.ring.deficit <= 0 {
			c.ring = c.ring.next
		}
	}
	f := c.ring
	for f.ring.deficit <= 0 {
		f.ring.deficit += c.chunk
		if f.ring.deficit <= 0 {
			f.ring = f.ring.next
		}
	}
	return f.ring
}

// spend takes n bytes from the deficits of q and its flow; who has spent its own steps behind the others.
func (q *Queue) spend(n int64) {
	f := q.flow
	if q.deficit -= n; q.deficit <= 0 && f.ring == q && q.next != nil {
		f.ring = q.next
	}
	if f.deficit -= n; f.deficit <= 0 && f.leaf.ring == f && f.next != nil {
		f.leaf.ring = f.next
	}
}
