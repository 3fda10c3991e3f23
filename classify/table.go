package classify

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
)

// dimension is one key of a match.
type dimension int

const (
	dimProto dimension = iota
	dimPort
	dimSPort
	dimDPort
	dimSrc
	dimDst
	dimDSCP
	dimFwmark
	numDimensions
)

// A point is a value of a dimension: an address as it is, a number in lo. Its
// family keeps IPv4 and IPv6 apart.
type point struct {
	family uint8
	hi, lo uint64
}

func (p point) compare(q point) int {
	return cmp.Or(cmp.Compare(p.family, q.family), cmp.Compare(p.hi, q.hi), cmp.Compare(p.lo, q.lo))
}

func (p *point) after(q *point) bool {
	switch {
	case p.family != q.family:
		return p.family > q.family
	case p.hi != q.hi:
		return p.hi > q.hi
	}
	return p.lo > q.lo
}

// next returns the point after p, and false at the end of the family.
func (p point) next() (point, bool) {
	p.lo++
	if p.lo == 0 {
		p.hi++
	}
	return p, p.lo != 0 || p.hi != 0
}

// values are a flow's points, by dimension; ports are both in dimPort.
type values struct {
	proto, sport, dport, src, dst, dscp, fwmark point
}

func valuesOf(f *Flow) values {
	return values{
		number64(uint64(f.Proto)), number64(uint64(f.Src.Port())), number64(uint64(f.Dst.Port())),
		address(f.Src.Addr()), address(f.Dst.Addr()), number64(uint64(f.DSCP)), number64(uint64(f.Fwmark)),
	}
}

func number64(n uint64) point { return point{lo: n} }

// address is the zero point's family for no address, which no prefix has.
func address(a netip.Addr) point {
	switch a = a.Unmap(); {
	case a.Is4():
		b := a.As4()
		return point{family: 4, lo: uint64(binary.BigEndian.Uint32(b[:]))}
	case a.Is6():
		b := a.As16()
		return point{6, binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
	}
	return point{}
}

// A span is an inclusive range of points.
type span struct{ first, last point }

// dimensions tells how a match uses each.
var dimensions = [numDimensions]struct {
	used  func(*Match) bool
	spans func(*Match) []span
}{
	dimProto:  {func(m *Match) bool { return len(m.Proto) > 0 }, func(m *Match) []span { return singles(m.Proto) }},
	dimPort:   {func(m *Match) bool { return len(m.Port) > 0 }, func(m *Match) []span { return ranges(m.Port) }},
	dimSPort:  {func(m *Match) bool { return len(m.SPort) > 0 }, func(m *Match) []span { return ranges(m.SPort) }},
	dimDPort:  {func(m *Match) bool { return len(m.DPort) > 0 }, func(m *Match) []span { return ranges(m.DPort) }},
	dimSrc:    {func(m *Match) bool { return len(m.Src) > 0 }, func(m *Match) []span { return prefixes(m.Src) }},
	dimDst:    {func(m *Match) bool { return len(m.Dst) > 0 }, func(m *Match) []span { return prefixes(m.Dst) }},
	dimDSCP:   {func(m *Match) bool { return len(m.DSCP) > 0 }, func(m *Match) []span { return singles(m.DSCP) }},
	dimFwmark: {func(m *Match) bool { return len(m.Fwmark) > 0 }, func(m *Match) []span { return singles(m.Fwmark) }},
}

func singles[T ~uint8 | ~uint32](list []T) (spans []span) {
	for _, v := range list {
		spans = append(spans, span{number64(uint64(v)), number64(uint64(v))})
	}
	return spans
}

func ranges(list []PortRange) (spans []span) {
	for _, r := range list { // port 0 is no port
		spans = append(spans, span{number64(uint64(max(r.First, 1))), number64(uint64(r.Last))})
	}
	return spans
}

func prefixes(list []netip.Prefix) (spans []span) {
	for _, p := range list {
		p = p.Masked()
		first := address(p.Addr())
		last, host := first, p.Addr().BitLen()-p.Bits()
		if host >= 64 {
			last.lo = ^uint64(0)
			last.hi |= 1<<(host-64) - 1
		} else {
			last.lo |= 1<<host - 1
		}
		spans = append(spans, span{first, last})
	}
	return spans
}

// A table maps the points of one dimension to the rules that accept them. Cut
// at every point where that changes, the dimension falls into intervals;
// starts has their first points in order, and sets what is accepted from there on.
type table struct {
	of     dimension
	starts []point
	sets   []*ruleSet // nil for none
}

// tableShare bounds a table: so many entries for each of its rules. More are
// needed only by rules that overlap each other by the hundred.
const tableShare = 64

// newTable builds the table of dimension d for the rules in list; false when it would be too large.
func newTable(d dimension, list []int32, rules []Rule) (t table, ok bool) {
	type edge struct {
		at   point
		rule int32
		open bool
	}
	var edges []edge
	for _, r := range list {
		for _, s := range merged(dimensions[d].spans(&rules[r].Match)) {
			edges = append(edges, edge{s.first, r, true})
			if end, ok := s.last.next(); ok {
				edges = append(edges, edge{end, r, false})
			}
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return a.at.compare(b.at) })
	t.of = d
	var accepted []int32 // in order
	known, entries := map[string]*ruleSet{}, 0
	for i := 0; i < len(edges); {
		at := edges[i].at
		for ; i < len(edges) && edges[i].at == at; i++ {
			place, _ := slices.BinarySearch(accepted, edges[i].rule)
			if edges[i].open {
				accepted = slices.Insert(accepted, place, edges[i].rule)
			} else {
				accepted = slices.Delete(accepted, place, place+1)
			}
		}
		if entries += len(accepted); entries > tableShare*(len(list)+64) {
			return table{}, false
		}
		t.starts = append(t.starts, at)
		t.sets = append(t.sets, newRuleSet(accepted, known))
	}
	return t, true
}

// merged joins spans that overlap or touch, so that each rule is opened and closed once for each.
func merged(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return a.first.compare(b.first) })
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 {
			if end, ok := out[n-1].last.next(); out[n-1].last.family == s.first.family && (!ok || s.first.compare(end) <= 0) {
				if s.last.compare(out[n-1].last) > 0 {
					out[n-1].last = s.last
				}
				continue
			}
		}
		out = append(out, s)
	}
	return out
}

