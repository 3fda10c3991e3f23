package packettest

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"shaperd/classify"
)

// A Packet is an Ethernet frame that is put together from its parts.
type Packet struct {
	Tags       []uint16 // ethertypes of Tags before the payload: 0x8100, 0x88a8
	PPPoE      bool
	Src, Dst   netip.Addr
	TOS        uint8
	Proto      classify.Protocol
	SPort      uint16
	DPort      uint16
	Options    int     // bytes of IPv4 options
	Extensions []uint8 // IPv6 extension headers, and 51 in IPv4
	Fragment   uint16  // offset in units of 8 bytes
	More       bool    // fragments follow
	ICMPType   uint8
}

// Bytes is the frame.
func (p *Packet) Bytes() []byte {
	b := make([]byte, 12, 256)
	v6 := p.Src.Is6()
	for _, tag := range p.Tags {
		b = binary.BigEndian.AppendUint16(b, tag)
		b = append(b, 0, 7)
	}
	kind, inPPP := uint16(0x0800), byte(0x21)
	if v6 {
		kind, inPPP = 0x86dd, 0x57
	}
	if p.PPPoE {
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

func (p *Packet) transport() []byte {
	b := make([]byte, 24)
	binary.BigEndian.PutUint16(b, p.SPort)
	binary.BigEndian.PutUint16(b[2:], p.DPort)
	switch p.Proto {
	case classify.TCP:
		b[12] = 0x50
	case classify.UDP, 136:
		binary.BigEndian.PutUint16(b[4:], 24)
	case classify.ICMP, classify.ICMPv6:
		b[0] = p.ICMPType
	}
	return b
}

// authentication is an IPsec authentication header of 24 bytes.
func authentication(next uint8) []byte { return append([]byte{next, 4}, make([]byte, 22)...) }

func (p *Packet) ipv4(payload []byte) []byte {
	proto := uint8(p.Proto)
	if len(p.Extensions) > 0 {
		payload, proto = append(authentication(proto), payload...), 51
	}
	h := make([]byte, 20+p.Options)
	h[0], h[1], h[8], h[9] = 0x45+uint8(p.Options/4), p.TOS, 64, proto
	for i := 20; i < len(h); i++ {
		h[i] = 1
	}
	binary.BigEndian.PutUint16(h[2:], uint16(len(h)+len(payload)))
	offset := p.Fragment
	if p.More {
		offset |= 0x2000
	}
	binary.BigEndian.PutUint16(h[6:], offset)
	copy(h[12:], p.Src.AsSlice())
	copy(h[16:], p.Dst.AsSlice())
	return append(h, payload...)
}

func (p *Packet) ipv6(payload []byte) []byte {
	next := uint8(p.Proto)
	for _, kind := range slices.Backward(p.Extensions) {
		var h []byte
		switch kind {
		case 44:
			h = []byte{next, 0, 0, 0, 0, 0, 0, 9}
			offset := p.Fragment << 3
			if p.More {
				offset |= 1
			}
			binary.BigEndian.PutUint16(h[2:], offset)
		case 51:
			h = authentication(next)
		default:
			h = append([]byte{next, 1, 1, 12}, make([]byte, 12)...)
		}
		payload, next = append(h, payload...), kind
	}
	h := make([]byte, 40)
	h[0], h[1] = 0x60|p.TOS>>4, p.TOS<<4
	binary.BigEndian.PutUint16(h[4:], uint16(len(payload)))
	h[6], h[7] = next, 64
	src, dst := p.Src.As16(), p.Dst.As16()
	copy(h[8:], src[:])
	copy(h[24:], dst[:])
	return append(h, payload...)
}

// Plain is the packet without what the decoder of captures does not know.
func (p *Packet) Plain() *Packet {
	q := *p
	q.PPPoE = false
	return &q
}
