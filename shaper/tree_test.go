package shaper

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// leaf is a leaf class in mbit.
func leaf(name string, rate, ceil Rate, priority uint8) Class {
	return Class{Name: name, Rate: rate * Mbit, Ceil: ceil * Mbit, Priority: priority}
}

func dflt(c Class) Class { c.Default = true; return c }

func TestSharesFollowHTB(t *testing.T) {
	inner := Class{Name: "inner", Rate: 50 * Mbit, Ceil: 60 * Mbit, Children: []Class{leaf("x", 10, 60, 0), leaf("y", 20, 60, 0)}}
	for _, tc := range []struct {
		name    string
		classes []Class
		busy    []string
		want    map[string]float64 // mbit/s
	}{
		{"the spare is shared in proportion to the rates", []Class{leaf("a", 40, 100, 0), dflt(leaf("b", 10, 100, 0))},
			[]string{"a", "b"}, map[string]float64{"a": 80, "b": 20}},
		{"a lower priority number borrows first", []Class{leaf("a", 40, 100, 0), dflt(leaf("b", 10, 100, 1))},
			[]string{"a", "b"}, map[string]float64{"a": 90, "b": 10}},
		{"guarantees hold against any priority", []Class{leaf("a", 10, 100, 0), dflt(leaf("b", 70, 100, 7))},
			[]string{"a", "b"}, map[string]float64{"a": 30, "b": 70}},
		{"ceil is a hard cap and the rest goes on", []Class{leaf("a", 40, 60, 0), dflt(leaf("b", 10, 100, 1))},
			[]string{"a", "b"}, map[string]float64{"a": 60, "b": 40}},
		{"a class alone takes the link", []Class{leaf("a", 40, 100, 0), dflt(leaf("b", 10, 100, 1))},
			[]string{"a"}, map[string]float64{"a": 100}},
		{"without a guarantee a class lives from the spare", []Class{leaf("a", 60, 100, 3), dflt(leaf("b", 0, 100, 3))},
			[]string{"b"}, map[string]float64{"b": 100}},
		{"children share their parent's ceil", []Class{inner, dflt(leaf("b", 10, 100, 1))},
			[]string{"x", "y", "b"}, map[string]float64{"x": 20, "y": 40, "b": 40}},
		{"children are guaranteed their parent's rate", []Class{inner, dflt(leaf("b", 50, 100, 0))},
			[]string{"x", "y", "b"}, map[string]float64{"x": 50. / 3, "y": 100. / 3, "b": 50}},
		{"a child alone has all of its parent's, and what that borrows up to its ceil", []Class{inner, dflt(leaf("b", 10, 100, 0))},
			[]string{"x", "b"}, map[string]float64{"x": 60, "b": 40}},
		{"a shared class has its share, whatever else is free", []Class{leaf("a", 40, 60, 0), dflt(Class{Name: "b", Rate: 15 * Mbit, Budget: 30 * Mbit})},
			[]string{"a", "b"}, map[string]float64{"a": 60, "b": 15}},
		{"no share of a budget is nothing", []Class{leaf("a", 40, 60, 0), dflt(Class{Name: "b", Budget: 30 * Mbit})},
			[]string{"a", "b"}, map[string]float64{"a": 60, "b": 0}},
		{"a leaky class reaches its ceil", []Class{leaf("a", 40, 100, 0), {Name: "b", Rate: 30 * Mbit, Ceil: 30 * Mbit, Mode: Leaky, Default: true}},
			[]string{"a", "b"}, map[string]float64{"a": 70, "b": 30}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, Link{Name: "link", Rate: 100 * Mbit, Classes: tc.classes})
			for _, name := range tc.busy {
				for i := range 3 {
					w.add(name, i, forever)
				}
			}
			w.run(11 * time.Second)
			for name, want := range tc.want {
				near(t, name, mbits(w.sum(time.Second, of(name)), 10*time.Second), want, 0.005)
			}
		})
	}
}

func TestRatesFrom8KbitTo400Gbit(t *testing.T) {
	for _, rate := range []Rate{8 * Kbit, 64 * Kbit, Mbit, 100 * Mbit, Gbit, 5 * Gbit, 40 * Gbit, 400 * Gbit} {
		t.Run(rate.String(), func(t *testing.T) {
			w := newWorld(t, Link{Rate: rate, Classes: []Class{{Name: "a", Rate: rate, Ceil: rate, Default: true}}})
			w.add("a", 0, forever)
			chunk := Chunk(rate)
			for _, span := range []time.Duration{time.Second, 2 * time.Second} {
				w.run(span)
				earned, _ := earn(rate, span, 0)
				got, burst := w.sum(0, anyone), int64(DefaultBurst(rate))
				if got > earned+burst || got < earned+burst-int64(chunk) {
					t.Fatalf("%d bytes in %v, want %d and the burst of %d, less at most a chunk of %d", got, span, earned, burst, chunk)
				}
			}
			w.bounded("link", rate, DefaultBurst(rate), anyone)
		})
	}
}

