package configs

import (
	"net/netip"
	"slices"
	"strings"

	"shaperd/classify"
)

// rule makes a match of an entry; not ok if it has errors or could never match.
func (r *report) rule(m *value[matchSpec]) (rule classify.Match, ok bool) {
	s := &m.v
	for _, l := range []interface{ sound() bool }{&s.Proto, &s.Port, &s.SPort, &s.DPort, &s.Src, &s.Dst, &s.DSCP, &s.Fwmark} {
		if !l.sound() {
			return rule, false
		}
	}
	rule = classify.Match{
		Proto:  each(&s.Proto, func(p protocol) classify.Protocol { return p.Protocol }),
		Port:   each(&s.Port, func(p ports) classify.PortRange { return p.PortRange }),
		SPort:  each(&s.SPort, func(p ports) classify.PortRange { return p.PortRange }),
		DPort:  each(&s.DPort, func(p ports) classify.PortRange { return p.PortRange }),
		Src:    each(&s.Src, func(p prefix) netip.Prefix { return p.Prefix }),
		Dst:    each(&s.Dst, func(p prefix) netip.Prefix { return p.Prefix }),
		DSCP:   each(&s.DSCP, func(d dscp) classify.DSCP { return d.DSCP }),
		Fwmark: each(&s.Fwmark, func(m fwmark) uint32 { return uint32(m) }),
	}
	return rule, r.portsFit(s, &rule) && r.familiesFit(s, &rule)
}

// each converts the values of a list.
func each[T, U any](l *some[T], convert func(T) U) (all []U) {
	for _, v := range l.values() {
		all = append(all, convert(v))
	}
	return all
}

// portsFit reports ports that no flow can have.
func (r *report) portsFit(s *matchSpec, rule *classify.Match) bool {
	var keys []string
	for i, at := range []*node{s.Port.at, s.SPort.at, s.DPort.at} {
		if at != nil {
			keys = append(keys, []string{"port", "sport", "dport"}[i])
		}
	}
	for i, p := range rule.Proto {
		if len(keys) > 0 && !p.HasPorts() {
			at := s.Proto.all[i].at
			r.wrong(at.place, "move it into an entry of its own, without ports", "%s has no ports, and this entry asks for %s: it can never match", at.text, strings.Join(keys, " and "))
			return false
		}
	}
	if len(keys) == 3 && !meet(rule.Port, slices.Concat(rule.SPort, rule.DPort)) {
		r.wrong(s.Port.at.key, "remove one of them", "port is one of sport and dport, and none of its values is in theirs: the entry can never match")
		return false
	}
	return true
}

// meet reports whether some port is in both lists.
func meet(a, b []classify.PortRange) bool {
	return slices.ContainsFunc(a, func(x classify.PortRange) bool {
		return slices.ContainsFunc(b, func(y classify.PortRange) bool { return x.First <= y.Last && y.First <= x.Last })
	})
}

// familiesFit reports addresses that no flow can have together.
func (r *report) familiesFit(s *matchSpec, rule *classify.Match) bool {
	src4, src6 := families(rule.Src)
	dst4, dst6 := families(rule.Dst)
	v4, v6 := src4 && dst4, src6 && dst6
	if !v4 && !v6 {
		r.wrong(s.Dst.at.key, "write two entries, one for IPv4 and one for IPv6", "src and dst are never of one IP version: the entry can never match")
		return false
	}
	for i, p := range rule.Proto {
		at := s.Proto.all[i].at
		switch {
		case p == classify.ICMP && !v4:
			r.wrong(at.place, "write icmpv6", "icmp is of IPv4, and this entry's addresses are of IPv6: it can never match")
			return false
		case p == classify.ICMPv6 && !v6:
			r.wrong(at.place, "write icmp", "icmpv6 is of IPv6, and this entry's addresses are of IPv4: it can never match")
			return false
		}
	}
	return true
}

// families reports which IP versions a list leaves; an empty one both.
func families(list []netip.Prefix) (v4, v6 bool) {
	is4 := func(p netip.Prefix) bool { return p.Addr().Is4() }
	is6 := func(p netip.Prefix) bool { return p.Addr().Is6() }
	return len(list) == 0 || slices.ContainsFunc(list, is4), len(list) == 0 || slices.ContainsFunc(list, is6)
}

// shadows reports the rules that an earlier one leaves nothing for; entries are those they are from.
func (r *report) shadows(rules *classify.Rules, entries []*node) {
	for _, s := range rules.Shadowed() {
		r.wrong(entries[s.Rule].place, "remove one of them, or move the narrower one up",
			"this entry of class %q can never match: that of class %q on line %d takes all of its flows first",
			rules.List[s.Rule].Class, rules.List[s.By].Class, entries[s.By].line)
	}
}
