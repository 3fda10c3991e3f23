package lease

import (
	"cmp"
	"slices"
	"time"

	"shaperd/shaper"
)

// A State is what a holder's share rests on.
type State string

// States.
const (
	Starting State = "starting" // no answer yet, and no failure: the share is 0
	Leased   State = "leased"   // the share is that of a lease
	Learning State = "learning" // a lease, of no more than was held: the state on the server is new
	AtOutage State = "outage"   // no lease: Options.OnOutage
)

// Status is how this host's leases are.
type Status struct {
	Holders   []HolderStatus // sorted
	Renewals  uint64         // round trips that were answered
	Failures  uint64         // and that were not, also those that the circuit breaker refused
	Problem   string         // of the last round trip; "" when it was answered
	RoundTrip time.Duration  // of the last that was answered
}

// HolderStatus is how one lease is.
type HolderStatus struct {
	Holder
	State     State
	Share     shaper.Rate // in force
	Target    shaper.Rate // fair by what all holders need now; the share follows
	Fair      shaper.Rate // when all holders need as much as they can get
	Rate      shaper.Rate // the class's that is in force in the cluster
	LocalRate shaper.Rate // the class's of this host's policy
	Disagrees bool        // a newer policy in the cluster says another rate
	Holders   int         // of the budget, in the whole cluster
	Left      time.Duration
	end       time.Time
}

func (c *core) status(now time.Time) Status {
	s := Status{Renewals: c.renewed, Failures: c.failed, RoundTrip: c.trip}
	if c.problem != nil {
		s.Problem = c.problem.Error()
	}
	for k, h := range c.holdings {
		st := HolderStatus{
			Holder: k, State: AtOutage, Share: h.share, Rate: h.rate(), LocalRate: h.budget.Rate, end: h.end,
			Target: h.answer.target, Fair: h.answer.fair, Holders: h.answer.holders, Disagrees: h.answer.flags&flagDisagrees != 0,
		}
		switch {
		case h.answered == 0 && !h.failed:
			st.State = Starting
		case h.leased(now) && h.answer.flags&flagLearning != 0:
			st.State = Learning
		case h.leased(now):
			st.State = Leased
		}
		s.Holders = append(s.Holders, st)
	}
	slices.SortFunc(s.Holders, func(a, b HolderStatus) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Link, b.Link))
	})
	return s
}
