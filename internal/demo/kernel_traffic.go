package demo

import (
	"net/netip"
	"time"

	"shaperd/internal/lab"
	"shaperd/shaper"
)

// kernelPorts are the servers' ports; voice goes by its DSCP.
var kernelPorts = map[string]uint16{"voice": 5004, "web": 443, "backup": 873, "bulk": 9000}

const (
	flowsPerClass = 4
	efDSCP        = 46
)

// flows are the connections of a class one way: those with even numbers by IPv4.
type flows struct {
	*lab.Streams
	class   *shaper.Class
	samples []float64 // bits per second on the wire
	last    time.Duration
}

// newFlows connects the client to the server; down has the server send.
func newFlows(l *lab.Lab, c *shaper.Class, down bool) (*flows, error) {
	t := lab.TCP{Client: "client", Server: "server", Down: down}
	if c.Name == "voice" {
		t.DSCP = efDSCP
	}
	for n := range flowsPerClass {
		host := netip.MustParseAddr([]string{"10.2.0.2", "fd02::2"}[n%2])
		t.Addrs = append(t.Addrs, netip.AddrPortFrom(host, kernelPorts[c.Name]))
	}
	s, err := l.Connect(t)
	if err != nil {
		return nil, err
	}
	return &flows{Streams: s, class: c}, nil
}

// sample adds what has arrived since the last sample to the picture.
func (f *flows) sample() {
	now := f.Got.Now()
	f.samples = append(f.samples, f.Between(f.last, now))
	f.last = now
}
