package lease

import (
	"fmt"
	"testing"
	"time"

	"shaperd/internal/store"
	"shaperd/shaper"
)

func TestWithoutRedisHostsKeepTheirFairSharesAndNoMoreThanTheRate(t *testing.T) {
	for seed := range uint64(6) {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d, state lost %v", seed, lost), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, 100*shaper.Mbit, seed)
				w.never()
				w.lost, w.drifts = 0.1, 0.005
				for i := range 5 {
					w.add(float64(1+i%2), store.OutageShare, unlimited)
				}
				w.hosts[0].want(0)
				w.run(learned + 4*DefaultPeriod)
				for range 3 {
					w.run(time.Duration(w.random.Int64N(int64(DefaultPeriod))))
					w.down = true
					w.run(periods * DefaultPeriod)
					w.hosts[0].want(unlimited)
					w.run(periods*DefaultPeriod + time.Second)
					for i, h := range w.hosts {
						if want := 100 * shaper.Mbit * shaper.Rate(1+i%2) / 7; !near(h.using, want, shaper.Mbit) {
							t.Errorf("without Redis %s has %v; its fair share is %v", h.name, h.using, want)
						}
					}
					w.run(time.Duration(w.random.Int64N(int64(20 * time.Second))))
					if lost {
						w.redis.Do("DEL", w.key)
					}
					w.down = false
					w.run(2 * learned)
					checkFair(t, w, "after the outage")
					w.hosts[0].want(0)
					w.run(4 * DefaultPeriod)
				}
			})
		}
	}
}

func TestWithoutRedisEachModeDoesWhatItSays(t *testing.T) {
	for o, want := range map[store.Outage]shaper.Rate{store.OutageShare: 50 * shaper.Mbit, store.OutageMin: shaper.Mbit, store.OutageOpen: 100 * shaper.Mbit, store.OutageClosed: 0} {
		t.Run(o.String(), func(t *testing.T) {
			w := newWorld(t, 100*shaper.Mbit, 1)
			a, b := w.add(1, o, unlimited), w.add(1, o, unlimited)
			w.run(learned)
			w.down = true
			w.run(2*periods*DefaultPeriod + time.Second)
			if a.using != want || b.using != want {
				t.Errorf("%v and %v; want %v", a.using, b.using, want)
			}
			for _, s := range a.core.status(a.clock()).Holders {
				if s.State != AtOutage {
					t.Errorf("state %q", s.State)
				}
			}
			w.down = false
			w.run(2 * DefaultPeriod)
			w.never() // from now on
			w.run(2 * learned)
			checkFair(t, w, "after the outage")
		})
	}
}

func TestAHostThatNeverHeardOfRedisHasLittle(t *testing.T) {
	for o, want := range map[store.Outage]shaper.Rate{store.OutageShare: shaper.Mbit, store.OutageMin: shaper.Mbit, store.OutageOpen: 100 * shaper.Mbit, store.OutageClosed: 0} {
		w := newWorld(t, 100*shaper.Mbit, 1)
		w.down = true
		a := w.add(1, o, unlimited)
		if a.using != 0 {
			t.Errorf("%v: %v before anybody was asked", o, a.using)
		}
		w.run(time.Second)
		if a.using != want {
			t.Errorf("%v: %v; want %v", o, a.using, want)
		}
	}
}

func TestAHostThatIsCutOffAloneExceedsByItsFairShareAtMost(t *testing.T) {
	for o, excess := range map[store.Outage]shaper.Rate{store.OutageShare: 25 * shaper.Mbit, store.OutageMin: shaper.Mbit, store.OutageClosed: 0, store.OutageOpen: 100 * shaper.Mbit} {
		t.Run(o.String(), func(t *testing.T) {
			w := newWorld(t, 100*shaper.Mbit, 1)
			for range 4 {
				w.add(1, o, unlimited)
			}
			w.run(learned)
			w.most = 0
			w.hosts[3].cut = true
			w.run(30 * time.Second)
			if !near(w.most, 100*shaper.Mbit+excess, shaper.Mbit) {
				t.Errorf("%v in use; want %v more than the rate", w.most, excess)
			}
			w.hosts[3].cut = false
			w.run(2 * DefaultPeriod)
			w.never()
			w.run(4 * DefaultPeriod)
			checkFair(t, w, "when it is back")
		})
	}
}

