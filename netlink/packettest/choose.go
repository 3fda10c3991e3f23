package packettest

import (
	"math/rand/v2"
	"net/netip"

	"shaperd/classify"
)

// A Chooser makes random rules and packets that often meet.
type Chooser struct{ *rand.Rand }

func (c Chooser) port() uint16 {
	if c.IntN(4) == 0 {
		return uint16(1 + c.IntN(65535))
	}
	return []uint16{22, 53, 80, 443, 873, 5060, 8080, 65535}[c.IntN(8)]
}

func (c Chooser) addr(v6 bool) netip.Addr {
	switch {
	case !v6:
		return netip.AddrFrom4([4]byte{10, byte(c.IntN(2)), byte(c.IntN(3)), byte(c.IntN(4))})
	case c.IntN(10) == 0: // an IPv4 address in IPv6
		return netip.AddrFrom16([16]byte{10: 255, 11: 255, 12: 10, 13: byte(c.IntN(2)), 14: byte(c.IntN(3)), 15: byte(c.IntN(4))})
	}
	return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 4: byte(c.IntN(2)), 7: byte(c.IntN(3)), 15: byte(c.IntN(4))})
}

// Packet makes a packet.
func (c Chooser) Packet() *Packet {
	v6 := c.IntN(2) == 0
	p := &Packet{
		Src: c.addr(v6), Dst: c.addr(v6), TOS: uint8(c.IntN(256)), SPort: c.port(), DPort: c.port(),
		Proto: []classify.Protocol{classify.TCP, classify.TCP, classify.UDP, classify.ICMP, 132, 136, 47, 50}[c.IntN(8)],
	}
	for range c.IntN(3) * c.IntN(2) {
		p.Tags = append(p.Tags, []uint16{0x8100, 0x88a8}[c.IntN(2)])
	}
	p.PPPoE = c.IntN(8) == 0
	if v6 {
		for range c.IntN(4) * c.IntN(2) {
			p.Extensions = append(p.Extensions, []uint8{0, 43, 60, 44, 51}[c.IntN(5)])
		}
	} else {
		p.Options = 4 * c.IntN(11) * c.IntN(2)
		if c.IntN(8) == 0 {
			p.Extensions = []uint8{51}
		}
	}
	if c.IntN(4) == 0 {
		p.Fragment, p.More = uint16(c.IntN(2)*185), c.IntN(2) == 0
	}
	return p
}

func (c Chooser) ranges() (out []classify.PortRange) {
	for range 1 + c.IntN(3) {
		a, b := c.port(), c.port()
		if c.IntN(2) == 0 {
			b = a
		}
		out = append(out, classify.PortRange{First: min(a, b), Last: max(a, b)})
	}
	return out
}

func (c Chooser) prefixes() (out []netip.Prefix) {
	for range 1 + c.IntN(2) {
		a := c.addr(c.IntN(2) == 0).Unmap()
		p, _ := a.Prefix([]int{0, 8, 15, 24, 31, 32}[c.IntN(6)] * (a.BitLen() / 32))
		out = append(out, p)
	}
	return out
}

// Rule makes a rule for the class.
func (c Chooser) Rule(class string) classify.Rule {
	m := classify.Match{}
	for range 1 + c.IntN(3) {
		switch c.IntN(8) {
		case 0:
			m.Proto = []classify.Protocol{[]classify.Protocol{classify.TCP, classify.UDP, classify.ICMP, 47}[c.IntN(4)], 132}[:1+c.IntN(2)]
		case 1:
			m.Port = c.ranges()
		case 2:
			m.SPort = c.ranges()
		case 3:
			m.DPort = c.ranges()
		case 4:
			m.Src = c.prefixes()
		case 5:
			m.Dst = c.prefixes()
		case 6:
			m.DSCP = []classify.DSCP{classify.DSCP(c.IntN(64)), 46, 10}[:1+c.IntN(3)]
		case 7:
			m.Fwmark = []uint32{uint32(c.IntN(3)), 7}[:1+c.IntN(2)]
		}
	}
	return classify.Rule{Class: class, Match: m}
}