func TestNoByteIsLostOrWonInHours(t *testing.T) {
	rng := seeded(t)
	const rate = 1_234_567 // 154320.875 bytes a second: there is always a remainder
	w := newWorld(t, Link{Rate: rate})
	w.add("default", 0, forever)
	for hour := time.Hour; hour <= 4*time.Hour; hour += time.Hour {
		for w.now < hour {
			w.run(min(hour, w.now+time.Duration(rng.Int64N(int64(10*time.Minute)))))
		}
		earned, _ := earn(rate, hour, 0)
		w.tree.root.ceil.refill(w.now)
		got := w.sum(0, anyone) + w.tree.root.ceil.tokens
		if want := earned + int64(DefaultBurst(rate)); got != want {
			t.Fatalf("after %v: %d bytes sent or in the bucket, want %d", hour, got, want)
		}
	}
}

func TestAtMostTheBurstPassesAfterIdle(t *testing.T) {
	for _, mode := range []Mode{Token, Leaky} {
		c := Class{Name: "a", Rate: 10 * Mbit, Ceil: 10 * Mbit, Burst: 100_000, Mode: mode, Default: true}
		w := newWorld(t, Link{Rate: Gbit, Classes: []Class{c}})
		w.run(time.Minute)
		w.add("a", 0, forever)
		w.run(time.Minute)
		want := int64(100_000)
		if mode == Leaky {
			want = int64(Chunk(10 * Mbit)) // quiet time earns nothing
		}
		if got := w.sum(time.Minute, anyone); got > want || got < want-int64(Chunk(10*Mbit)) {
			t.Errorf("%v: %d bytes at once after a minute of silence, want %d", mode, got, want)
		}
		w.run(2 * time.Minute)
		w.bounded(mode.String(), 10*Mbit, Size(want), anyone)
	}
}

func TestLeakyOutputIsSteady(t *testing.T) {
	c := Class{Name: "a", Rate: 10 * Mbit, Ceil: 10 * Mbit, Mode: Leaky, Default: true}
	w := newWorld(t, Link{Rate: Gbit, Classes: []Class{c}})
	rng := seeded(t)
	s := w.add("a", 0, 0)
	for w.now < 20*time.Second { // bursts of demand and silence
		w.give(s, rng.Int64N(60_000))
		w.run(w.now + time.Duration(rng.Int64N(int64(60*time.Millisecond))))
	}
	w.bounded("leaky", 10*Mbit, 2*Chunk(10*Mbit), anyone)
}

func TestLeakyClassWhoseSenderIsNotQuiteReadyKeepsItsRate(t *testing.T) {
	rng := seeded(t)
	c := Class{Name: "a", Rate: 20 * Mbit, Ceil: 20 * Mbit, Mode: Leaky, Default: true}
	w := newWorld(t, Link{Rate: 200 * Mbit, Classes: []Class{c}})
	s := w.add("a", 0, 0)
	for w.now < 10*time.Second { // half a megabyte at a time, then a moment of nothing
		w.give(s, 500_000)
		for s.left > 0 {
			w.run(w.now + 100*time.Microsecond)
		}
		w.run(w.now + time.Duration(rng.Int64N(int64(2*time.Millisecond))))
	}
	near(t, "rate", mbits(w.sum(0, anyone), w.now), 20, 0.002)
}

func TestSmallBurstsDoNotKeepAClassFromBorrowing(t *testing.T) {
	w := newWorld(t, Link{Rate: 200 * Mbit, Classes: []Class{
		{Name: "web", Rate: 60 * Mbit, Ceil: 200 * Mbit, Burst: 192 * KiB},
		dflt(Class{Name: "bulk", Rate: 20 * Mbit, Ceil: 200 * Mbit, Burst: 64 * KiB}), // less than a chunk
	}})
	for _, most := range []int{0, 20_000, 1500} { // whatever a socket has at a time
		w.add("web", most, forever).most = most
		w.add("bulk", most, forever).most = most
	}
	w.run(6 * time.Second)
	near(t, "web", mbits(w.sum(time.Second, of("web")), 5*time.Second), 150, 0.005)
	near(t, "bulk", mbits(w.sum(time.Second, of("bulk")), 5*time.Second), 50, 0.01)
}

