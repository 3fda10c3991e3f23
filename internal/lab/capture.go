package lab

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Packet is what arrived at a device at a time.
type Packet struct {
	At    time.Duration // by the kernel's clock, since 1970
	Bytes int           // as a qdisc counts: with the Ethernet header, and all headers of an offloaded packet
	Count int           // of packets on a wire: more than one if offloaded
	Data  []byte        // its first 128 bytes from the Ethernet header on
}

// A Capture tells of every packet that arrives at a device.
type Capture struct {
	file    *os.File // the packet socket
	note    func(Packet)
	working sync.WaitGroup
}

const (
	snapLength    = 128
	captureBuffer = 64 << 20 // bytes
	vnetHeader    = 10       // struct virtio_net_hdr
)

// Capture calls note for each packet that arrives at a device until Close, from
// one goroutine. The packet's data is note's only until it returns.
func (l *Lab) Capture(name, device string, note func(Packet)) (*Capture, error) {
	c := &Capture{note: note}
	err := l.Do(name, func() error {
		dev, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return err
		}
		c.file = os.NewFile(uintptr(fd), "packet socket")
		for _, set := range []struct{ level, option, value int }{
			{unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1},
			{unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1},
			{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1},
			{unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, captureBuffer},
		} {
			if err := unix.SetsockoptInt(fd, set.level, set.option, set.value); err != nil {
				return err
			}
		}
		all := uint16(unix.ETH_P_ALL)
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all<<8 | all>>8, Ifindex: dev.Index})
	})
	if err != nil {
		if c.file != nil {
			c.file.Close()
		}
		return nil, fmt.Errorf("capture at %s on %s: %w", device, name, err)
	}
	c.working.Go(c.receive)
	return c, nil
}

func (c *Capture) receive() {
	raw, err := c.file.SyscallConn()
	if err != nil {
		return
	}
	buf, oob := make([]byte, vnetHeader+snapLength), make([]byte, 128)
	for {
		var n, oobn int
		var errno error
		err := raw.Read(func(fd uintptr) bool {
			n, oobn, _, _, errno = unix.Recvmsg(int(fd), buf, oob, unix.MSG_TRUNC)
			return errno != unix.EAGAIN
		})
		if err != nil || errno != nil {
			return // closed
		}
		p := newPacket(buf[:min(n, len(buf))], n)
		messages, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err == nil && len(messages) > 0 {
			p.At = time.Duration((*unix.Timespec)(unsafe.Pointer(&messages[0].Data[0])).Nano())
		}
		c.note(p)
	}
}

// newPacket reads what the kernel has put before a packet's data, of which
// there are length bytes in all.
func newPacket(buf []byte, length int) Packet {
	p := Packet{Bytes: length - vnetHeader, Count: 1, Data: buf[vnetHeader:]}
	offload, segment := buf[1], int(binary.NativeEndian.Uint16(buf[4:]))
	headers := headersOf(p.Data)
	if offload != unix.VIRTIO_NET_HDR_GSO_NONE && segment > 0 && p.Bytes > headers {
		p.Count = (p.Bytes - headers + segment - 1) / segment
		p.Bytes += (p.Count - 1) * headers
	}
	return p
}

// headersOf returns how many bytes of headers each segment of a TCP packet has.
func headersOf(frame []byte) int {
	ip := ethernetHeader + ipv4Header
	if len(frame) > 12 && binary.BigEndian.Uint16(frame[12:]) == unix.ETH_P_IPV6 {
		ip = ethernetHeader + ipv6Header
	}
	if len(frame) <= ip+12 {
		return ip
	}
	return ip + int(frame[ip+12]>>4)*4
}

// Close ends the capture.
func (c *Capture) Close() {
	c.file.Close()
	c.working.Wait()
}
