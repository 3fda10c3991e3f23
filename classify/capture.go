package classify

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// A Capture is what a capture file holds, as flows.
type Capture struct {
	Flows   []CapturedFlow // in the order of their first packet
	Skipped int            // packets that are not IP, or too short to tell
}

// A CapturedFlow is a flow with what was seen of it.
type CapturedFlow struct {
	Flow
	Packets int
	Bytes   int64 // on the wire, with link-layer headers
}

// ReadCapture reads a capture in pcap or pcapng format to its end. An error
// names the packet; the flows before it are returned as well.
func ReadCapture(r io.Reader) (c *Capture, err error) {
	c = &Capture{}
	packets := 0
	defer func() { // the reader of pcapng trusts some lengths in the file
		if p := recover(); p != nil {
			err = fmt.Errorf("packet %d: malformed: %v", packets+1, p)
		}
	}()
	next, err := openCapture(bufio.NewReader(r))
	if err != nil {
		return c, err
	}
	seen := map[Flow]int{}
	d := NewDecoder()
	var f Flow
	for {
		data, ci, link, err := next()
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return c, nil
		}
		packets++
		if err != nil {
			return c, fmt.Errorf("packet %d: %w", packets, err)
		}
		if err := d.frame(link, data, &f); err != nil {
			c.Skipped++
			continue
		}
		i, known := seen[f]
		if !known {
			i = len(c.Flows)
			seen[f] = i
			c.Flows = append(c.Flows, CapturedFlow{Flow: f})
		}
		c.Flows[i].Packets++
		c.Flows[i].Bytes += int64(ci.Length)
	}
}

// packetReader returns the next packet and the type of the link it was taken from.
type packetReader func() ([]byte, gopacket.CaptureInfo, layers.LinkType, error)

func openCapture(r *bufio.Reader) (packetReader, error) {
	magic, err := r.Peek(4)
	if err != nil {
		return nil, fmt.Errorf("read capture: %w", io.ErrUnexpectedEOF)
	}
	if binary.BigEndian.Uint32(magic) == 0x0a0d0d0a {
		ng, err := pcapgo.NewNgReader(r, pcapgo.NgReaderOptions{WantMixedLinkType: true})
		if err != nil {
			return nil, fmt.Errorf("read pcapng capture: %w", err)
		}
		return func() ([]byte, gopacket.CaptureInfo, layers.LinkType, error) {
			data, ci, err := ng.ReadPacketData()
			link := ng.LinkType()
			if err == nil {
				if i, err := ng.Interface(ci.InterfaceIndex); err == nil {
					link = i.LinkType
				}
			}
			return data, ci, link, err
		}, nil
	}
	pcap, err := pcapgo.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("read capture: neither pcap nor pcapng: %w", err)
	}
	return func() ([]byte, gopacket.CaptureInfo, layers.LinkType, error) {
		data, ci, err := pcap.ReadPacketData()
		return data, ci, pcap.LinkType(), err
	}, nil
}

// frame reads the flow of a captured frame.
func (d *Decoder) frame(link layers.LinkType, data []byte, f *Flow) error {
	header := 0
	switch link {
	case layers.LinkTypeEthernet:
		return d.Ethernet(data, f)
	case layers.LinkTypeRaw, linkRawBSD, linkRawOpenBSD, layers.LinkTypeIPv4, layers.LinkTypeIPv6:
	case layers.LinkTypeNull, layers.LinkTypeLoop:
		header = 4
	case layers.LinkTypeLinuxSLL:
		header = 16
	case linkLinuxSLL2:
		header = 20
	default:
		return fmt.Errorf("%w: link type %d", ErrNotIP, link)
	}
	if len(data) < header {
		return ErrTruncated
	}
	return d.IP(data[header:], f)
}

// Link types that gopacket has no name for (tcpdump.org/linktypes.html).
const (
	linkRawBSD     layers.LinkType = 12
	linkRawOpenBSD layers.LinkType = 14
	linkLinuxSLL2  layers.LinkType = 276 & 0xff // gopacket keeps 8 bits of it
)