func TestLatenessWhileBackloggedIsMadeUp(t *testing.T) {
	for _, mode := range []Mode{Token, Leaky} {
		rng := seeded(t)
		c := Class{Name: "a", Rate: 100 * Mbit, Ceil: 100 * Mbit, Mode: mode, Default: true}
		w := newWorld(t, Link{Rate: Gbit, Classes: []Class{c}})
		w.late = func() time.Duration { return time.Duration(rng.Int64N(int64(5 * time.Millisecond))) }
		w.add("a", 0, forever)
		w.run(11 * time.Second)
		near(t, mode.String(), mbits(w.sum(time.Second, anyone), 10*time.Second), 100, 0.001)
	}
}

func TestBorrowingDoesNotStarveTheGuaranteeLater(t *testing.T) {
	w := newWorld(t, Link{Rate: 100 * Mbit, Classes: []Class{leaf("a", 10, 100, 0), dflt(leaf("b", 80, 100, 0))}})
	w.add("a", 0, forever)
	w.run(30 * time.Second) // borrows 90 mbit all the time
	b := w.add("b", 1, forever)
	for from := w.now; from < 40*time.Second; from += time.Second {
		w.run(from + time.Second)
		if got := mbits(w.sum(from, of("a")), time.Second); got < 9.95 {
			t.Fatalf("after %v: %.2f mbit/s, 10 are guaranteed", from, got)
		}
	}
	w.tree.Remove(b.q, w.now)
}

func TestSourcesThenSessionsShareFairly(t *testing.T) {
	w := newWorld(t, Link{Rate: 100 * Mbit})
	for range 20 {
		w.add("default", 0, forever) // one user with many connections
	}
	w.add("default", 1, forever)
	for range 3 {
		w.add("default", 2, forever)
	}
	for range 50 {
		w.add("default", 3, 0) // idle ones do not count
	}
	w.run(6 * time.Second)
	bySource := make([]float64, 3)
	for _, s := range w.list {
		if s.src < 3 {
			bySource[s.src] += float64(s.bytes)
		}
	}
	if j := jain(bySource); j < 0.9999 {
		t.Errorf("sources: %v, Jain %.5f", bySource, j)
	}
	var sessions []float64
	for _, s := range w.list[:20] {
		sessions = append(sessions, float64(s.bytes))
	}
	if j := jain(sessions); j < 0.999 {
		t.Errorf("sessions of one source: Jain %.5f", j)
	}
}

func TestUnequalTurnsAreStillFairInBytes(t *testing.T) {
	w := newWorld(t, Link{Rate: 100 * Mbit})
	a, b := w.add("default", 0, forever), w.add("default", 0, forever)
	a.most = 1500 // its socket gives little at a time
	w.run(10 * time.Second)
	near(t, "bytes of the one in small turns", float64(a.bytes), float64(b.bytes), 0.02)
}

func TestLimitsOfQueueSourceAndClassAreTakenTogetherOrNotAtAll(t *testing.T) {
	w := newWorld(t, Link{Rate: 100 * Mbit, Classes: []Class{leaf("a", 50, 100, 0), dflt(leaf("b", 50, 100, 0))}})
	w.tree.SetLimits(4*Mbit, 10*Mbit, 0)
	for range 4 {
		w.add("a", 0, forever) // 4 × 4 mbit, cut to its source's 10
	}
	w.add("a", 1, forever) // one of 4
	w.add("b", 0, forever) // the same source in another class: the 10 are for both
	w.run(11 * time.Second)
	from := func(src int) float64 {
		return mbits(w.sum(time.Second, func(s *sender) bool { return s.src == src }), 10*time.Second)
	}
	near(t, "the limited source", from(0), 10, 0.005)
	near(t, "the other source", from(1), 4, 0.005)
	for _, s := range w.list {
		w.bounded("a session", 4*Mbit, DefaultBurst(4*Mbit), func(x *sender) bool { return x == s })
	}
	w.bounded("a source", 10*Mbit, DefaultBurst(10*Mbit), func(s *sender) bool { return s.src == 0 })
	w.add("b", 2, 1<<20)
	w.tree.SetLimits(0, 0, w.now) // reaches those who wait at once
	before := w.now
	w.run(w.now + time.Second)
	near(t, "without limits", mbits(w.sum(before, anyone), time.Second), 100, 0.02)
}

