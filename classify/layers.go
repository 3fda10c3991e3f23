package classify

import (
	"encoding/binary"
	"errors"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// The layers below are gopacket decoding layers for what its own either
// allocate for or have no decoding layer for. Each keeps what the last packet
// had, as slices of that packet.

var errShort = errors.New("header is cut short")

// payload is what follows a header.
type payload struct{ rest []byte }

func (p *payload) LayerPayload() []byte { return p.rest }

// ip4Header is the IPv4 header with its options.
type ip4Header struct {
	payload
	tos      uint8
	next     layers.IPProtocol
	later    bool // not the first fragment
	src, dst []byte
}

func (h *ip4Header) CanDecode() gopacket.LayerClass { return layers.LayerTypeIPv4 }
func (h *ip4Header) NextLayerType() gopacket.LayerType {
	switch h.next {
	case layers.IPProtocolIPv6HopByHop, layers.IPProtocolIPv6Routing, layers.IPProtocolIPv6Fragment, layers.IPProtocolIPv6Destination:
		return gopacket.LayerTypeZero // no headers of IPv4's
	}
	return following(h.next, h.later)
}

func (h *ip4Header) DecodeFromBytes(b []byte, _ gopacket.DecodeFeedback) error {
	if len(b) < 20 || b[0]>>4 != 4 {
		return errShort
	}
	length, total := 4*int(b[0]&15), int(binary.BigEndian.Uint16(b[2:]))
	if length < 20 || length > len(b) {
		return errShort
	}
	h.tos, h.next, h.later = b[1], layers.IPProtocol(b[9]), binary.BigEndian.Uint16(b[6:])&0x1fff != 0
	h.src, h.dst, h.rest = b[12:16], b[16:20], b[length:]
	if length <= total && total < len(b) { // a short frame's padding is no payload; an offloaded packet has no length
		h.rest = b[length:total]
	}
	return nil
}

// following is the layer after a header. Nothing that can be read follows in a
// later fragment, and what a tunnel carries is no part of its flow.
func following(next layers.IPProtocol, later bool) gopacket.LayerType {
	if later {
		return gopacket.LayerTypeZero
	}
	switch next {
	case layers.IPProtocolTCP, layers.IPProtocolUDP, layers.IPProtocolUDPLite, layers.IPProtocolSCTP, layers.IPProtocolAH,
		layers.IPProtocolIPv6HopByHop, layers.IPProtocolIPv6Routing, layers.IPProtocolIPv6Fragment, layers.IPProtocolIPv6Destination:
		return next.LayerType()
	}
	return gopacket.LayerTypeZero
}

// ip6Header is the fixed IPv6 header.
type ip6Header struct {
	payload
	class    uint8 // traffic class
	next     layers.IPProtocol
	src, dst []byte
}

func (h *ip6Header) CanDecode() gopacket.LayerClass    { return layers.LayerTypeIPv6 }
func (h *ip6Header) NextLayerType() gopacket.LayerType { return following(h.next, false) }
func (h *ip6Header) DecodeFromBytes(b []byte, _ gopacket.DecodeFeedback) error {
	if len(b) < 40 || b[0]>>4 != 6 {
		return errShort
	}
	h.class, h.next = b[0]<<4|b[1]>>4, layers.IPProtocol(b[6])
	h.src, h.dst, h.rest = b[8:24], b[24:40], b[40:]
	return nil
}

// options is one of the IPv6 headers that give their length in units of 8 bytes.
type options struct {
	payload
	next layers.IPProtocol
}

var optionLayers = gopacket.NewLayerClass([]gopacket.LayerType{
	layers.LayerTypeIPv6HopByHop, layers.LayerTypeIPv6Routing, layers.LayerTypeIPv6Destination,
})

func (h *options) CanDecode() gopacket.LayerClass    { return optionLayers }
func (h *options) NextLayerType() gopacket.LayerType { return following(h.next, false) }
func (h *options) DecodeFromBytes(b []byte, _ gopacket.DecodeFeedback) error {
	if len(b) < 2 || len(b) < 8*(int(b[1])+1) {
		return errShort
	}
	h.next, h.rest = layers.IPProtocol(b[0]), b[8*(int(b[1])+1):]
	return nil
}

// fragment is the IPv6 fragment header.
type fragment struct {
	payload
	next  layers.IPProtocol
	later bool // not the first fragment
}

func (h *fragment) CanDecode() gopacket.LayerClass    { return layers.LayerTypeIPv6Fragment }
func (h *fragment) NextLayerType() gopacket.LayerType { return following(h.next, h.later) }
func (h *fragment) DecodeFromBytes(b []byte, _ gopacket.DecodeFeedback) error {
	if len(b) < 8 {
		return errShort
	}
	h.next, h.later, h.rest = layers.IPProtocol(b[0]), binary.BigEndian.Uint16(b[2:])&^7 != 0, b[8:]
	return nil
}

// authentication is the IPsec authentication header, in IPv4 and IPv6.
type authentication struct {
	payload
	next layers.IPProtocol
}

func (h *authentication) CanDecode() gopacket.LayerClass    { return layers.LayerTypeIPSecAH }
func (h *authentication) NextLayerType() gopacket.LayerType { return following(h.next, false) }
func (h *authentication) DecodeFromBytes(b []byte, _ gopacket.DecodeFeedback) error {
	if len(b) < 2 || len(b) < 4*(int(b[1])+2) {
		return errShort
	}
	h.next, h.rest = layers.IPProtocol(b[0]), b[4*(int(b[1])+2):]
	return nil
}

// ports is the beginning of TCP, UDP, UDP-Lite and SCTP alike.
type ports struct {
	payload
	src, dst uint16
}

var portLayers = gopacket.NewLayerClass([]gopacket.LayerType{
	layers.LayerTypeTCP, layers.LayerTypeUDP, layers.LayerTypeUDPLite, layers.LayerTypeSCTP,
})

func (h *ports) CanDecode() gopacket.LayerClass    { return portLayers }
func (h *ports) NextLayerType() gopacket.LayerType { return gopacket.LayerTypeZero }
func (h *ports) DecodeFromBytes(b []byte, _ gopacket.DecodeFeedback) error {
	if len(b) < 4 {
		return errShort
	}
	h.src, h.dst = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	return nil
}
