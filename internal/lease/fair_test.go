package lease

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"shaperd/internal/store"
	"shaperd/shaper"
)

// unlimited is more than any host could send.
const unlimited = 100 * shaper.Gbit

// learned is when a new state grants shares.
const learned = periods*DefaultPeriod + 2*DefaultPeriod

func near(got, want, tolerance shaper.Rate) bool {
	return got >= want-tolerance && got <= want+tolerance
}

func TestWaitingHostsShareByWeight(t *testing.T) {
	w := newWorld(t, 100*shaper.Mbit, 1)
	w.never()
	a, b, c := w.add(1, store.OutageShare, unlimited), w.add(2, store.OutageShare, unlimited), w.add(1, store.OutageShare, unlimited)
	w.run(learned)
	for h, want := range map[*host]shaper.Rate{a: 25 * shaper.Mbit, b: 50 * shaper.Mbit, c: 25 * shaper.Mbit} {
		if !near(h.using, want, shaper.Mbit) {
			t.Errorf("%s has %v; want %v", h.name, h.using, want)
		}
	}
	if w.used() < 97*shaper.Mbit {
		t.Errorf("%v in use", w.used())
	}
}

func TestNothingIsGrantedWhileTheStateIsNew(t *testing.T) {
	w := newWorld(t, 100*shaper.Mbit, 1)
	w.add(1, store.OutageShare, unlimited)
	w.run(periods*DefaultPeriod - DefaultPeriod)
	if w.most != 0 {
		t.Errorf("%v in use: another may hold that", w.most)
	}
	w.run(3 * DefaultPeriod)
	if w.used() != 100*shaper.Mbit {
		t.Errorf("%v in use once all old leases have ended", w.used())
	}
}

// maxMin is what each is due, by weight: no more than wanted.
func maxMin(rate shaper.Rate, wants []shaper.Rate, weights []float64) []shaper.Rate {
	due := make([]shaper.Rate, len(wants))
	open := map[int]bool{}
	for i := range wants {
		open[i] = true
	}
	left := float64(rate)
	for len(open) > 0 {
		sum, satisfied := 0.0, -1
		for i := range open {
			sum += weights[i]
		}
		for i := range open {
			if float64(wants[i]) <= left*weights[i]/sum {
				satisfied = i
			}
		}
		if satisfied < 0 {
			for i := range open {
				due[i] = shaper.Rate(left * weights[i] / sum)
			}
			return due
		}
		due[satisfied] = wants[satisfied]
		left -= float64(wants[satisfied])
		delete(open, satisfied)
	}
	return due
}

// unfair compares what the traffic gets with what is fair, with room above demands and
// floors of who is idle, and returns the first that is not, or "". What is used may be
// short by what keeps shares still.
func unfair(w *world) string {
	var wants []shaper.Rate
	var weights []float64
	floor := min(w.rate/floor, w.rate*15/1000/shaper.Rate(len(w.hosts)))
	for _, h := range w.hosts {
		wants, weights = append(wants, min(h.demand*105/100+floor, w.rate)), append(weights, h.core.o.Weight)
	}
	due := maxMin(w.rate, wants, weights)
	for i, h := range w.hosts {
		if got, want := min(h.demand, h.using), min(h.demand, due[i]); !near(got, want, w.rate*2/100+want*2/100) {
			return fmt.Sprintf("%s gets %v; fair is %v: %s", h.name, got, want, w.shares())
		}
	}
	return ""
}

func checkFair(t *testing.T, w *world, when string) {
	t.Helper()
	if problem := unfair(w); problem != "" {
		t.Errorf("%s, at %v: %s", when, w.now, problem)
	}
}

// demands are what hosts want in turns: of all or nothing, and of what others may have the rest of.
var demands = map[string][]shaper.Rate{
	"all or nothing": {0, unlimited},
	"some":           {0, 5 * shaper.Mbit, 20 * shaper.Mbit, unlimited},
}

// newChanging is a world of six hosts, and changes what one of them wants.
func newChanging(t testing.TB, of []shaper.Rate, seed uint64) (w *world, change func() *host) {
	w = newWorld(t, 100*shaper.Mbit, seed)
	for i := range 6 {
		w.add(float64(1+i%3), store.OutageShare, unlimited)
	}
	w.run(learned)
	return w, func() *host {
		h := w.hosts[w.random.IntN(len(w.hosts))]
		next := h.demand
		for next == h.demand {
			next = of[w.random.IntN(len(of))]
		}
		h.want(next)
		return h
	}
}

// settle returns how many periods pass until all is fair, and stays so for a while.
func settle(w *world) float64 {
	began, last := w.now, w.now
	for w.now < began+6*DefaultPeriod {
		w.run(DefaultPeriod / 50)
		if unfair(w) != "" {
			last = w.now
		}
	}
	w.run(time.Duration(w.random.Int64N(int64(DefaultPeriod))))
	return float64(last-began) / float64(DefaultPeriod)
}

