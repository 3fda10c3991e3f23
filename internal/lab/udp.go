package lab

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"shaperd/internal/measure"
	"shaperd/shaper"
)

// UDP describes numbered packets that are sent at a steady rate.
type UDP struct {
	From, To string         // hosts
	Addr     netip.AddrPort // of the receiver
	DSCP     uint8
	Size     int         // of the payload in bytes: at least 8
	Rate     shaper.Rate // of the packets with their Ethernet, IP and UDP headers
}

// Packets are what UDP describes, with a receiver that waits for them.
type Packets struct {
	udp      UDP
	gap      time.Duration // between packets
	sender   net.Conn
	receiver *net.UDPConn
	next     int // number of the next packet; Send's

	working sync.WaitGroup
	mu      sync.Mutex
	got     []measure.Arrival
	mark    chan struct{} // a mark has arrived
}

const receiveBuffer = 16 << 20 // bytes: what waits for the receiver is not lost

// markNumber is that of a packet behind all others.
const markNumber = 1<<32 - 1

// Packets opens sockets for packets.
func (l *Lab) Packets(u UDP) (*Packets, error) {
	if u.Size < 8 || u.Rate <= 0 {
		return nil, fmt.Errorf("packets of %d bytes at %s: at least 8, and a rate", u.Size, u.Rate)
	}
	wire := u.Size + udpHeader + ipHeader(u.Addr.Addr()) + ethernetHeader
	p := &Packets{udp: u, gap: time.Duration(float64(wire) * 8 / float64(u.Rate) * 1e9), mark: make(chan struct{}, 1)}
	err := l.Do(u.To, func() error {
		c, err := net.ListenUDP(network("udp", u.Addr.Addr()), net.UDPAddrFromAddrPort(u.Addr))
		if err != nil {
			return err
		}
		p.receiver = c
		return setBuffer(c, receiveBuffer)
	})
	if err == nil {
		p.sender, err = l.dial(u.From, "udp", u.Addr, u.DSCP)
	}
	if err != nil {
		if p.receiver != nil {
			p.receiver.Close()
		}
		return nil, fmt.Errorf("packets from %s to %s: %w", u.From, u.Addr, err)
	}
	p.working.Go(p.receive)
	return p, nil
}

// setBuffer makes a socket's buffer for what arrives larger than others may.
func setBuffer(c *net.UDPConn, bytes int) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	if err := raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bytes)
	}); err != nil {
		return err
	}
	return set
}

func (p *Packets) receive() {
	base := time.Now()
	buf := make([]byte, 64<<10)
	for {
		n, err := p.receiver.Read(buf)
		if err != nil {
			return // closed
		}
		number := binary.BigEndian.Uint32(buf)
		if number == markNumber {
			select {
			case p.mark <- struct{}{}:
			default:
			}
			continue
		}
		p.mu.Lock()
		p.got = append(p.got, measure.Arrival{At: time.Since(base), N: n, Conn: int(number)})
		p.mu.Unlock()
	}
}

// Send sends so many packets, each when it is due: after a delay those that are late follow at once.
func (p *Packets) Send(ctx context.Context, packets int) error {
	payload := make([]byte, p.udp.Size)
	timer := time.NewTimer(0)
	defer timer.Stop()
	begin := time.Now()
	for n := range packets {
		if wait := time.Until(begin.Add(time.Duration(n) * p.gap)); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		binary.BigEndian.PutUint32(payload, uint32(p.next))
		p.next++
		if _, err := p.sender.Write(payload); err != nil {
			return fmt.Errorf("send packet %d: %w", p.next-1, err)
		}
	}
	return nil
}

// Arrived returns what has arrived: Conn is the packet's number.
func (p *Packets) Arrived() []measure.Arrival {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]measure.Arrival(nil), p.got...)
}

// Lost waits until everything sent has arrived or been lost, and returns how
// many packets were. It knows by marks sent behind them until one arrives, so
// it takes it that packets keep their order.
func (p *Packets) Lost(ctx context.Context) (int, error) {
	mark := make([]byte, p.udp.Size)
	binary.BigEndian.PutUint32(mark, markNumber)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		if _, err := p.sender.Write(mark); err != nil {
			return 0, fmt.Errorf("send a mark: %w", err)
		}
		select {
		case <-p.mark:
			seen := map[int]bool{}
			for _, a := range p.Arrived() {
				seen[a.Conn] = true
			}
			return p.next - len(seen), nil
		case <-again.C:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// Close gives back the sockets.
func (p *Packets) Close() {
	p.sender.Close()
	p.receiver.Close()
	p.working.Wait()
}
