package classify

import "net/netip"

// A Shadow is a rule that can never match, because an earlier one takes all of its flows.
type Shadow struct{ Rule, By int }

// Shadowed returns the rules that one earlier rule covers, each with the first
// that does. A covering rule takes every flow of the other, so only the rules
// that take a sample of them are compared.
func (r *Rules) Shadowed() []Shadow {
	var shadows []Shadow
	c, err := Compile(*r)
	if err != nil {
		return nil
	}
	for i := range r.List {
		m := &r.List[i].Match
		f := m.sample()
		v := valuesOf(&f)
		by := int32(i)
		for j := range c.groups {
			if g := &c.groups[j]; g.first < by {
				by = g.match(r.List, &f, &v, by, func(rule int32) bool { return r.List[rule].Match.covers(m) })
			}
		}
		if by < int32(i) {
			shadows = append(shadows, Shadow{i, int(by)})
		}
	}
	return shadows
}

// sample returns a flow that m takes.
func (m *Match) sample() (f Flow) {
	var src, dst netip.Addr
	var sport, dport uint16
	if len(m.Proto) > 0 {
		f.Proto = m.Proto[0]
	}
	if len(m.Port) > 0 {
		dport = m.Port[0].First
	}
	if len(m.SPort) > 0 {
		sport = m.SPort[0].First
	}
	if len(m.DPort) > 0 {
		if dport != 0 && !hasPort(m.DPort, dport) {
			sport = dport // port is met by the other side
		}
		dport = m.DPort[0].First
	}
	if len(m.Src) > 0 {
		src = m.Src[0].Addr()
	}
	if len(m.Dst) > 0 {
		dst = m.Dst[0].Addr()
	}
	if len(m.DSCP) > 0 {
		f.DSCP = m.DSCP[0]
	}
	if len(m.Fwmark) > 0 {
		f.Fwmark = m.Fwmark[0]
	}
	f.Src, f.Dst = netip.AddrPortFrom(src, sport), netip.AddrPortFrom(dst, dport)
	return f
}

// covers reports whether m takes every flow that other takes, as far as that
// shows key by key.
func (m *Match) covers(other *Match) bool {
	for d := range numDimensions {
		if d != dimPort && dimensions[d].used(m) && !within(other, d, m, d) {
			return false
		}
	}
	return len(m.Port) == 0 || within(other, dimPort, m, dimPort) || within(other, dimSPort, m, dimPort) || within(other, dimDPort, m, dimPort)
}

// within reports whether all that a allows in dimension da is allowed by b in db.
func within(a *Match, da dimension, b *Match, db dimension) bool {
	if !dimensions[da].used(a) {
		return false
	}
	outer := merged(dimensions[db].spans(b))
	for _, s := range dimensions[da].spans(a) {
		inside := false
		for _, o := range outer {
			inside = inside || o.first.family == s.first.family && o.first.compare(s.first) <= 0 && s.last.compare(o.last) <= 0
		}
		if !inside {
			return false
		}
	}
	return true
}
