package u32

import (
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"shaperd/classify"
)

const (
	maxNodes  = 200_000
	tableRoom = 0xffe // nodes in a hash table with one bucket, whose numbers have 12 bits
)

// Limits are what u32 filters cannot see, in words, whatever the rules.
var Limits = []string{
	"IPv6 packets with extension headers match no rule with ports",
	"packets with a VLAN tag that is not in the card's hands, and those in PPPoE, go to the default class",
}

// A Table is rules compiled to u32 filters.
type Table struct {
	Nodes []Node // in the order in which they must be added
}

// A Node is one filter, or one hash table of filters.
type Node struct {
	Slot     int    // 0 to Slots-1: each has one protocol, and needs a preference of its own
	Protocol uint16 // ETH_P_*
	// Handle is table:bucket:node. A node of the slot's own first table has no
	// table in it, since the kernel numbers those.
	Handle uint32
	spec
}

// Slots is how many protocols there are.
const Slots = 6

// control traffic other than IP, by slot.
var controlProtocols = []uint16{2: unix.ETH_P_ARP, 3: 0x88cc, 4: 0x888e, 5: 0x8863} // LLDP, EAPOL, PPPoE discovery

// portProtocols are those whose ports classify reads.
var portProtocols = []classify.Protocol{classify.TCP, classify.UDP, classify.SCTP, 136}

// A compiler makes the filters of one family.
type compiler struct {
	family  family
	slot    int
	major   uint16
	table   uint32 // number of the table that is filled
	used    uint32 // nodes in it
	links   uint32 // tables so far
	nodes   []Node
	minors  map[string]uint16
	control uint16
}

// Compile turns rules into filters of the HTB qdisc with the major. Minors gives
// the number of each rule's class, control that of the class for control
// traffic, which comes before all rules. Hash tables are numbered from first on;
// two sets of filters at one qdisc must not have numbers in common.
func Compile(rules classify.Rules, minors map[string]uint16, control, major uint16, first uint32) (*Table, error) {
	t := &Table{}
	for slot, f := range []family{ipv4, ipv6} {
		c := compiler{family: f, slot: slot, major: major, table: first - 1, used: tableRoom, minors: minors, control: control}
		c.controls()
		for i := range rules.List {
			if err := c.rule(i, &rules.List[i]); err != nil {
				return nil, err
			}
		}
		t.Nodes = append(t.Nodes, c.nodes...)
		first = c.table + 1
	}
	for slot, protocol := range controlProtocols {
		if protocol != 0 {
			t.Nodes = append(t.Nodes, Node{slot, protocol, rootNode, spec{keys: []part{{}}, classid: uint32(major)<<16 | uint32(control)}})
		}
	}
	return t, nil
}

// rootNode is the first node's number in the table that the kernel makes for a slot.
const rootNode = 0x800

// add adds a filter, in a new table when the last is full.
func (c *compiler) add(keys []part, mark *uint32, minor uint16) {
	if c.used == tableRoom {
		c.table, c.used = c.table+1, 0
		c.nodes = append(c.nodes,
			Node{c.slot, c.family.protocol, c.table << 20, spec{divisor: 1}},
			Node{c.slot, c.family.protocol, rootNode + c.links, spec{keys: []part{{}}, link: c.table << 20, variable: c.family.variable}})
		c.links++
	}
	c.used++
	c.nodes = append(c.nodes, Node{c.slot, c.family.protocol, c.table<<20 | c.used, spec{
		keys: keys, mark: mark, classid: uint32(c.major)<<16 | uint32(minor), table: c.table << 20,
	}})
}

// controls adds the filters of what comes before all rules.
func (c *compiler) controls() {
	server, client := uint16(67), uint16(68)
	if c.family.protocol == unix.ETH_P_IPV6 {
		server, client = 547, 546
		icmp := c.family.proto(classify.ICMPv6)
		for _, r := range append(split(0, 127, 8), split(130, 255, 8)...) { // 128 and 129 are pings, which follow the rules
			c.add(merge(icmp, c.family.l4(r.first<<24, r.mask<<24)), nil, c.control)
		}
	}
	for _, sport := range []uint16{server, client} {
		for _, dport := range []uint16{server, client} {
			c.add(merge(c.family.proto(classify.UDP), c.family.whole(), c.family.l4(uint32(sport)<<16|uint32(dport), 1<<32-1)), nil, c.control)
		}
	}
}

// rule adds the filters of one rule: one for each combination of its values.
func (c *compiler) rule(index int, r *classify.Rule) error {
	m, minor := &r.Match, c.minors[r.Class]
	if minor == 0 {
		return fmt.Errorf("rule %d: class %q has no number", index+1, r.Class)
	}
	src, okSrc := c.family.prefixes(m.Src, c.family.src)
	dst, okDst := c.family.prefixes(m.Dst, c.family.dst)
	if !okSrc || !okDst {
		return nil // of the other family
	}
	for _, v := range m.Sides() {
		lists := [][][]part{src, dst, c.family.dscps(m.DSCP), c.transport(m.Proto, v[0], v[1])}
		marks := []*uint32{nil}
		if len(m.Fwmark) > 0 {
			marks = marks[:0]
			for i := range m.Fwmark {
				marks = append(marks, &m.Fwmark[i])
			}
		}
		product(lists, func(keys []part) {
			for _, mark := range marks {
				c.add(keys, mark, minor)
			}
		})
		if len(c.nodes) > maxNodes {
			return fmt.Errorf("rule %d: the rules make more than %d u32 filters: use fewer lists and ranges, or allow eBPF (CAP_BPF and CAP_PERFMON)", index+1, maxNodes)
		}
	}
	return nil
}

// transport returns the keys for protocols and ports; none when nothing can match.
func (c *compiler) transport(protos []classify.Protocol, sport, dport []classify.PortRange) (out [][]part) {
	if len(sport)+len(dport) == 0 {
		for _, p := range protos {
			out = append(out, c.family.proto(p))
		}
		if len(protos) == 0 {
			out = append(out, nil)
		}
		return out
	}
	for _, p := range portProtocols {
		if len(protos) > 0 && !slices.Contains(protos, p) {
			continue
		}
		for _, s := range ports(sport) {
			for _, d := range ports(dport) {
				out = append(out, merge(c.family.proto(p), c.family.whole(), c.family.l4(s.first<<16|d.first, s.mask<<16|d.mask)))
			}
		}
	}
	return out
}

// product calls use with the merged keys of each combination of one of every list.
func product(lists [][][]part, use func([]part)) {
	var walk func(n int, keys []part)
	walk = func(n int, keys []part) {
		if n == len(lists) {
			use(keys)
			return
		}
		for _, one := range lists[n] {
			walk(n+1, merge(keys, one))
		}
	}
	walk(0, nil)
}

// prefixes returns the keys for each prefix of the family; none, and false, when all are of the other.
func (f *family) prefixes(list []netip.Prefix, at int32) (out [][]part, ok bool) {
	if len(list) == 0 {
		return [][]part{nil}, true
	}
	for _, p := range list {
		if p.Addr().Is4() == (f.protocol == unix.ETH_P_IP) {
			out = append(out, f.prefix(p.Masked(), at))
		}
	}
	return out, len(out) > 0
}
