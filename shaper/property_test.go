package shaper

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// randomClasses makes up to width classes that share rate, nested up to depth.
func randomClasses(rng *rand.Rand, prefix string, rate Rate, width, depth int) []Class {
	n := 1 + rng.IntN(width)
	list := make([]Class, n)
	for i := range list {
		guarantee := rate / Rate(n) * Rate(rng.IntN(101)) / 100
		c := Class{
			Name: fmt.Sprintf("%s%c", prefix, 'a'+i), Priority: uint8(rng.IntN(priorities)), Rate: guarantee,
			Ceil: guarantee + Rate(rng.Int64N(int64(rate-guarantee)+1)),
		}
		if c.Ceil < 8*Kbit {
			c.Ceil = 8 * Kbit
		}
		if rng.IntN(5) == 0 {
			c.Mode = Leaky
		}
		if depth > 1 && rng.IntN(3) == 0 {
			c.Mode = Token
			c.Children = randomClasses(rng, c.Name, c.Rate, width, depth-1)
		}
		list[i] = c
	}
	return list
}

// makeDefault marks the first leaf.
func makeDefault(list []Class) {
	c := &list[0]
	for !c.Leaf() {
		c = &c.Children[0]
	}
	c.Default = true
}

// below returns the names of the leaves of c.
func below(c *Class) map[string]bool {
	names := map[string]bool{}
	if c.Leaf() {
		names[c.Name] = true
	}
	for i := range c.Children {
		for name := range below(&c.Children[i]) {
			names[name] = true
		}
	}
	return names
}

func each(list []Class, f func(*Class)) {
	for i := range list {
		f(&list[i])
		each(list[i].Children, f)
	}
}

// Random trees under random, changing demand, with an owner that is late: no
// limit is ever exceeded in any window, and whoever has something to send gets
// his guarantee.
func TestLimitsAndGuaranteesUnderAnyMixOfDemands(t *testing.T) {
	rng := seeded(t)
	for round := range 60 {
		link := Link{Rate: Rate(1+rng.IntN(1000)) * Mbit}
		link.Classes = randomClasses(rng, "", link.Rate, 4, 3)
		makeDefault(link.Classes)
		w := newWorld(t, link)
		w.late = func() time.Duration { return time.Duration(rng.Int64N(int64(time.Millisecond))) }
		each(link.Classes, func(c *Class) {
			if c.Leaf() {
				for i := range 1 + rng.IntN(3) {
					w.add(c.Name, i, 0)
				}
			}
		})
		always := w.list[rng.IntN(len(w.list))]
		w.give(always, forever)
		for w.now < 3*time.Second {
			s := w.list[rng.IntN(len(w.list))]
			if s.left < forever/2 {
				w.give(s, rng.Int64N(int64(link.Rate/8/10)+1))
			}
			w.run(w.now + time.Duration(rng.Int64N(int64(20*time.Millisecond))))
		}
		w.bounded("link", link.Rate, DefaultBurst(link.Rate), anyone)
		each(link.Classes, func(c *Class) {
			in := below(c)
			w.bounded(c.Name, c.Ceil, DefaultBurst(c.Ceil), func(s *sender) bool { return in[s.name] })
			if c.Name == always.name {
				earned, _ := earn(c.Rate, w.now, 0)
				// A turn of its own, and one of somebody else that is under way.
				slack := int64(2*Chunk(c.Rate)) + int64(2*Chunk(link.Rate)) + earned/200
				if got := w.sum(0, of(c.Name)); got < earned-slack {
					t.Fatalf("round %d: class %s has %d bytes, %d are guaranteed; link %+v", round, c.Name, got, earned, link)
				}
			}
		})
	}
}

// While somebody may send, the link does not rest.
func TestLinkIsNeverIdleWhileSomebodyMaySend(t *testing.T) {
	rng := seeded(t)
	for range 40 {
		link := Link{Rate: Rate(1+rng.IntN(1000)) * Mbit}
		link.Classes = randomClasses(rng, "", link.Rate, 5, 3)
		makeDefault(link.Classes)
		each(link.Classes, func(c *Class) { c.Ceil = link.Rate })
		w := newWorld(t, link)
		each(link.Classes, func(c *Class) {
			if c.Leaf() && rng.IntN(2) == 0 {
				w.add(c.Name, 0, forever)
			}
		})
		w.add("", 1, forever)
		w.run(3 * time.Second)
		near(t, fmt.Sprintf("link %+v", link), mbits(w.sum(time.Second, anyone), 2*time.Second), float64(link.Rate)/1e6, 0.01)
	}
}

