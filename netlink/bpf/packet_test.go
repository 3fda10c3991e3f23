package bpf

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"

	"shaperd/classify"
)

// A packet is an Ethernet frame that is put together from its parts.
type packet struct {
	tags       []uint16 // ethertypes of tags before the payload: 0x8100, 0x88a8
	pppoe      bool
	src, dst   netip.Addr
	tos        uint8
	proto      classify.Protocol
	sport      uint16
	dport      uint16
	options    int     // bytes of IPv4 options
	extensions []uint8 // IPv6 extension headers, and 51 in IPv4
	fragment   uint16  // offset in units of 8 bytes
	more       bool    // fragments follow
	icmpType   uint8
}

func (p *packet) bytes() []byte {
	b := make([]byte, 12, 256)
	v6 := p.src.Is6()
	for _, tag := range p.tags {
		b = binary.BigEndian.AppendUint16(b, tag)
		b = append(b, 0, 7)
	}
	kind, inPPP := uint16(0x0800), byte(0x21)
	if v6 {
		kind, inPPP = 0x86dd, 0x57
	}
	if p.pppoe {
		b = binary.BigEndian.AppendUint16(b, 0x8864)
		b = append(b, 0x11, 0, 0, 1, 0, 100, 0, inPPP)
	} else {
		b = binary.BigEndian.AppendUint16(b, kind)
	}
	if v6 {
		return append(b, p.ipv6(p.transport())...)
	}
	return append(b, p.ipv4(p.transport())...)
}

func (p *packet) transport() []byte {
	b := make([]byte, 24)
	binary.BigEndian.PutUint16(b, p.sport)
	binary.BigEndian.PutUint16(b[2:], p.dport)
	switch p.proto {
	case classify.TCP:
		b[12] = 0x50
	case classify.UDP, 136:
		binary.BigEndian.PutUint16(b[4:], 24)
	case classify.ICMP, classify.ICMPv6:
		b[0] = p.icmpType
	}
	return b
}

// authentication is an IPsec authentication header of 24 bytes.
func authentication(next uint8) []byte { return append([]byte{next, 4}, make([]byte, 22)...) }

func (p *packet) ipv4(payload []byte) []byte {
	proto := uint8(p.proto)
	if len(p.extensions) > 0 {
		payload, proto = append(authentication(proto), payload...), 51
	}
	h := make([]byte, 20+p.options)
	h[0], h[1], h[8], h[9] = 0x45+uint8(p.options/4), p.tos, 64, proto
	for i := 20; i < len(h); i++ {
		h[i] = 1
	}
	binary.BigEndian.PutUint16(h[2:], uint16(len(h)+len(payload)))
	offset := p.fragment
	if p.more {
		offset |= 0x2000
	}
	binary.BigEndian.PutUint16(h[6:], offset)
	copy(h[12:], p.src.AsSlice())
	copy(h[16:], p.dst.AsSlice())
	return append(h, payload...)
}

func (p *packet) ipv6(payload []byte) []byte {
	next := uint8(p.proto)
	for i := len(p.extensions) - 1; i >= 0; i-- {
		var h []byte
		switch p.extensions[i] {
		case 44:
			h = []byte{next, 0, 0, 0, 0, 0, 0, 9}
			offset := p.fragment << 3
			if p.more {
				offset |= 1
			}
			binary.BigEndian.PutUint16(h[2:], offset)
		case 51:
			h = authentication(next)
		default:
			h = append([]byte{next, 1, 1, 12}, make([]byte, 12)...)
		}
		payload, next = append(h, payload...), p.extensions[i]
	}
	h := make([]byte, 40)
	h[0], h[1] = 0x60|p.tos>>4, p.tos<<4
	binary.BigEndian.PutUint16(h[4:], uint16(len(payload)))
	h[6], h[7] = next, 64
	src, dst := p.src.As16(), p.dst.As16()
	copy(h[8:], src[:])
	copy(h[24:], dst[:])
	return append(h, payload...)
}

// plain is the packet without what the decoder of captures does not know.
func (p *packet) plain() *packet {
	q := *p
	q.pppoe = false
	return &q
}

// A chooser makes random rules and packets that often meet.
type chooser struct{ *rand.Rand }

func (c chooser) port() uint16 {
	if c.IntN(4) == 0 {
		return uint16(1 + c.IntN(65535))
	}
	return []uint16{22, 53, 80, 443, 873, 5060, 8080, 65535}[c.IntN(8)]
}

func (c chooser) addr(v6 bool) netip.Addr {
	switch {
	case !v6:
		return netip.AddrFrom4([4]byte{10, byte(c.IntN(2)), byte(c.IntN(3)), byte(c.IntN(4))})
	case c.IntN(10) == 0: // an IPv4 address in IPv6
		return netip.AddrFrom16([16]byte{10: 255, 11: 255, 12: 10, 13: byte(c.IntN(2)), 14: byte(c.IntN(3)), 15: byte(c.IntN(4))})
	}
	return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 4: byte(c.IntN(2)), 7: byte(c.IntN(3)), 15: byte(c.IntN(4))})
}

func (c chooser) packet() *packet {
	v6 := c.IntN(2) == 0
	p := &packet{
		src: c.addr(v6), dst: c.addr(v6), tos: uint8(c.IntN(256)), sport: c.port(), dport: c.port(),
		proto: []classify.Protocol{classify.TCP, classify.TCP, classify.UDP, classify.ICMP, 132, 136, 47, 50}[c.IntN(8)],
	}
	for range c.IntN(3) * c.IntN(2) {
		p.tags = append(p.tags, []uint16{0x8100, 0x88a8}[c.IntN(2)])
	}
	p.pppoe = c.IntN(8) == 0
	if v6 {
		for range c.IntN(4) * c.IntN(2) {
			p.extensions = append(p.extensions, []uint8{0, 43, 60, 44, 51}[c.IntN(5)])
		}
	} else {
		p.options = 4 * c.IntN(11) * c.IntN(2)
		if c.IntN(8) == 0 {
			p.extensions = []uint8{51}
		}
	}
	if c.IntN(4) == 0 {
		p.fragment, p.more = uint16(c.IntN(2)*185), c.IntN(2) == 0
	}
	return p
}

func (c chooser) ranges() (out []classify.PortRange) {
	for range 1 + c.IntN(3) {
		a, b := c.port(), c.port()
		if c.IntN(2) == 0 {
			b = a
		}
		out = append(out, classify.PortRange{First: min(a, b), Last: max(a, b)})
	}
	return out
}

func (c chooser) prefixes() (out []netip.Prefix) {
	for range 1 + c.IntN(2) {
		a := c.addr(c.IntN(2) == 0).Unmap()
		p, _ := a.Prefix([]int{0, 8, 15, 24, 31, 32}[c.IntN(6)] * (a.BitLen() / 32))
		out = append(out, p)
	}
	return out
}

func (c chooser) rule(class string) classify.Rule {
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
