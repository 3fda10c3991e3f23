package demo

import (
	"net/netip"
	"sync"
	"time"

	"shaperd/classify"
	"shaperd/internal/lab"
	"shaperd/internal/measure"
	"shaperd/shaper"
)

// kernelPorts are the servers' ports; voice goes by its DSCP.
var kernelPorts = map[string]uint16{"voice": 5004, "web": 443, "backup": 873, "bulk": 9000}

const (
	flowsPerClass = 4
	efDSCP        = 46
)

// A direction is what crosses the router one way, and where it arrives.
type direction struct {
	name     string
	link     shaper.Link
	to       string // the host that traffic arrives at
	down     bool
	flows    []*flows
	promised []promise
	capture  *lab.Capture
	sampled  time.Duration // when the last sample was taken, since the start
}

// flows are the connections of a class one way, those with even numbers by
// IPv4, and the packets that arrive with them. The other way's acknowledgements
// are of the class, too.
type flows struct {
	class   *shaper.Class
	streams *lab.Streams
	top     float64  // the most that was ever promised, in bits per second
	samples []sample // of the picture
	counted int64    // bytes at the last sample

	mu    sync.Mutex
	bytes int64
	got   []measure.Arrival
}

// A sample is a rate in bits per second at a time since the start.
type sample struct {
	at   time.Duration
	rate float64
}

// open makes the connections of the direction and counts what arrives.
func (dir *direction) open(l *lab.Lab, rules *classify.Classifier) error {
	byName := map[string]*flows{}
	for i := range dir.link.Classes {
		f := &flows{class: &dir.link.Classes[i]}
		t := lab.TCP{Client: "client", Server: "server", Down: dir.down}
		if f.class.Name == "voice" {
			t.DSCP = efDSCP
		}
		for n := range flowsPerClass {
			host := netip.MustParseAddr([]string{"10.2.0.2", "fd02::2"}[n%2])
			t.Addrs = append(t.Addrs, netip.AddrPortFrom(host, kernelPorts[f.class.Name]))
		}
		var err error
		if f.streams, err = l.Connect(t); err != nil {
			return err
		}
		dir.flows = append(dir.flows, f)
		byName[f.class.Name] = f
	}
	decoder, flow := classify.NewDecoder(), classify.Flow{}
	var err error
	dir.capture, err = l.Capture(dir.to, "eth0", func(p lab.Packet) {
		flow = classify.Flow{}
		if decoder.Ethernet(p.Data, &flow) != nil || flow.Proto != classify.TCP {
			return // the kernel's own: neighbours
		}
		name, _ := rules.Classify(&flow)
		byName[name].arrived(p)
	})
	return err
}

func (f *flows) arrived(p lab.Packet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bytes += int64(p.Bytes)
	f.got = append(f.got, measure.Arrival{At: p.At, N: p.Bytes})
}

func (f *flows) keepSending(on bool) {
	if on {
		f.streams.Send()
	} else {
		f.streams.Stop()
	}
}

// expect has the direction's classes be promised something else.
func (dir *direction) expect(p []promise) {
	dir.promised = p
	for i, f := range dir.flows {
		f.top = max(f.top, p[i].total())
	}
}

// sample adds to the picture what has arrived lately, if it is time.
func (dir *direction) sample(now time.Duration) {
	span := now - dir.sampled
	if span < kernelSample {
		return
	}
	dir.sampled = now
	for _, f := range dir.flows {
		f.mu.Lock()
		bytes := f.bytes
		f.mu.Unlock()
		f.samples = append(f.samples, sample{now, float64(bytes-f.counted) * 8 / span.Seconds()})
		f.counted = bytes
	}
}

// measure returns what each class got in the span since from.
func (dir *direction) measure(from time.Time, span time.Duration) directionResult {
	r := directionResult{Direction: dir.name}
	since := time.Duration(from.UnixNano())
	for i, f := range dir.flows {
		f.mu.Lock()
		list := f.got
		f.mu.Unlock()
		for len(list) > 0 && list[0].At < since {
			list = list[1:]
		}
		rate, _ := measure.Rate(list, span, 1)
		p := &dir.promised[i]
		c := kernelClassResult{Class: f.class.Name, Promised: p.total(), Measured: rate * 8, Reason: p.reason()}
		if !p.quiet {
			c.Off = percentOff(c.Measured, c.Promised)
		}
		r.Classes = append(r.Classes, c)
	}
	return r
}

func (dir *direction) close() {
	if dir.capture != nil {
		dir.capture.Close()
	}
	for _, f := range dir.flows {
		f.streams.Close()
	}
}
