package configs

import (
	"net/netip"
	"slices"
)

// A listener is an address that the policy listens on.
type listener struct {
	netip.AddrPort
	at    *node
	relay *relaySpec // nil for the metrics
	both  bool       // a wildcard of IPv6 that takes IPv4 as well
}

// listeners are all of the policy, by port.
type listeners map[uint16][]listener

// listeners checks that all listeners can be there together, and that no relay
// leads to itself.
func (r *report) listeners(f *fileSpec) {
	all := listeners{}
	for i := range f.Relays.all {
		s := &f.Relays.all[i].v
		for j := range s.Listen.all {
			if a := &s.Listen.all[j]; a.ok() {
				r.listen(all, listener{a.v.AddrPort, a.at, s, a.v.wildcard6() && !hasIPv4(s, a.v.Port())})
			}
		}
	}
	if a := &f.Admission.v.Listen; a.ok() {
		r.listen(all, listener{a.v.AddrPort, a.at, nil, a.v.wildcard6()})
	}
	if m := &f.Metrics.v.Listen; m.ok() && m.v.IsValid() {
		r.listen(all, listener{m.v.AddrPort, m.at, nil, m.v.wildcard6()})
	}
	for i := range f.Relays.all {
		r.loops(&f.Relays.all[i].v, all)
	}
}

// listen adds l, and reports it if the kernel would refuse to have it beside another.
func (r *report) listen(all listeners, l listener) {
	same := all[l.Port()]
	i := slices.IndexFunc(same, func(o listener) bool { return l.takes(o.Addr()) || o.takes(l.Addr()) })
	if i >= 0 && l.Port() != 0 {
		r.wrong(l.at.place, "give one of them another port", "%s is taken by %s on line %d", l, same[i], same[i].at.line)
	}
	all[l.Port()] = append(same, l)
}

func (l listenAddr) wildcard6() bool { return l.Addr().Is6() && l.Addr().IsUnspecified() }

// hasIPv4 reports whether a relay listens on the port by IPv4 as well: then its
// wildcard of IPv6 keeps to IPv6.
func hasIPv4(s *relaySpec, port uint16) bool {
	return slices.ContainsFunc(s.Listen.values(), func(a listenAddr) bool { return a.Addr().Is4() && a.Port() == port })
}

// takes reports whether connections to an address of this host come here.
func (l listener) takes(a netip.Addr) bool {
	return l.Addr() == a || l.Addr().IsUnspecified() && (l.both || l.Addr().Is4() == a.Is4())
}

// loops reports upstreams of a relay from which connections come back to it.
func (r *report) loops(s *relaySpec, all listeners) {
	for i := range s.Upstream.all {
		u := &s.Upstream.all[i]
		if !u.ok() {
			continue
		}
		switch to := all.relay(u.v); {
		case to == nil:
		case to == s:
			r.wrong(u.at.place, "write where the service listens", "relay %q is its own upstream: each session would open another", s.Name.v)
		case all.lead(to, s, map[*relaySpec]bool{}):
			r.wrong(u.at.place, "write where the service listens",
				"relay %q has relay %q as upstream, which leads back to it: each session would open another", s.Name.v, to.Name.v)
		}
	}
}

// lead reports whether connections to a relay can come to another, by way of relays not seen yet.
func (all listeners) lead(from, to *relaySpec, seen map[*relaySpec]bool) bool {
	seen[from] = true
	return slices.ContainsFunc(from.Upstream.values(), func(u hostPort) bool {
		next := all.relay(u)
		return next == to || next != nil && !seen[next] && all.lead(next, to, seen)
	})
}

// relay returns the relay that listens where h leads, nil if none is known to.
func (all listeners) relay(h hostPort) *relaySpec {
	a := h.addr.Addr()
	for _, l := range all[h.addr.Port()] {
		if l.Addr() == a || a.IsLoopback() && l.takes(a) {
			return l.relay
		}
	}
	return nil
}