// Two periods are enough nearly always, where a host has no round trips left for this
// second a third one is needed. And who gets all that it needs stops waiting, and leaves
// the rest to others: a second step.
func TestSharesAreFairSoonAfterDemandsChange(t *testing.T) {
	const changes = 60
	for name, want := range map[string]struct{ soon, within float64 }{"all or nothing": {.98, 3}, "some": {.85, 5}} {
		t.Run(name, func(t *testing.T) {
			soon := 0
			for seed := range uint64(4) {
				w, change := newChanging(t, demands[name], seed)
				w.never()
				for range changes {
					h := change()
					switch periods := settle(w); {
					case periods <= 2:
						soon++
					case periods > want.within:
						t.Errorf("at %v: after %s wants %v, %v periods pass", w.now, h.name, h.demand, periods)
					}
				}
			}
			if part := float64(soon) / (4 * changes); part < want.soon {
				t.Errorf("after %v of the changes all is fair within two periods, want %v", part, want.soon)
			}
		})
	}
}

// BenchmarkConvergence measures, in virtual time, how many periods pass after one host's
// demand has changed until shares are fair: the mean, and the parts of changes where two
// and three are enough.
func BenchmarkConvergence(b *testing.B) {
	for name, of := range demands {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			w, change := newChanging(b, of, 1)
			var two, three, sum float64
			for b.Loop() {
				change()
				periods := settle(w)
				sum += periods
				if periods <= 2 {
					two++
				}
				if periods <= 3 {
					three++
				}
			}
			n := float64(b.N)
			b.ReportMetric(100*two/n, "%≤2")
			b.ReportMetric(100*three/n, "%≤3")
			b.ReportMetric(sum/n, "periods")
		})
	}
}

func TestAnIdleHostShrinksToTheFloorAndWakesWithinTwoRenewals(t *testing.T) {
	w := newWorld(t, 100*shaper.Mbit, 3)
	w.never()
	a, b := w.add(1, store.OutageShare, unlimited), w.add(1, store.OutageShare, unlimited)
	w.run(learned)
	b.want(0)
	w.run(2 * DefaultPeriod)
	if b.using > shaper.Mbit || a.using < 97*shaper.Mbit {
		t.Errorf("b is idle and has %v, a %v", b.using, a.using)
	}
	trips := len(b.trips)
	b.want(unlimited)
	for b.using < 48*shaper.Mbit && len(b.trips) <= trips+5 {
		w.run(time.Millisecond)
	}
	if n := len(b.trips) - trips; n > 2 {
		t.Errorf("b has its fair share after %d renewals", n)
	}
}

func TestManyIdleHostsLeaveTheRateToTheOthers(t *testing.T) {
	w := newWorld(t, 100*shaper.Mbit, 4)
	w.never()
	a := w.add(1, store.OutageShare, unlimited)
	for range 60 {
		w.add(1, store.OutageShare, 0)
	}
	w.run(learned + 4*DefaultPeriod)
	if a.using < 97*shaper.Mbit {
		t.Errorf("%v in use beside 60 idle hosts", a.using)
	}
}

func TestASmallHostIsNotStarvedByWhatKeepsOthersStill(t *testing.T) {
	w := newWorld(t, 100*shaper.Mbit, 5)
	w.never()
	for range 3 {
		w.add(100, store.OutageShare, unlimited)
	}
	w.run(learned)
	small := w.add(1, store.OutageShare, unlimited) // its share is less than what is not worth a change to the others
	w.run(4 * DefaultPeriod)
	if !near(small.using, 332*shaper.Kbit, 10*shaper.Kbit) {
		t.Errorf("small has %v: %s", small.using, w.shares())
	}
}

func TestNoMoreThanFourRoundTripsInAnySecond(t *testing.T) {
	w := newWorld(t, 100*shaper.Mbit, 6)
	for range 5 {
		w.add(1, store.OutageShare, 0)
	}
	for range 1000 { // traffic that comes and goes
		w.hosts[w.random.IntN(5)].want([]shaper.Rate{0, unlimited}[w.random.IntN(2)])
		w.run(20 * time.Millisecond)
	}
	for _, h := range w.hosts {
		for i := mostTrips; i < len(h.trips); i++ {
			if d := h.trips[i] - h.trips[i-mostTrips]; d < time.Second {
				t.Fatalf("%s: %d round trips within %v", h.name, mostTrips+1, d)
			}
		}
		if len(h.trips) < 40 {
			t.Errorf("%s: %d round trips in 20 s", h.name, len(h.trips))
		}
	}
}
