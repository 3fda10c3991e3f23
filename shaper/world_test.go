package shaper

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

// A world drives a tree in virtual time: senders with a demand each, and an
// owner that wakes when the tree asks for it, or late.
type world struct {
	t    *testing.T
	tree *Tree
	now  time.Duration
	late func() time.Duration // how late the owner wakes; nil for punctual
	list []*sender
	sent []sending
}

// A sender is a queue with so many bytes left to send.
type sender struct {
	q     *Queue
	name  string // of its class
	src   int
	left  int64
	bytes int64 // sent so far
	most  int   // per turn, as a socket would limit it; 0 for all that is allowed
}

type sending struct {
	at time.Duration
	by *sender
	n  int64
}

const forever = math.MaxInt64 / 2

func newWorld(t *testing.T, l Link) *world {
	t.Helper()
	tree, err := NewTree(l, 0)
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, tree: tree}
}

// add makes a sender in a class, from a source, with bytes to send.
func (w *world) add(class string, src int, bytes int64) *sender {
	s := &sender{q: &Queue{}, name: class, src: src}
	s.q.User = s
	w.tree.Add(s.q, class, netip.AddrFrom4([4]byte{10, 0, byte(src >> 8), byte(src)}), w.now)
	w.list = append(w.list, s)
	w.give(s, bytes)
	return s
}

func (w *world) give(s *sender, bytes int64) {
	s.left += bytes
	if s.left > 0 {
		w.tree.Activate(s.q, w.now)
	}
}

// run lets the senders send until the time given. The world stops there, with
// everything sent that could be.
func (w *world) run(until time.Duration) {
	w.t.Helper()
	idle := 0
	for {
		q, n := w.tree.Next(w.now)
		if q == nil {
			wake := w.tree.Wake(w.now)
			if wake <= w.now {
				if idle++; idle > 10 {
					w.t.Fatalf("at %v: nobody's turn, yet Wake says %v", w.now, wake)
				}
			}
			if w.late != nil && wake < never-time.Hour {
				wake += w.late()
			}
			if wake > until {
				w.now = until
				return
			}
			w.now = max(w.now, wake)
			continue
		}
		idle = 0
		s := q.User.(*sender)
		if n <= 0 {
			w.t.Fatalf("at %v: a turn of %d bytes", w.now, n)
		}
		k := min(int64(n), s.left)
		if s.most > 0 {
			k = min(k, int64(s.most))
		}
		s.left -= k
		s.bytes += k
		w.sent = append(w.sent, sending{w.now, s, k})
		w.tree.Charge(q, int(k), s.left > 0, w.now)
	}
}

// sum is what the senders that match have sent since from.
func (w *world) sum(from time.Duration, match func(*sender) bool) (n int64) {
	for _, e := range w.sent {
		if e.at >= from && match(e.by) {
			n += e.n
		}
	}
	return n
}

func of(name string) func(*sender) bool { return func(s *sender) bool { return s.name == name } }
func anyone(*sender) bool               { return true }

// bounded demands that in every window of every length w at most rate·w + burst bytes were sent.
func (w *world) bounded(what string, rate Rate, burst Size, match func(*sender) bool) {
	w.t.Helper()
	// With excess(t) = sent(t) - rate·t, a window's bytes less its rate is a
	// difference of two excesses: the greatest is a rise above the minimum so far.
	var sent, least float64
	for _, e := range w.sent {
		if !match(e.by) {
			continue
		}
		earned := float64(rate) / 8 * e.at.Seconds()
		least = min(least, sent-earned)
		sent += float64(e.n)
		if over := sent - earned - least - float64(burst); over > 1 {
			w.t.Fatalf("%s: a window that ends at %v has %.0f bytes more than %v and %d bytes of burst", what, e.at, over, rate, burst)
		}
	}
}

// near demands that got is within one part in tolerance of want.
func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*want {
		t.Errorf("%s: %.4g, want %.4g ± %g %%", what, got, want, tolerance*100)
	}
}

// mbits is the rate in mbit/s of n bytes in d.
func mbits(n int64, d time.Duration) float64 { return float64(n) * 8 / d.Seconds() / 1e6 }

// seeded returns a random source and logs how to get it again.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, seed))
}

func jain(x []float64) float64 {
	var sum, squares float64
	for _, v := range x {
		sum += v
		squares += v * v
	}
	return sum * sum / (squares * float64(len(x)))
}
