package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"shaperd/shaper"
)

// A Relay is a snapshot of one relay. What counts events only grows.
type Relay struct {
	Name             string
	Links            []shaper.LinkStats // each with a name of its own
	Sessions         int                // open now
	Held             int64              // bytes read and not yet written on
	Accepted         uint64             // client connections taken from the kernel
	Connected        uint64             // sessions that reached their destination
	Closed           map[string]uint64  // ended sessions that had been connected, by reason
	Refused          map[string]uint64  // clients that never got connected, by reason
	UpstreamFailures map[string]uint64  // failed attempts, by upstream
	UpstreamUp       map[string]bool    // whether the last attempt succeeded, by upstream
	AcceptPauses     uint64             // times that accepting stopped for want of file descriptors
	DSCPUnknown      uint64             // sessions whose DSCP the rules needed and nobody knew
}

func collectRelay(ch chan<- prometheus.Metric, r *Relay) {
	out := sink{ch, []string{r.Name}}
	out.value(relaySessions, float64(r.Sessions))
	out.value(relayHeld, float64(r.Held))
	out.counter(relayAccepted, r.Accepted)
	out.counter(relayConnects, r.Connected)
	out.counters(relayClosed, r.Closed)
	out.counters(relayRefused, r.Refused)
	out.counters(relayFailures, r.UpstreamFailures)
	for upstream, up := range r.UpstreamUp {
		out.value(relayUp, truth(up), upstream)
	}
	out.counter(relayPauses, r.AcceptPauses)
	out.counter(relayNoDSCP, r.DSCPUnknown)
	for i := range r.Links {
		collectLink(ch, &r.Links[i])
	}
}

func collectLink(ch chan<- prometheus.Metric, l *shaper.LinkStats) {
	out := sink{ch, []string{"relay", l.Name}}
	out.counter(linkSent, l.Bytes)
	out.rate(linkRate, l.Rate)
	out.value(linkAchieved, l.Achieved/8)
	for i := range l.Classes {
		c := &l.Classes[i]
		out := sink{ch, []string{"relay", l.Name, c.Name}}
		out.counter(classSent, c.Bytes)
		out.counter(classBorrowed, c.Borrowed)
		out.counter(classChunks, c.Chunks)
		out.rate(classRate, c.Rate)
		out.rate(classCeil, c.Ceil)
		out.value(classBurst, float64(c.Burst))
		out.value(classAchieved, c.Achieved/8)
		out.value(classSessions, float64(c.Queues))
		out.value(classBacklogged, float64(c.Backlogged))
		out.wait(classWait, &c.Wait)
	}
}
