package demo

import (
	"fmt"
	"net"
	"sync"
	"time"

	"shaperd/internal/lab"
	"shaperd/internal/measure"
	"shaperd/shaper"
)

// kernelPorts are the servers' ports; voice goes by its DSCP.
var kernelPorts = map[string]int{"voice": 5004, "web": 443, "backup": 873, "bulk": 9000}

const (
	flowsPerClass = 4
	efTOS         = 46 << 2
	// What the kernel counts of a full packet, and what of it is payload: Ethernet, IP and TCP with timestamps.
	fullPacket  = 1514.
	payloadIPv4 = 1448.
	payloadIPv6 = 1428.
)

// flows are the connections of a class one way: those with even numbers by IPv4.
type flows struct {
	class     *shaper.Class
	senders   []*net.TCPConn
	receivers []*net.TCPConn
	got       *measure.Recorder
	samples   []float64 // bits per second on the wire
	last      time.Duration
	working   sync.WaitGroup
}

// newFlows connects the client to the server; down has the server send.
func newFlows(l *lab.Lab, c *shaper.Class, down bool) (*flows, error) {
	f := &flows{class: c, got: measure.NewRecorder()}
	tos := 0
	if c.Name == "voice" {
		tos = efTOS
	}
	for n := range flowsPerClass {
		addr := &net.TCPAddr{IP: net.ParseIP([]string{"10.2.0.2", "fd02::2"}[n%2]), Port: kernelPorts[c.Name]}
		var listener *net.TCPListener
		if err := l.Do("server", func() (err error) {
			listener, err = net.ListenTCP("tcp", addr)
			return err
		}); err != nil {
			return nil, fmt.Errorf("class %q: %w", c.Name, err)
		}
		var client, server *net.TCPConn
		err := l.Do("client", func() (err error) {
			client, err = net.DialTCP("tcp", nil, addr)
			return err
		})
		if err == nil {
			server, err = listener.AcceptTCP()
		}
		listener.Close()
		if err != nil {
			return nil, fmt.Errorf("class %q: %w", c.Name, err)
		}
		from, to := client, server
		if down {
			from, to = server, client
		}
		for _, conn := range []*net.TCPConn{from, to} {
			if err := lab.SetTOS(conn, tos); err != nil {
				return nil, fmt.Errorf("class %q: %w", c.Name, err)
			}
		}
		f.senders, f.receivers = append(f.senders, from), append(f.receivers, to)
		f.working.Go(func() { f.got.Count(n, to) })
	}
	return f, nil
}

// send has all senders send until close.
func (f *flows) send() {
	f.last = f.got.Now()
	for _, c := range f.senders {
		f.working.Go(func() {
			for {
				if _, err := c.Write(payload[:]); err != nil {
					return
				}
			}
		})
	}
}

// sample adds what has arrived since the last sample to the picture.
func (f *flows) sample() {
	now := f.got.Now()
	each := make([]float64, len(f.receivers))
	total := 0.0
	for _, a := range f.got.Since(f.last) {
		each[a.Conn] += float64(a.N)
		total += float64(a.N)
	}
	f.samples = append(f.samples, 8*wire(total/(now-f.last).Seconds(), each))
	f.last = now
}

func (f *flows) close() {
	for i := range f.senders {
		_ = f.senders[i].SetLinger(0)
		f.senders[i].Close()
		f.receivers[i].Close()
	}
	f.working.Wait()
}

// wire turns a rate of payload into one of packets, by what each connection has of it.
func wire(rate float64, each []float64) float64 {
	var payload, packets float64
	for i, n := range each {
		payload += n
		packets += n * fullPacket / []float64{payloadIPv4, payloadIPv6}[i%2]
	}
	if payload == 0 {
		return 0
	}
	return rate * packets / payload
}