func TestAfterALossOfTheStateSharesGoOnAndNobodyElseGetsAny(t *testing.T) {
	w := newWorld(t, 100*shaper.Mbit, 1)
	w.never()
	a, b := w.add(1, store.OutageShare, unlimited), w.add(1, store.OutageShare, unlimited)
	w.run(learned)
	w.redis.Do("DEL", w.key)
	c := w.add(1, store.OutageShare, unlimited)
	lost := w.now
	w.each = func() {
		if a.using != 50*shaper.Mbit || b.using != 50*shaper.Mbit || c.using != 0 {
			t.Errorf("%v after the loss: %s", w.now-lost, w.shares())
		}
	}
	w.run(periods * DefaultPeriod) // the new state began later than that
	w.each = func() {}
	w.never()
	w.run(4 * DefaultPeriod)
	checkFair(t, w, "a lease time after the loss")
}

func TestANewRateIsInForceEverywhereAndOldPoliciesDisagree(t *testing.T) {
	w := newWorld(t, 100*shaper.Mbit, 1)
	a, b := w.add(1, store.OutageShare, unlimited), w.add(1, store.OutageShare, unlimited)
	w.run(learned)
	change := func(h *host, rate shaper.Rate, version int64) {
		h.budget.Rate, h.budget.Version = rate, version
		h.core.set(h.clock(), []Budget{h.budget})
		h.turn()
	}
	disagrees := func(h *host) bool { return h.core.status(h.clock()).Holders[0].Disagrees }
	change(a, 60*shaper.Mbit, 2)
	w.run(2 * DefaultPeriod)
	w.rate = 60 * shaper.Mbit
	w.never() // a lease time is what it may take; without losses it takes less
	checkFair(t, w, "after a lower rate")
	if disagrees(a) || !disagrees(b) {
		t.Errorf("a disagrees: %v; b, whose policy is older: %v", disagrees(a), disagrees(b))
	}
	w.rate = 200 * shaper.Mbit
	change(b, 200*shaper.Mbit, 3)
	w.run(2 * DefaultPeriod)
	checkFair(t, w, "after a higher rate")
	change(a, 200*shaper.Mbit, 2)
	w.run(2 * DefaultPeriod)
	if disagrees(a) || disagrees(b) {
		t.Error("hosts whose policies say the same disagree")
	}
	w.each = func() {}
	change(b, 199*shaper.Mbit, 4) // less by half a percent: not too small a change to be made
	w.run(2 * DefaultPeriod)
	w.rate = 199 * shaper.Mbit
	w.never()
	w.run(2 * DefaultPeriod)
}

func TestAHostThatEndsGivesItsShareBackAtOnce(t *testing.T) {
	w := newWorld(t, 100*shaper.Mbit, 1)
	w.never()
	a, b := w.add(1, store.OutageShare, unlimited), w.add(1, store.OutageShare, unlimited)
	w.run(learned)
	b.die(true)
	w.run(2 * DefaultPeriod)
	if a.using != 100*shaper.Mbit {
		t.Errorf("a has %v after b has ended", a.using)
	}
	b.boot(1, store.OutageShare)
	w.run(2 * DefaultPeriod)
	checkFair(t, w, "after a restart")
	a.die(true)
	b.die(true)
	w.run(time.Minute)
	a.boot(1, store.OutageShare)
	w.run(DefaultPeriod)
	if a.using != 100*shaper.Mbit {
		t.Errorf("a has %v: nothing is unknown after all leases were given back", a.using)
	}
}

func TestLeasesOfHoldersThatStayAreKept(t *testing.T) {
	w := newWorld(t, 100*shaper.Mbit, 1)
	a := w.add(1, store.OutageShare, unlimited)
	w.run(learned)
	other := Budget{Holder: Holder{"web", "download", "relay other"}, Rate: w.rate, Version: 1}
	a.core.set(a.clock(), []Budget{a.budget, other})
	if changes := a.core.changes(a.clock()); len(changes) != 1 || changes[other.Holder] != 0 {
		t.Errorf("changes %v; want that of the new holder, to 0", changes)
	}
	if got := a.core.holdings[a.holder]; !got.leased(a.clock()) || got.share != w.rate {
		t.Errorf("the holder that stays has %v", got.share)
	}
	a.core.set(a.clock(), []Budget{other})
	if n := len(a.core.released); n != 1 || a.core.holdings[a.holder] != nil {
		t.Errorf("%d leases are given back", n)
	}
}
