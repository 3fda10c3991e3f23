package shaper

import (
	"net/netip"
	"slices"
	"time"
)

// A Tree schedules the bytes of one link among its classes, the sources in a
// class and the queues of a source. It belongs to one goroutine. Times are on
// the caller's monotonic clock and never go back.
//
// The owner attaches queues with Add, says with Activate that one has something
// to send, and asks Next whose turn it is; after it has sent, Charge accounts
// for what really went. When Next has nobody, Wake says when to ask again.
// Between Add and Remove none of them allocates.
type Tree struct {
	name     string
	root     *class
	leaves   []*class
	byName   map[string]*class
	fallback *class
	sources  map[netip.Addr]*source
	queues   []*Queue
	events   events
	perQueue limit
	perSrc   limit
	lender   uint8 // the level whose guarantee pays for the turn given last
}

// NewTree builds the scheduler of l, with every bucket full.
func NewTree(l Link, now time.Duration) (*Tree, error) {
	t := &Tree{root: &class{}, byName: map[string]*class{}, sources: map[netip.Addr]*source{}}
	if err := t.Update(l, now); err != nil {
		return nil, err
	}
	return t, nil
}

// leaf returns the leaf class of that name, or the default.
func (t *Tree) leaf(name string) *class {
	if c := t.byName[name]; c != nil && c.level == 0 {
		return c
	}
	return t.fallback
}

// Add attaches q, with nothing to send, to the class under the source src. An
// unknown class is the default.
func (t *Tree) Add(q *Queue, class string, src netip.Addr, now time.Duration) {
	*q = Queue{User: q.User, place: int32(len(t.queues))}
	q.event.who = q
	t.queues = append(t.queues, q)
	t.perQueue.apply(&q.limit, now)
	s := t.sources[src]
	if s == nil {
		s = &source{addr: src}
		s.event.who = s
		t.perSrc.apply(&s.limit, now)
		t.sources[src] = s
	}
	t.join(q, t.leaf(class), s)
}

// Remove detaches q.
func (t *Tree) Remove(q *Queue, now time.Duration) {
	t.Deactivate(q, now)
	s := q.flow.source
	t.part(q)
	if len(s.flows) == 0 {
		t.events.remove(&s.event)
		delete(t.sources, s.addr)
	}
	last := t.queues[len(t.queues)-1]
	t.queues[q.place], last.place = last, q.place
	t.queues[len(t.queues)-1] = nil
	t.queues = t.queues[:len(t.queues)-1]
}

// Move attaches q to another class, with what it has to send.
func (t *Tree) Move(q *Queue, class string, now time.Duration) { t.move(q, t.leaf(class), now) }

func (t *Tree) move(q *Queue, to *class, now time.Duration) {
	if q.leaf == to {
		return
	}
	backlog, since, s := q.backlog, q.since, q.flow.source
	t.Deactivate(q, now)
	t.part(q)
	t.join(q, to, s)
	if backlog {
		t.Activate(q, now)
		q.since = since
	}
}

// join makes q one of the queues that s has in c.
func (t *Tree) join(q *Queue, c *class, s *source) {
	i := slices.IndexFunc(s.flows, func(f *flow) bool { return f.leaf == c })
	if i < 0 {
		i = len(s.flows)
		s.flows = append(s.flows, &flow{leaf: c, source: s})
	}
	q.leaf, q.flow = c, s.flows[i]
	q.flow.attached++
	c.queues++
}

func (t *Tree) part(q *Queue) {
	f := q.flow
	f.leaf.queues--
	if f.attached--; f.attached == 0 {
		f.source.flows = slices.DeleteFunc(f.source.flows, func(g *flow) bool { return g == f })
	}
	q.leaf, q.flow = nil, nil
}

// Activate says that q has something to send. No effect when that is known.
func (t *Tree) Activate(q *Queue, now time.Duration) {
	if q.backlog {
		return
	}
	c := q.leaf
	if c.backlogged++; c.backlogged == 1 && c.mode == Leaky {
		c.forgetCredit(now)
	}
	q.backlog, q.since = true, now
	t.offer(q, now)
}