func TestChangeOfRateKeepsTheLevelAndReachesThoseWhoWait(t *testing.T) {
	slow := Link{Rate: 8 * Kbit, Burst: 50_000}
	w := newWorld(t, slow)
	w.add("default", 0, forever)
	w.run(0)
	if got := w.sum(0, anyone); got > 50_000 {
		t.Fatalf("%d bytes at once", got)
	}
	for range 100 { // the reset that refills: 100 bursts elsewhere
		if err := w.tree.Update(slow, w.now); err != nil {
			t.Fatal(err)
		}
		w.run(w.now)
	}
	if got := w.sum(0, anyone); got > 50_000 {
		t.Fatalf("%d bytes after 100 changes, the burst is 50000", got)
	}
	waits := w.tree.Wake(w.now) - w.now
	if err := w.tree.Update(Link{Rate: 8 * Mbit, Burst: 50_000}, w.now); err != nil {
		t.Fatal(err)
	}
	if now := w.tree.Wake(w.now) - w.now; now >= waits/10 {
		t.Fatalf("waits %v at 1000 times the rate, before %v", now, waits)
	}
	from := w.now
	w.run(from + time.Second)
	near(t, "the new rate", mbits(w.sum(from+1, anyone), time.Second), 8, 0.01)
}

func TestQueuesOfAClassThatIsGoneMoveToTheDefault(t *testing.T) {
	w := newWorld(t, Link{Rate: 10 * Mbit, Classes: []Class{leaf("a", 5, 10, 0), dflt(leaf("b", 5, 10, 0))}})
	s := w.add("a", 0, forever)
	w.run(time.Second)
	if err := w.tree.Update(Link{Rate: 10 * Mbit, Classes: []Class{dflt(leaf("b", 5, 10, 0)), leaf("c", 5, 10, 0)}}, w.now); err != nil {
		t.Fatal(err)
	}
	before := s.bytes
	w.run(2 * time.Second)
	near(t, "goes on", mbits(s.bytes-before, time.Second), 10, 0.02)
	st := w.tree.Stats(w.now)
	if b := st.Classes[0]; b.Name != "b" || b.Queues != 1 || b.Backlogged != 1 || int64(b.Bytes) != s.bytes-before {
		t.Fatalf("class b: %+v", b)
	}
}

func TestInvalidTreesAreRefusedAndChangeNothing(t *testing.T) {
	deep := dflt(leaf("d", 1, 1, 0))
	for range maxDepth {
		deep = Class{Name: deep.Name + "'", Children: []Class{deep}}
	}
	for name, l := range map[string]Link{
		"two classes are named": {Classes: []Class{leaf("a", 1, 1, 0), dflt(leaf("a", 1, 1, 0))}},
		"0 default classes":     {Classes: []Class{leaf("a", 1, 1, 0)}},
		"2 default classes":     {Classes: []Class{dflt(leaf("a", 1, 1, 0)), dflt(leaf("b", 1, 1, 0))}},
		"priority 8":            {Classes: []Class{dflt(leaf("a", 1, 1, 8))}},
		"negative":              {Rate: -1},
		"nested":                {Classes: []Class{deep}},
	} {
		if _, err := NewTree(l, 0); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
		w := newWorld(t, Link{Rate: Mbit})
		if err := w.tree.Update(l, 0); err == nil || w.tree.root.ceil.rate != Mbit {
			t.Errorf("%s: taken", name)
		}
	}
}

func BenchmarkTreeGrant(b *testing.B) {
	for _, limit := range []struct {
		name string
		rate Rate
	}{{"unlimited", 0}, {"borrowing", 400 * Gbit}} {
		for _, n := range []int{1, 16, 1024} {
			b.Run(fmt.Sprintf("%s/classes=%d", limit.name, n), func(b *testing.B) {
				l := Link{Rate: limit.rate}
				for i := range n {
					l.Classes = append(l.Classes, Class{Name: fmt.Sprint(i), Rate: limit.rate / Rate(2*n), Ceil: limit.rate, Default: i == 0})
				}
				tree, err := NewTree(l, 0)
				if err != nil {
					b.Fatal(err)
				}
				for i := range 2 * n {
					q := &Queue{}
					tree.Add(q, fmt.Sprint(i%n), netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 0)
					tree.Activate(q, 0)
				}
				now := time.Duration(0)
				b.ReportAllocs()
				for b.Loop() {
					for {
						q, size := tree.Next(now)
						if q != nil {
							tree.Charge(q, size, true, now)
							break
						}
						now = tree.Wake(now)
					}
				}
			})
		}
	}
}
