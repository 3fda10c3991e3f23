package classify

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// Errors of decoding; they come wrapped, with what was wrong.
var (
	ErrNotIP     = errors.New("not an IP packet")
	ErrTruncated = errors.New("packet is cut short or malformed")
)

// HeaderDSCP returns the DSCP of a packet that starts with its IP header.
func HeaderDSCP(packet []byte) (DSCP, error) {
	if len(packet) < 2 {
		return 0, ErrTruncated
	}
	switch packet[0] >> 4 {
	case 4:
		return DSCP(packet[1] >> 2), nil
	case 6:
		return DSCP(packet[0]&0xf<<2 | packet[1]>>6), nil
	}
	return 0, ErrNotIP
}

// A Decoder reads flows from packets. It is reused from packet to packet and
// does not allocate; it is not safe for concurrent use.
type Decoder struct {
	ethernet layers.Ethernet
	tag      layers.Dot1Q
	ip4      ip4Header
	ip6      ip6Header
	options  options // hop-by-hop, routing and destination headers
	fragment fragment
	auth     authentication
	ports    ports
	fromLink *gopacket.DecodingLayerParser
	fromIP4  *gopacket.DecodingLayerParser
	fromIP6  *gopacket.DecodingLayerParser
	found    []gopacket.LayerType
}

// NewDecoder returns a decoder.
func NewDecoder() *Decoder {
	d := &Decoder{found: make([]gopacket.LayerType, 0, 16)}
	parser := func(first gopacket.LayerType) *gopacket.DecodingLayerParser {
		p := gopacket.NewDecodingLayerParser(first, &d.ethernet, &d.tag, &d.ip4, &d.ip6, &d.options, &d.fragment, &d.auth, &d.ports)
		p.IgnoreUnsupported = true
		return p
	}
	d.fromLink, d.fromIP4, d.fromIP6 = parser(layers.LayerTypeEthernet), parser(layers.LayerTypeIPv4), parser(layers.LayerTypeIPv6)
	return d
}

// Ethernet reads the flow of a frame, with any VLAN tags, into f; see IP.
func (d *Decoder) Ethernet(frame []byte, f *Flow) error { return d.decode(d.fromLink, frame, f) }

// IP reads the flow of a packet that starts with its IP header into f, all but
// the fwmark. Later fragments have no ports. After an error f holds what could be read.
func (d *Decoder) IP(packet []byte, f *Flow) error {
	if len(packet) == 0 {
		*f = Flow{}
		return ErrTruncated
	}
	switch packet[0] >> 4 {
	case 4:
		return d.decode(d.fromIP4, packet, f)
	case 6:
		return d.decode(d.fromIP6, packet, f)
	}
	*f = Flow{}
	return ErrNotIP
}

func (d *Decoder) decode(p *gopacket.DecodingLayerParser, data []byte, f *Flow) error {
	*f = Flow{}
	d.ports = ports{}
	err := p.DecodeLayers(data, &d.found)
	isIP, whole := false, true
	var src, dst netip.Addr
	for _, layer := range d.found {
		switch layer {
		case layers.LayerTypeIPv4:
			isIP, whole = true, !d.ip4.later
			f.DSCP, f.Proto = DSCP(d.ip4.tos>>2), Protocol(d.ip4.next)
			src, _ = netip.AddrFromSlice(d.ip4.src)
			dst, _ = netip.AddrFromSlice(d.ip4.dst)
		case layers.LayerTypeIPv6:
			isIP = true
			f.DSCP, f.Proto = DSCP(d.ip6.class>>2), Protocol(d.ip6.next)
			src, _ = netip.AddrFromSlice(d.ip6.src)
			dst, _ = netip.AddrFromSlice(d.ip6.dst)
		case layers.LayerTypeIPv6Fragment:
			f.Proto, whole = Protocol(d.fragment.next), whole && !d.fragment.later
		case layers.LayerTypeIPSecAH:
			f.Proto = Protocol(d.auth.next)
		case layers.LayerTypeIPv6HopByHop, layers.LayerTypeIPv6Routing, layers.LayerTypeIPv6Destination:
			f.Proto = Protocol(d.options.next)
		}
	}
	f.Src, f.Dst = netip.AddrPortFrom(src.Unmap(), d.ports.src), netip.AddrPortFrom(dst.Unmap(), d.ports.dst)
	switch {
	case !isIP && err == nil:
		return ErrNotIP
	case err != nil && (!isIP || whole && f.Proto.HasPorts()):
		return fmt.Errorf("%w: %w", ErrTruncated, err)
	}
	return nil
}
