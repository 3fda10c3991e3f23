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
	AcceptPauses     uint64             // times that accepting stopped for want of file descriptors
	DSCPUnknown      uint64             // sessions whose DSCP the rules needed and nobody knew
}

var (
	relaySessions = relayDesc("sessions", "Sessions that are open.")
	relayHeld     = relayDesc("held_bytes", "Bytes that were read and wait to be written on.")
	relayAccepted = relayDesc("accepted_total", "Client connections taken from the kernel.")
	relayConnects = relayDesc("connected_total", "Sessions that reached their destination.")
	relayClosed   = relayDesc("closed_total", "Connected sessions that ended, by reason.", "reason")
	relayRefused  = relayDesc("refused_total", "Clients that were never connected, by reason.", "reason")
	relayFailures = relayDesc("upstream_failures_total", "Failed attempts to connect, by upstream.", "upstream")
	relayPauses   = relayDesc("accept_pauses_total", "Times that accepting stopped for want of file descriptors.")
	relayNoDSCP   = relayDesc("dscp_unknown_total", "Sessions whose DSCP the rules needed and the kernel did not know.")

	linkSent     = linkDesc("sent_bytes_total", "Bytes that the link has carried.")
	linkRate     = linkDesc("rate_bytes_per_second", "Configured rate of the link; 0 is unlimited.")
	linkAchieved = linkDesc("achieved_bytes_per_second", "Rate that the link has carried lately.")

	classSent       = classDesc("sent_bytes_total", "Bytes that the class has sent.")
	classBorrowed   = classDesc("borrowed_bytes_total", "Of the bytes sent, those above the class's own rate.")
	classChunks     = classDesc("chunks_total", "Turns in which the class has sent something.")
	classRate       = classDesc("rate_bytes_per_second", "Rate that the class is guaranteed.")
	classCeil       = classDesc("ceil_bytes_per_second", "Rate that the class may reach by borrowing; 0 is the link's.")
	classBurst      = classDesc("burst_bytes", "Bytes that may leave at once after a quiet time.")
	classAchieved   = classDesc("achieved_bytes_per_second", "Rate that the class has sent at lately.")
	classSessions   = classDesc("sessions", "Sessions that the class has.")
	classBacklogged = classDesc("backlogged_sessions", "Sessions of the class that have something to send.")
	classWait       = classDesc("wait_seconds", "Time from being ready to send to sending, by turn.")
)

func relayDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("shaperd_relay_"+name, help, append([]string{"relay"}, labels...), nil)
}

func linkDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("shaperd_link_"+name, help, []string{"datapath", "link"}, nil)
}

func classDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("shaperd_class_"+name, help, []string{"datapath", "link", "class"}, nil)
}

var relayDescs = []*prometheus.Desc{
	relaySessions, relayHeld, relayAccepted, relayConnects, relayClosed, relayRefused, relayFailures, relayPauses, relayNoDSCP,
	linkSent, linkRate, linkAchieved,
	classSent, classBorrowed, classChunks, classRate, classCeil, classBurst, classAchieved, classSessions, classBacklogged, classWait,
}

func collectRelay(ch chan<- prometheus.Metric, r *Relay) {
	out := sink{ch, []string{r.Name}}
	out.gauge(relaySessions, float64(r.Sessions))
	out.gauge(relayHeld, float64(r.Held))
	out.counter(relayAccepted, r.Accepted)
	out.counter(relayConnects, r.Connected)
	out.counters(relayClosed, r.Closed)
	out.counters(relayRefused, r.Refused)
	out.counters(relayFailures, r.UpstreamFailures)
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
	out.gauge(linkAchieved, l.Achieved/8)
	for i := range l.Classes {
		c := &l.Classes[i]
		out := sink{ch, []string{"relay", l.Name, c.Name}}
		out.counter(classSent, c.Bytes)
		out.counter(classBorrowed, c.Borrowed)
		out.counter(classChunks, c.Chunks)
		out.rate(classRate, c.Rate)
		out.rate(classCeil, c.Ceil)
		out.gauge(classBurst, float64(c.Burst))
		out.gauge(classAchieved, c.Achieved/8)
		out.gauge(classSessions, float64(c.Queues))
		out.gauge(classBacklogged, float64(c.Backlogged))
		out.wait(classWait, &c.Wait)
	}
}
