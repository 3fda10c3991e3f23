package lease

import (
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

// checkFair compares what the traffic gets with what is fair. What is used may be
// short by what keeps shares still, idle holders' floors and the room above demands.
func checkFair(t *testing.T, w *world, when string) {
	t.Helper()
	var wants []shaper.Rate
	var weights []float64
	for _, h := range w.hosts {
		wants, weights = append(wants, min(h.demand, w.rate)), append(weights, h.core.o.Weight)
	}
	due := maxMin(w.rate, wants, weights)
	for i, h := range w.hosts {
		if got := min(h.demand, h.using); !near(got, due[i], w.rate*3/100+due[i]*6/100) {
			t.Errorf("%s, at %v: %s gets %v; fair is %v: %s", when, w.now, h.name, got, due[i], w.shares())
		}
	}
}

func TestSharesAreFairSoonAfterDemandsChange(t *testing.T) {
	tests := []struct {
		name    string
		demands []shaper.Rate
		within  time.Duration
	}{
		{"all or nothing", []shaper.Rate{0, unlimited}, 2 * DefaultPeriod},
		// Who gets all that it needs stops waiting, and leaves the rest to others: a second step.
		{"some", []shaper.Rate{0, 5 * shaper.Mbit, 20 * shaper.Mbit, unlimited}, 4 * DefaultPeriod},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(4) {
				w := newWorld(t, 100*shaper.Mbit, seed)
				w.never()
				for i := range 6 {
					w.add(float64(1+i%3), store.OutageShare, unlimited)
				}
				w.run(learned)
				for range 60 {
					h := w.hosts[w.random.IntN(len(w.hosts))]
					h.want(tt.demands[w.random.IntN(len(tt.demands))])
					w.run(tt.within)
					checkFair(t, w, "after "+h.name+" wants "+h.demand.String())
					w.run(time.Duration(w.random.Int64N(int64(DefaultPeriod))))
				}
			}
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