// at returns the rules that accept p, nil for none.
func (t *table) at(p point) *ruleSet {
	lo, hi := 0, len(t.starts)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if t.starts[mid].after(&p) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if lo == 0 || t.starts[lo-1].family != p.family {
		return nil
	}
	return t.sets[lo-1]
}

// lookup returns the rules that accept the flow in the table's dimension: two sets for a port on either side.
func (t *table) lookup(v *values) [2]*ruleSet {
	switch t.of {
	case dimProto:
		return [2]*ruleSet{t.at(v.proto)}
	case dimPort:
		return [2]*ruleSet{t.at(v.sport), t.at(v.dport)}
	case dimSPort:
		return [2]*ruleSet{t.at(v.sport)}
	case dimDPort:
		return [2]*ruleSet{t.at(v.dport)}
	case dimSrc:
		return [2]*ruleSet{t.at(v.src)}
	case dimDst:
		return [2]*ruleSet{t.at(v.dst)}
	case dimDSCP:
		return [2]*ruleSet{t.at(v.dscp)}
	default:
		return [2]*ruleSet{t.at(v.fwmark)}
	}
}

// A ruleSet is a set of rules in order, with a bit map where it is long.
type ruleSet struct {
	list []int32
	base int32 // the bit map begins at this rule
	bits []uint64
}

// longSet is the length from which a bit map is kept beside the list.
const longSet = 16

// newRuleSet returns the set of what is accepted, the same one for the same content.
func newRuleSet(accepted []int32, known map[string]*ruleSet) *ruleSet {
	if len(accepted) == 0 {
		return nil
	}
	key := make([]byte, 0, 4*len(accepted))
	for _, r := range accepted {
		key = binary.LittleEndian.AppendUint32(key, uint32(r))
	}
	s := &ruleSet{list: slices.Clone(accepted)}
	if same := known[string(key)]; same != nil {
		return same
	}
	if len(s.list) >= longSet {
		s.base = s.list[0] &^ 63
		s.bits = make([]uint64, (s.list[len(s.list)-1]-s.base)/64+1)
		for _, r := range s.list {
			s.bits[(r-s.base)/64] |= 1 << ((r - s.base) % 64)
		}
	}
	known[string(key)] = s
	return s
}

func (s *ruleSet) rules() []int32 {
	if s == nil {
		return nil
	}
	return s.list
}

func (s *ruleSet) has(r int32) bool {
	if s == nil || r < s.list[0] || r > s.list[len(s.list)-1] {
		return false
	}
	if s.bits == nil {
		return slices.Contains(s.list, r)
	}
	return s.bits[(r-s.base)/64]&(1<<((r-s.base)%64)) != 0
}
