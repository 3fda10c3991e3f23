package lab

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"shaperd/internal/measure"
)

// TCP describes connections of which one end sends all it can.
type TCP struct {
	Client, Server string           // hosts
	Addrs          []netip.AddrPort // of the server, one for each connection
	DSCP           uint8            // of all packets both ways
	Down           bool             // the server sends, else the client
}

// Streams are connections with traffic on them. Its methods are for one goroutine.
type Streams struct {
	// Got is the payload that has arrived, by the number of the connection in Addrs.
	Got *measure.Recorder

	wire               []float64 // bytes on the wire for each byte of payload
	senders, receivers []*net.TCPConn
	sending            atomic.Bool
	senderGroup        sync.WaitGroup
	receiverGroup      sync.WaitGroup
}

// Connect makes connections and notes what arrives on them, until Close.
func (l *Lab) Connect(t TCP) (*Streams, error) {
	s := &Streams{Got: measure.NewRecorder()}
	for n, addr := range t.Addrs {
		client, server, err := l.pair(&t, addr)
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("connect %s to %s: %w", t.Client, addr, err)
		}
		from, to := client, server
		if t.Down {
			from, to = server, client
		}
		s.senders, s.receivers = append(s.senders, from), append(s.receivers, to)
		payload := mtu - ipHeader(addr.Addr()) - tcpHeader
		s.wire = append(s.wire, float64(mtu+ethernetHeader)/float64(payload))
		s.receiverGroup.Go(func() { s.Got.Count(n, to) })
	}
	return s, nil
}

func (l *Lab) pair(t *TCP, addr netip.AddrPort) (client, server *net.TCPConn, err error) {
	listener, err := l.listen(t.Server, addr, t.DSCP)
	if err != nil {
		return nil, nil, err
	}
	defer listener.Close()
	c, err := l.dial(t.Client, "tcp", addr, t.DSCP)
	if err != nil {
		return nil, nil, err
	}
	server, err = listener.AcceptTCP()
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return c.(*net.TCPConn), server, nil
}

// Send has every connection's sender send until Stop. It does nothing while they do.
func (s *Streams) Send() {
	if s.sending.Swap(true) {
		return
	}
	for _, c := range s.senders {
		s.senderGroup.Go(func() {
			for s.sending.Load() {
				if _, err := c.Write(zeros[:]); err != nil {
					return // closed, or told to stop
				}
			}
		})
	}
}

var zeros [16 << 10]byte

// Stop ends the sending. What is in the sockets still goes out.
func (s *Streams) Stop() {
	s.sending.Store(false)
	for _, c := range s.senders {
		_ = c.SetWriteDeadline(time.Now())
	}
	s.senderGroup.Wait()
	for _, c := range s.senders {
		_ = c.SetWriteDeadline(time.Time{})
	}
}

// Rate returns the rate from the first arrival at or after a time of Got, which
// only starts the clock, to the last within span: in bits per second, with
// the headers of full packets, as the kernel counts. Each is the payload of
// each connection meanwhile, in bytes.
func (s *Streams) Rate(from, span time.Duration) (bits float64, each []float64) {
	payload, each := measure.Rate(s.Got.Since(from), span, len(s.wire))
	return 8 * payload * s.perPayload(each), each
}

// Between is the average rate of what arrived between two times of Got, as Rate counts.
func (s *Streams) Between(from, to time.Duration) (bits float64) {
	for _, a := range s.Got.Since(from) {
		if a.At < to {
			bits += 8 * s.wire[a.Conn] * float64(a.N)
		}
	}
	return bits / (to - from).Seconds()
}

// perPayload is how many bytes are on the wire for each byte of payload, of
// which each connection has had so much.
func (s *Streams) perPayload(each []float64) float64 {
	var payload, wire float64
	for i, n := range each {
		payload += n
		wire += n * s.wire[i]
	}
	if payload == 0 {
		return 0
	}
	return wire / payload
}

// Close ends the connections at once: what is under way is lost.
func (s *Streams) Close() {
	s.sending.Store(false)
	for i := range s.senders {
		_ = s.senders[i].SetLinger(0)
		s.senders[i].Close()
		s.receivers[i].Close()
	}
	s.senderGroup.Wait()
	s.receiverGroup.Wait()
}
