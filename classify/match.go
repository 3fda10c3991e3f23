package classify

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// A Match is a conjunction over its keys; within one key any listed value will
// do, and an empty key matches everything.
type Match struct {
	Proto  []Protocol
	Port   []PortRange // either side's port
	SPort  []PortRange // the source's port
	DPort  []PortRange // the destination's port
	Src    []netip.Prefix
	Dst    []netip.Prefix
	DSCP   []DSCP
	Fwmark []uint32
}

// Sides returns the source and destination ports that m takes, as a pair of
// lists, of which an empty one means all: one pair without Port, which is either
// side's, else one for each side that it may be on. No pair means no flow.
func (m *Match) Sides() (pairs [][2][]PortRange) {
	if len(m.Port) == 0 {
		return [][2][]PortRange{{m.SPort, m.DPort}}
	}
	if s := common(m.Port, m.SPort); len(s) > 0 {
		pairs = append(pairs, [2][]PortRange{s, m.DPort})
	}
	if d := common(m.Port, m.DPort); len(d) > 0 {
		pairs = append(pairs, [2][]PortRange{m.SPort, d})
	}
	return pairs
}

// common is what is in both lists, where an empty second one means all ports.
func common(a, b []PortRange) (out []PortRange) {
	if len(b) == 0 {
		return a
	}
	for _, x := range a {
		for _, y := range b {
			if r := (PortRange{max(x.First, y.First), min(x.Last, y.Last)}); r.First <= r.Last {
				out = append(out, r)
			}
		}
	}
	return out
}

// Mismatch returns the first key of m that keeps f out, with what f has
// there, such as "dport 80"; empty when m matches.
func (m *Match) Mismatch(f *Flow) string {
	src, dst := f.Src.Addr().Unmap(), f.Dst.Addr().Unmap()
	sport, dport := f.Src.Port(), f.Dst.Port()
	switch {
	case len(m.Proto) > 0 && !slices.Contains(m.Proto, f.Proto):
		return "proto " + f.Proto.String()
	case len(m.Port) > 0 && !hasPort(m.Port, sport) && !hasPort(m.Port, dport):
		return "port " + portText(sport) + ", " + portText(dport)
	case len(m.SPort) > 0 && !hasPort(m.SPort, sport):
		return "sport " + portText(sport)
	case len(m.DPort) > 0 && !hasPort(m.DPort, dport):
		return "dport " + portText(dport)
	case len(m.Src) > 0 && !hasAddr(m.Src, src):
		return "src " + addrText(src)
	case len(m.Dst) > 0 && !hasAddr(m.Dst, dst):
		return "dst " + addrText(dst)
	case len(m.DSCP) > 0 && !slices.Contains(m.DSCP, f.DSCP):
		return "dscp " + f.DSCP.String()
	case len(m.Fwmark) > 0 && !slices.Contains(m.Fwmark, f.Fwmark):
		return fmt.Sprintf("fwmark %#x", f.Fwmark)
	}
	return ""
}

func portText(port uint16) string {
	if port == 0 {
		return "none"
	}
	return strconv.Itoa(int(port))
}

func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return "not given"
	}
	return a.String()
}

func hasPort(list []PortRange, port uint16) bool {
	return port != 0 && slices.ContainsFunc(list, func(r PortRange) bool { return r.Contains(port) })
}

func hasAddr(list []netip.Prefix, a netip.Addr) bool {
	a = a.WithZone("")
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

// String returns m as the policy file spells it: "{proto: tcp, dport: [80, 443]}".
func (m Match) String() string {
	var keys []string
	add := func(name string, list []string) {
		switch len(list) {
		case 0:
		case 1:
			keys = append(keys, name+": "+list[0])
		default:
			keys = append(keys, name+": ["+strings.Join(list, ", ")+"]")
		}
	}
	add("proto", texts(m.Proto))
	add("port", texts(m.Port))
	add("sport", texts(m.SPort))
	add("dport", texts(m.DPort))
	add("src", texts(m.Src))
	add("dst", texts(m.Dst))
	add("dscp", texts(m.DSCP))
	var marks []string
	for _, mark := range m.Fwmark {
		marks = append(marks, fmt.Sprintf("%#x", mark))
	}
	add("fwmark", marks)
	return "{" + strings.Join(keys, ", ") + "}"
}

func texts[T fmt.Stringer](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = v.String()
	}
	return out
}

// ParsePrefix reads a network in CIDR notation, or one address. IPv4 in IPv6
// comes out as IPv4. Its error is a *ValueError.
func ParsePrefix(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return netip.Prefix{}, &ValueError{"prefix", s, "write an address or a network such as 192.0.2.0/24 or 2001:db8::/32"}
	case p.Addr().Is4In6() && p.Bits() >= 96:
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	if p != p.Masked() {
		return netip.Prefix{}, &ValueError{"prefix", s, "it has bits beyond its length: write " + p.Masked().String()}
	}
	return p, nil
}
