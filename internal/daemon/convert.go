package daemon

import (
	"shaperd/configs"
	"shaperd/conn"
	"shaperd/internal/metrics"
	"shaperd/shaper"
)

// relayConfig is what the policy says of one of its relays.
func relayConfig(p *configs.Policy, r *configs.Relay) conn.Config {
	marks := make(map[string]conn.Mark, len(p.Marks))
	for class, m := range p.Marks {
		marks[class] = conn.Mark(m)
	}
	kind := conn.Forward
	if r.Kind == configs.SOCKS5 {
		kind = conn.SOCKS5
	}
	return conn.Config{
		Name: r.Name, Kind: kind, Listen: r.Listen, Upstream: r.Upstream, Users: r.Users,
		Upload: r.Upload, Download: r.Download, Rules: p.Rules, Marks: marks,
		Limits: conn.Limits(r.Limits), Timeouts: conn.Timeouts(r.Timeouts),
	}
}

// relayMetrics is what is exported of a relay's statistics: every reason, also
// those that never happened.
func relayMetrics(s conn.Stats) metrics.Relay {
	m := metrics.Relay{
		Name: s.Name, Links: []shaper.LinkStats{s.Upload, s.Download}, Sessions: s.Sessions, Held: s.Held,
		Accepted: s.Accepted, Connected: s.Connected, UpstreamFailures: s.UpstreamFailures, UpstreamUp: s.UpstreamUp,
		Closed: map[string]uint64{}, Refused: map[string]uint64{}, AcceptPauses: s.AcceptPaused, DSCPUnknown: s.DSCPUnknown,
	}
	for i, n := range s.Closed {
		m.Closed[conn.Closing(i).String()] = n
	}
	for i, n := range s.Refused {
		if why := conn.Refusal(i); why != conn.NotRefused {
			m.Refused[why.String()] = n
		}
	}
	return m
}

// Reasons splits an error into those that it joins; none for nil.
func Reasons(err error) (all []error) {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		all = append(all, Reasons(e)...)
	}
	return all
}
