package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"shaperd/internal/measure"
	"shaperd/shaper"
)

const (
	sendSize = 16 << 10
	// sendBuffer keeps short what is still under way when the servers have stopped.
	sendBuffer = 32 << 10
)

// A class is the traffic of one class of the policy: servers that send, and
// their clients, which receive through the relay.
type class struct {
	*shaper.Class
	listener *net.TCPListener
	servers  []*net.TCPConn
	clients  []*net.TCPConn
	got      *measure.Recorder // by the number of the connection
	first    int               // the number of its first connection
	sent     atomic.Int64      // bytes
	from     time.Duration     // of got's clock: when the phase's measuring began

	sending   bool        // without end
	stopped   atomic.Bool // tells the senders
	senders   sync.WaitGroup
	receivers sync.WaitGroup
	fail      func(error) // for senders and receivers; only the first counts
}

// newClass opens the port of the class's servers.
func newClass(spec *shaper.Class, fail func(error)) (*class, error) {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("start the servers of class %q: %w", spec.Name, err)
	}
	return &class{Class: spec, listener: l, got: measure.NewRecorder(), fail: fail}, nil
}

// mostAtOnce is the most that the policy lets out at once after a quiet time,
// with the reason.
func (c *class) mostAtOnce() (bytes int64, reason string) {
	if c.Mode == shaper.Leaky {
		return int64(shaper.Chunk(c.Ceil)), "leaky: one turn"
	}
	return int64(c.Burst), "its burst"
}

func (c *class) addr() netip.AddrPort { return c.listener.Addr().(*net.TCPAddr).AddrPort() }

// connect opens n connections through the relay and starts to receive: at once
// whatever comes, since what waits in a socket is not measured.
func (c *class) connect(ctx context.Context, relay netip.AddrPort, n int) error {
	for i := range n {
		client, err := dialSOCKS5(ctx, relay, c.addr())
		if err != nil {
			return fmt.Errorf("connect class %q: %w", c.Name, err)
		}
		c.clients = append(c.clients, client)
		server, err := c.listener.AcceptTCP()
		if err != nil {
			return fmt.Errorf("connect class %q: %w", c.Name, err)
		}
		c.servers = append(c.servers, server)
		if err := server.SetWriteBuffer(sendBuffer); err != nil {
			return fmt.Errorf("set send buffer: %w", err)
		}
		c.receivers.Go(func() {
			c.got.Count(c.first+i, client)
			c.fail(fmt.Errorf("class %q: a connection ended", c.Name))
		})
	}
	return nil
}

// keepSending has every server send without end, or stop; what is then under way still arrives.
func (c *class) keepSending(on bool) {
	if on == c.sending {
		return
	}
	c.sending = on
	c.stopped.Store(!on)
	if !on {
		c.senders.Wait()
		return
	}
	for _, server := range c.servers {
		c.senders.Go(func() {
			for !c.stopped.Load() && c.send(server, sendSize) {
				c.sent.Add(sendSize)
			}
		})
	}
}

// sendAt has the servers send a steady rate in bits per second together, until
// keepSending stops them. What cannot leave is not made up for.
func (c *class) sendAt(rate float64) {
	const tick, most = 2 * time.Millisecond, 20 * time.Millisecond // a burst of more would have to wait
	c.sending = true
	c.stopped.Store(false)
	c.senders.Go(func() {
		ticks := time.NewTicker(tick)
		defer ticks.Stop()
		for n, last := 0, time.Now(); !c.stopped.Load(); n++ {
			now := <-ticks.C
			due := int(rate / 8 * min(now.Sub(last), most).Seconds())
			last = now
			if !c.send(c.servers[n%len(c.servers)], max(due, 0)) {
				return
			}
			c.sent.Add(int64(due))
		}
	})
}

// sendOnce has one server send n bytes: more of them would take longer to get going.
func (c *class) sendOnce(n int) {
	c.sent.Add(int64(n))
	c.senders.Go(func() { c.send(c.servers[0], n) })
}

var payload [sendSize]byte

func (c *class) send(server *net.TCPConn, n int) bool {
	for n > 0 {
		sent, err := server.Write(payload[:min(n, sendSize)])
		if err != nil {
			c.fail(fmt.Errorf("send class %q: %w", c.Name, err))
			return false
		}
		n -= sent
	}
	return true
}

// arrived reports whether everything sent has arrived; the senders have stopped, or send once.
func (c *class) arrived() bool { return c.got.Bytes(0) == c.sent.Load() }

// close ends all connections and waits for the goroutines.
func (c *class) close() {
	c.stopped.Store(true)
	c.listener.Close()
	for _, conn := range slices.Concat(c.clients, c.servers) {
		conn.Close()
	}
	c.senders.Wait()
	c.receivers.Wait()
}

// dialSOCKS5 connects to the server through the relay (RFC 1928, without login).
func dialSOCKS5(ctx context.Context, relay, server netip.AddrPort) (*net.TCPConn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp4", relay.String())
	if err != nil {
		return nil, err
	}
	// greeting: version 5, one method, no login; request: version 5, connect, IPv4
	host, port := server.Addr().As4(), server.Port()
	hello := append([]byte{5, 1, 0, 5, 1, 0, 1}, host[:]...)
	hello = append(hello, byte(port>>8), byte(port))
	reply := make([]byte, 2+10)
	_, err = c.Write(hello)
	if err == nil {
		_, err = io.ReadFull(c, reply)
	}
	if err == nil && reply[3] != 0 {
		err = errors.New("the relay refused")
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("through the relay to %s: %w", server, err)
	}
	return c.(*net.TCPConn), nil
}