// Deactivate says that q has nothing to send any more.
func (t *Tree) Deactivate(q *Queue, now time.Duration) {
	if !q.backlog {
		return
	}
	q.backlog = false
	q.deficit = min(q.deficit, 0)
	if q.leaf.backlogged--; q.leaf.backlogged == 0 {
		q.leaf.emptied = now
	}
	t.events.remove(&q.event)
	t.withdraw(q, now)
}

// Next returns the queue whose turn it is and how many bytes it may send, or
// nil when none may send now. Every limit above the queue, and its own, holds
// that many.
func (t *Tree) Next(now time.Duration) (*Queue, int) {
	for t.events.next() <= now {
		e := t.events[0]
		t.events.remove(e)
		e.who.due(t, now)
	}
	leaf, n := t.pick(now)
	if leaf == nil || !t.root.ceil.holds(n, now) {
		return nil, 0
	}
	q := leaf.pick()
	n = min(n, q.limit.most(), q.flow.source.limit.most())
	if n == chunkMax && leaf.free && leaf.backlogged == 1 && q.limit.rate == 0 && q.flow.source.limit.rate == 0 {
		n = chunkAlone
	}
	return q, int(n)
}

// pick goes down from the link to the leaf whose turn is next, once the link
// holds the n bytes of it; nil when there is none. It notes who lends.
func (t *Tree) pick(now time.Duration) (leaf *class, n int64) {
	c, lending := t.root, false
	if c.turns.used|c.loans.used == 0 {
		return nil, 0
	}
	t.lender = 0
	for c.level > 0 {
		own, loan := c.turns.first(), c.loans.first()
		if !lending && loan >= 0 && c.guaranteed(now) && (own < 0 || key(c.level, uint8(loan)) < own) {
			lending, t.lender = true, c.level
		}
		switch {
		case lending:
			c = c.loans.turn(loan)
		case own >= 0:
			c = c.turns.turn(own)
		default: // borrowers, and the link has no spare
			return nil, 0
		}
	}
	if !lending {
		return c, c.need
	}
	return c, c.chunk
}

// Charge takes the n bytes that q has sent in the turn that Next gave it, which
// may be fewer than allowed, and says whether it has more. Everything that
// limits q is charged, and the guarantees from the lender up: a class that
// borrows keeps its own guarantee.
func (t *Tree) Charge(q *Queue, n int, more bool, now time.Duration) {
	leaf, size := q.leaf, int64(n)
	leaf.stats.turn(size, now-q.since, t.lender > 0, now)
	t.root.stats.bytes += uint64(n)
	q.since = now
	q.spend(size)
	q.limit.take(size, now)
	q.flow.source.limit.take(size, now)
	for c := leaf; c != nil; c = c.parent {
		c.ceil.take(size, now)
		if c.level >= t.lender {
			c.own.spend(size)
			c.rate.take(size, now)
			c.rate.tokens = max(c.rate.tokens, -c.rate.burst)
		} else {
			c.loan.spend(size)
		}
	}
	switch {
	case !more:
		t.Deactivate(q, now)
	case !q.limit.open(now):
		t.withdraw(q, now)
		t.offer(q, now)
	}
	if s := q.flow.source; !s.limit.open(now) {
		for _, f := range s.flows {
			t.withdrawFlow(f, now)
			t.offerFlow(f, now)
		}
	}
	t.place(leaf, now)
}

// Wake returns when to call Next again: now or earlier when it has somebody's
// turn already, math.MaxInt64 when nobody waits. While somebody waits for the
// link, a class that waits for a bucket of its own is not woken for: it has its
// turn with the link's next, which is no more than a chunk's time away.
func (t *Tree) Wake(now time.Duration) time.Duration {
	if leaf, n := t.pick(now); leaf != nil {
		return t.root.ceil.when(n, now)
	}
	return t.events.next()
}
