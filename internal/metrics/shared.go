package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"shaperd/shaper"
)

// Sharing is what is exported of shared classes.
type Sharing struct {
	Up                 bool   // the Redis answered last
	Renewals, Failures uint64 // requests to it that went well, and that did not
	RoundTrip          time.Duration
	Shares             []Share
}

// Share is a shared class on one link of this host.
type Share struct {
	Class, Link  string
	Rate, Budget shaper.Rate
	Leased       bool // else it is what on_outage says
	Disagrees    bool // this host's policy has another rate than the cluster
}

func collectSharing(ch chan<- prometheus.Metric, s *Sharing) {
	all := sink{ch: ch}
	all.value(sharedUp, truth(s.Up))
	all.value(sharedRenewals, float64(s.Renewals), "success")
	all.value(sharedRenewals, float64(s.Failures), "failure")
	all.value(sharedTrip, s.RoundTrip.Seconds())
	for _, one := range s.Shares {
		out := sink{ch, []string{one.Class, one.Link}}
		out.rate(sharedRate, one.Rate)
		out.rate(sharedBudget, one.Budget)
		out.value(sharedLeased, truth(one.Leased))
		out.value(sharedDisagree, truth(one.Disagrees))
	}
}

// Admission is what is exported of a class that programs ask for admission to.
type Admission struct {
	Class         string
	Decisions     map[string]uint64 // by outcome
	Alone         uint64            // of the decisions, those without the Redis of a shared class
	Keys, Waiters int
}

func collectAdmission(ch chan<- prometheus.Metric, a *Admission) {
	out := sink{ch, []string{a.Class}}
	out.counters(admitted, a.Decisions)
	out.counter(admissionAlone, a.Alone)
	out.value(admissionKeys, float64(a.Keys))
	out.value(admissionWaiters, float64(a.Waiters))
}
