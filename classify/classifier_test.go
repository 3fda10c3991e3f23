package classify

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
)

// linear is the specification: the first rule that matches.
func linear(r *Rules, f *Flow) (string, int) {
	for i := range r.List {
		if r.List[i].Match.Mismatch(f) == "" {
			return r.List[i].Class, i
		}
	}
	return r.Default, -1
}

// pool is a small world of values, so that random rules and flows meet.
type pool struct {
	ports    []PortRange
	prefixes []netip.Prefix
	protos   []Protocol
	dscps    []DSCP
	marks    []uint32
}

func newPool(rng *rand.Rand, size int) *pool {
	p := &pool{protos: []Protocol{TCP, UDP, ICMP, ICMPv6, 47}, dscps: []DSCP{0, 8, 34, 46, 63}, marks: []uint32{0, 1, 0xffffffff}}
	for range size {
		first := uint16(1 + rng.IntN(65535))
		p.ports = append(p.ports, PortRange{first, uint16(min(65535, int(first)+rng.IntN(3)*rng.IntN(5000)))})
		p.prefixes = append(p.prefixes, netip.PrefixFrom(randomAddr(rng), 0))
		last := &p.prefixes[len(p.prefixes)-1]
		*last = netip.PrefixFrom(last.Addr(), rng.IntN(last.Addr().BitLen()+1)).Masked()
	}
	return p
}

func randomAddr(rng *rand.Rand) netip.Addr {
	if rng.IntN(3) == 0 {
		b := [16]byte{0x20, 1, 0xd, 0xb8}
		for i := range 4 {
			b[4+3*i] = byte(rng.IntN(4))
		}
		return netip.AddrFrom16(b)
	}
	return netip.AddrFrom4([4]byte{10, byte(rng.IntN(4)), byte(rng.IntN(256)), byte(rng.IntN(256))})
}

func some[T any](rng *rand.Rand, odds int, from []T) (list []T) {
	if rng.IntN(odds) == 0 {
		for range 1 + rng.IntN(3) {
			list = append(list, from[rng.IntN(len(from))])
		}
	}
	return list
}

func (p *pool) rule(rng *rand.Rand, i int) Rule {
	return Rule{Class: fmt.Sprint("class", i%7), Match: Match{
		Proto: some(rng, 4, p.protos), Port: some(rng, 5, p.ports), SPort: some(rng, 6, p.ports), DPort: some(rng, 3, p.ports),
		Src: some(rng, 4, p.prefixes), Dst: some(rng, 3, p.prefixes), DSCP: some(rng, 6, p.dscps), Fwmark: some(rng, 8, p.marks),
	}}
}

func (p *pool) flow(rng *rand.Rand) Flow {
	addr := func() netip.Addr {
		a := p.prefixes[rng.IntN(len(p.prefixes))].Addr()
		switch rng.IntN(4) {
		case 0:
			a = randomAddr(rng)
		case 1:
			if a.Is4() {
				a = netip.AddrFrom16(a.As16()) // IPv4 in IPv6
			}
		}
		return a
	}
	port := func() uint16 {
		if rng.IntN(8) == 0 {
			return 0
		}
		r := p.ports[rng.IntN(len(p.ports))]
		return []uint16{r.First, r.Last, r.Last + 1, r.First - 1}[rng.IntN(4)]
	}
	return Flow{
		Proto: p.protos[rng.IntN(len(p.protos))], Src: netip.AddrPortFrom(addr(), port()), Dst: netip.AddrPortFrom(addr(), port()),
		DSCP: p.dscps[rng.IntN(len(p.dscps))], Fwmark: p.marks[rng.IntN(len(p.marks))],
	}
}

func TestClassifierAgreesWithTheRuleList(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for round := range 300 {
		p := newPool(rng, 2+rng.IntN(30))
		rules := Rules{Default: "default"}
		for i := range rng.IntN(120) {
			rules.List = append(rules.List, p.rule(rng, i))
		}
		c, err := Compile(rules)
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			f := p.flow(rng)
			wantClass, want := linear(&rules, &f)
			if class, rule := c.Classify(&f); class != wantClass || rule != want {
				t.Fatalf("round %d: %v: rule %d of class %s, want %d of %s", round, f, rule, class, want, wantClass)
			}
		}
		for _, s := range rules.Shadowed() {
			for range 50 {
				f := p.flow(rng)
				if rules.List[s.Rule].Match.Mismatch(&f) == "" && rules.List[s.By].Match.Mismatch(&f) != "" {
					t.Fatalf("rule %v takes %v, and %v, said to cover it, does not", rules.List[s.Rule].Match, f, rules.List[s.By].Match)
				}
			}
		}
	}
}