// Everything that can happen to a tree, in any order: it never hands out a turn
// to a queue that has nothing to send, nobody who may send is forgotten, and its books are right.
func TestAnyOrderOfCalls(t *testing.T) {
	rng := seeded(t)
	for range 30 {
		link := func() Link {
			l := Link{Rate: Rate(rng.IntN(3)) * 50 * Mbit}
			l.Classes = randomClasses(rng, "", 100*Mbit, 3, 2)
			makeDefault(l.Classes)
			return l
		}
		w := newWorld(t, link())
		names := []string{"a", "b", "c", "aa", "ab", "ba", "bb", "nobody"}
		var total int64
		for range 2000 {
			w.now += time.Duration(rng.Int64N(int64(2 * time.Millisecond)))
			var s *sender
			if len(w.list) > 0 {
				s = w.list[rng.IntN(len(w.list))]
			}
			switch op := rng.IntN(12); {
			case s == nil || op == 0 && len(w.list) < 40:
				w.add(names[rng.IntN(len(names))], rng.IntN(4), 0)
			case op == 1:
				w.tree.Remove(s.q, w.now)
				w.list = remove(w.list, s)
			case op == 2:
				w.tree.Move(s.q, names[rng.IntN(len(names))], w.now)
			case op == 3:
				w.tree.Deactivate(s.q, w.now)
				s.left = 0
			case op == 4 && rng.IntN(10) == 0:
				if err := w.tree.Update(link(), w.now); err != nil {
					t.Fatal(err)
				}
			case op == 5 && rng.IntN(10) == 0:
				w.tree.SetLimits(Rate(rng.IntN(2))*3*Mbit, Rate(rng.IntN(2))*5*Mbit, w.now)
			case op < 9:
				w.give(s, rng.Int64N(20_000))
			default:
				w.run(w.now + time.Duration(rng.Int64N(int64(5*time.Millisecond))))
			}
			w.audit()
		}
		for _, e := range w.sent {
			total += e.n
		}
		if st := w.tree.Stats(w.now); int64(st.Bytes) != total {
			t.Fatalf("the link counts %d bytes, %d were sent", st.Bytes, total)
		}
		// With the limits gone, whoever still waits is served.
		if err := w.tree.Update(Link{}, w.now); err != nil {
			t.Fatal(err)
		}
		w.tree.SetLimits(0, 0, w.now)
		w.run(w.now)
		for _, s := range w.list {
			if s.left != 0 {
				t.Fatalf("a queue of class %s was forgotten with %d bytes", s.name, s.left)
			}
		}
	}
}

func remove(list []*sender, s *sender) []*sender {
	for i := range list {
		if list[i] == s {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}

// audit compares what the tree keeps with what the world knows.
func (w *world) audit() {
	w.t.Helper()
	queues, waiting := map[*class]int{}, map[*class]int{}
	for _, s := range w.list {
		if s.q.backlog != (s.left > 0) {
			w.t.Fatalf("backlog %v with %d bytes left", s.q.backlog, s.left)
		}
		if w.tree.byName[s.q.leaf.name] != s.q.leaf {
			w.t.Fatalf("a queue is in class %s, which is gone", s.q.leaf.name)
		}
		queues[s.q.leaf]++
		if s.q.backlog {
			waiting[s.q.leaf]++
			f := s.q.flow
			switch {
			case s.q.next == nil && s.q.event.place == 0:
				w.t.Fatal("a backlogged queue is neither in turn nor waiting for its bucket")
			case s.q.next != nil && f.next == nil && (!f.waiting || f.source.event.place == 0):
				w.t.Fatal("a flow with queues in turn is neither in turn nor waiting for its source's bucket")
			}
		}
	}
	for _, c := range w.tree.leaves {
		if c.queues != queues[c] || c.backlogged != waiting[c] {
			w.t.Fatalf("class %s: %d queues, %d backlogged; want %d, %d", c.name, c.queues, c.backlogged, queues[c], waiting[c])
		}
	}
	for i, e := range w.tree.events {
		if int(e.place) != i+1 || i > 0 && w.tree.events[(i-1)/2].at > e.at {
			w.t.Fatal("the heap of events is out of order")
		}
	}
	if len(w.tree.queues) != len(w.list) {
		w.t.Fatalf("%d queues in the tree, want %d", len(w.tree.queues), len(w.list))
	}
}
