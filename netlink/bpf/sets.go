package bpf

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"shaperd/classify"
)

// maxMembers bounds the rules in all sets of one key together.
const maxMembers = 1 << 23

// sets numbers the sets of a group's rules that accept a value of one key.
type sets struct {
	numbers map[string]uint16
	of      [][]uint16 // the sets that each rule of the group is in
	members int
	full    bool
}

func newSets(list []variant) *sets {
	return &sets{numbers: map[string]uint16{}, of: make([][]uint16, len(list))}
}

// number returns the set's number, 0 for the empty one. Members are in order.
func (s *sets) number(members []int32) uint16 {
	if len(members) == 0 || s.full {
		return 0
	}
	text := make([]byte, 0, 4*len(members))
	for _, m := range members {
		text = binary.LittleEndian.AppendUint32(text, uint32(m))
	}
	if n, ok := s.numbers[string(text)]; ok {
		return n
	}
	if s.members += len(members); s.members > maxMembers || len(s.numbers) == maxSets {
		s.full = true
		return 0
	}
	n := uint16(len(s.numbers) + 1)
	s.numbers[string(text)] = n
	for _, m := range members {
		s.of[m] = append(s.of[m], n)
	}
	return n
}

// fill makes the group's table of one key.
func (g *group) fill(k key, s *sets, list []variant) {
	switch k {
	case keyProto:
		fillNumbers(g.proto[:], s, list, func(m *classify.Match) []classify.Protocol { return m.Proto })
	case keyDSCP:
		fillNumbers(g.dscp[:], s, list, func(m *classify.Match) []classify.DSCP { return m.DSCP })
	case keySPort:
		g.sport = fillPorts(s, list, func(v *variant) []classify.PortRange { return v.sport })
	case keyDPort:
		g.dport = fillPorts(s, list, func(v *variant) []classify.PortRange { return v.dport })
	case keySrc:
		g.prefixes[0] = prefixSets(s, list, func(m *classify.Match) []netip.Prefix { return m.Src })
	case keyDst:
		g.prefixes[1] = prefixSets(s, list, func(m *classify.Match) []netip.Prefix { return m.Dst })
	case keyFwmark:
		members := map[uint32][]int32{}
		collect(list, members, func(m *classify.Match) []uint32 { return m.Fwmark })
		g.marks = map[uint32]uint16{}
		for _, mark := range sorted(members) {
			g.marks[mark] = s.number(members[mark])
		}
	}
}

// collect gathers the rules that name each value, in order.
func collect[T interface {
	comparable
	~uint8 | ~uint32
}](list []variant, members map[T][]int32, values func(*classify.Match) []T) {
	for i := range list {
		for _, v := range values(list[i].match) {
			if m := members[v]; len(m) == 0 || m[len(m)-1] != int32(i) {
				members[v] = append(m, int32(i))
			}
		}
	}
}

func sorted[K ~uint8 | ~uint32, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func fillNumbers[T ~uint8](table []uint16, s *sets, list []variant, values func(*classify.Match) []T) {
	members := map[T][]int32{}
	collect(list, members, values)
	for _, v := range sorted(members) {
		if int(v) < len(table) {
			table[v] = s.number(members[v])
		}
	}
}

// fillPorts goes over the ports, and renumbers where a range begins or ends.
func fillPorts(s *sets, list []variant, ranges func(*variant) []classify.PortRange) *[65536]uint16 {
	type edge struct{ opens, closes []int32 }
	edges := map[uint32]*edge{}
	at := func(port int) *edge {
		e := edges[uint32(port)]
		if e == nil {
			e = &edge{}
			edges[uint32(port)] = e
		}
		return e
	}
	for i := range list {
		for _, r := range merged(ranges(&list[i])) {
			first, after := at(int(r.First)), at(int(r.Last)+1)
			first.opens, after.closes = append(first.opens, int32(i)), append(after.closes, int32(i))
		}
	}
	table := &[65536]uint16{}
	var open []int32
	points := sorted(edges)
	for n, port := range points {
		e := edges[port]
		for _, m := range e.closes {
			at, _ := slices.BinarySearch(open, m)
			open = slices.Delete(open, at, at+1)
		}
		for _, m := range e.opens {
			at, _ := slices.BinarySearch(open, m)
			open = slices.Insert(open, at, m)
		}
		if port == 65536 {
			break
		}
		set, end := s.number(open), uint32(65536)
		if n+1 < len(points) {
			end = points[n+1]
		}
		if set != 0 {
			for ; port < end; port++ {
				table[port] = set
			}
		}
	}
	return table
}

// merged joins ranges that overlap or touch. Port 0 is no port.
func merged(ranges []classify.PortRange) (out []classify.PortRange) {
	ranges = slices.Clone(ranges)
	slices.SortFunc(ranges, func(a, b classify.PortRange) int { return int(a.First) - int(b.First) })
	for _, r := range ranges {
		r.First = max(r.First, 1)
		if n := len(out); n > 0 && int(r.First) <= int(out[n-1].Last)+1 {
			out[n-1].Last = max(out[n-1].Last, r.Last)
		} else if r.First <= r.Last {
			out = append(out, r)
		}
	}
	return out
}

// prefixSets gives each prefix the set of rules that have it or one around it:
// the longest that matches says all.
func prefixSets(s *sets, list []variant, prefixes func(*classify.Match) []netip.Prefix) (out []prefix) {
	own := map[netip.Prefix][]int32{}
	for i := range list {
		for _, p := range prefixes(list[i].match) {
			if p = p.Masked(); len(own[p]) == 0 || own[p][len(own[p])-1] != int32(i) {
				own[p] = append(own[p], int32(i))
			}
		}
	}
	all := make([]netip.Prefix, 0, len(own))
	for p := range own {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b netip.Prefix) int { // the one around comes before those in it
		if c := a.Addr().Compare(b.Addr()); c != 0 {
			return c
		}
		return a.Bits() - b.Bits()
	})
	type around struct {
		netip.Prefix
		members []int32
	}
	var stack []around
	for _, p := range all {
		for len(stack) > 0 && !stack[len(stack)-1].Overlaps(p) {
			stack = stack[:len(stack)-1]
		}
		members := slices.Clone(own[p])
		if len(stack) > 0 {
			members = append(members, stack[len(stack)-1].members...)
		}
		slices.Sort(members)
		members = slices.Compact(members)
		stack = append(stack, around{p, members})
		out = append(out, prefix{p, s.number(members)})
	}
	return out
}