// Ten thousand port ranges that overlap by the thousand: no table can hold them.
func TestRulesThatOverlapByTheThousand(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	rules := Rules{Default: "default"}
	for i := range 3000 {
		first := uint16(1 + rng.IntN(40000))
		rules.List = append(rules.List, Rule{fmt.Sprint(i), Match{DPort: []PortRange{{first, first + 20000}}, Dst: []netip.Prefix{netip.PrefixFrom(randomAddr(rng), 20).Masked()}}})
	}
	c, err := Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		f := Flow{Proto: TCP, Dst: netip.AddrPortFrom(randomAddr(rng), uint16(rng.IntN(65536)))}
		_, want := linear(&rules, &f)
		if _, rule := c.Classify(&f); rule != want {
			t.Fatalf("%v: rule %d, want %d", f, rule, want)
		}
	}
}

func TestShadowedRulesAreFound(t *testing.T) {
	m := func(keys ...any) (m Match) {
		for i := 0; i < len(keys); i += 2 {
			v := keys[i+1].(string)
			switch keys[i] {
			case "proto":
				p, _ := ParseProtocol(v)
				m.Proto = append(m.Proto, p)
			case "dst":
				p, _ := ParsePrefix(v)
				m.Dst = append(m.Dst, p)
			default:
				r, _ := ParsePortRange(v)
				list := map[any]*[]PortRange{"port": &m.Port, "sport": &m.SPort, "dport": &m.DPort}[keys[i]]
				*list = append(*list, r)
			}
		}
		return m
	}
	for _, tc := range []struct {
		earlier, later Match
		covered        bool
	}{
		{m(), m("dport", "80"), true},
		{m("dport", "80-90"), m("dport", "81-85"), true},
		{m("dport", "80-90"), m("dport", "81-91"), false},
		{m("dport", "80-84", "dport", "85-90"), m("dport", "81-89"), true},
		{m("port", "80"), m("dport", "80"), true},
		{m("port", "80"), m("sport", "80", "proto", "tcp"), true},
		{m("dport", "80"), m("port", "80"), false},
		{m("dst", "10.0.0.0/8"), m("dst", "10.1.0.0/16", "dport", "1"), true},
		{m("dst", "10.1.0.0/16"), m("dst", "10.0.0.0/8"), false},
		{m("dst", "0.0.0.0/0"), m("dst", "2001:db8::/32"), false},
		{m("dst", "0.0.0.0/0", "dst", "::/0"), m("dst", "2001:db8::/32"), true},
		{m("proto", "tcp"), m("dport", "80"), false},
		{m("port", "80", "dport", "80"), m("dport", "80"), true},
		{m("dport", "443"), m("port", "80", "dport", "443"), true},
	} {
		rules := Rules{List: []Rule{{"a", tc.earlier}, {"b", tc.later}}}
		got := rules.Shadowed()
		if covered := len(got) == 1; covered != tc.covered {
			t.Errorf("%v then %v: shadows %v", tc.earlier, tc.later, got)
		}
	}
}

// mixed returns n rules of the kinds that people write, none covering another.
func mixed(n int) Rules {
	rng := rand.New(rand.NewPCG(7, uint64(n)))
	rules := Rules{Default: "default"}
	for i := range n {
		var m Match
		v4 := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32)
		v6 := netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, byte(i >> 8), byte(i)}), 48)
		port := PortRange{uint16(1 + i*6), uint16(1 + i*6 + rng.IntN(5))}
		switch i % 5 {
		case 0:
			m = Match{Proto: []Protocol{TCP}, DPort: []PortRange{port}}
		case 1:
			m = Match{Dst: []netip.Prefix{v4}}
		case 2:
			m = Match{Dst: []netip.Prefix{v6}, DPort: []PortRange{{443, 443}}}
		case 3:
			m = Match{Src: []netip.Prefix{v4}, Proto: []Protocol{UDP}, Port: []PortRange{port}}
		case 4:
			m = Match{DSCP: []DSCP{DSCP(i % 64)}, Dst: []netip.Prefix{v4}}
		}
		rules.List = append(rules.List, Rule{fmt.Sprint("class", i%16), m})
	}
	return rules
}

func BenchmarkClassify(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10_000} {
		rules := mixed(n)
		c, err := Compile(rules)
		if err != nil {
			b.Fatal(err)
		}
		flows := []Flow{ // early, late, and none at all
			{Proto: TCP, Dst: netip.MustParseAddrPort("192.0.2.1:1")},
			{Proto: TCP, Dst: netip.AddrPortFrom(rules.List[n-4].Match.Dst[0].Addr(), 80)},
			{Proto: UDP, Src: netip.MustParseAddrPort("198.51.100.7:40000"), Dst: netip.MustParseAddrPort("192.0.2.1:65535"), DSCP: 46},
			{Proto: TCP, Src: netip.MustParseAddrPort("[2001:db8::7]:40000"), Dst: netip.MustParseAddrPort("[2001:db8:ffff::1]:443")},
		}
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.Classify(&flows[i&3])
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	rules := mixed(10_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile(rules); err != nil {
			b.Fatal(err)
		}
		rules.Shadowed()
	}
}
