package netlink

import (
	"path"
	"time"

	"shaperd/classify"
	"shaperd/shaper"
)

// Config is what the policy says of the kernel datapath.
type Config struct {
	Interfaces []Interface
	Rules      classify.Rules
}

// An Interface is a kernel link, or all whose names match a pattern. A
// direction without a rate is left alone.
type Interface struct {
	Name     string // or a pattern, such as "ppp*"
	Egress   shaper.Link
	Ingress  shaper.Link
	Overhead int           // bytes that the link adds to each IP packet; 0 leaves it to what the kernel counts
	Queue    time.Duration // how long a packet may wait at its class's ceil; 0 is 50 ms
	Takeover bool          // replace what another has put there
}

// find returns the interface's entry, nil for none. Names come before patterns, and patterns in the file's order.
func (c *Config) find(device string) *Interface {
	for i := range c.Interfaces {
		if c.Interfaces[i].Name == device {
			return &c.Interfaces[i]
		}
	}
	for i := range c.Interfaces {
		if ok, err := path.Match(c.Interfaces[i].Name, device); ok && err == nil {
			return &c.Interfaces[i]
		}
	}
	return nil
}

// links returns all links that are shaped.
func (c *Config) links() (list []*shaper.Link) {
	for i := range c.Interfaces {
		for _, l := range []*shaper.Link{&c.Interfaces[i].Egress, &c.Interfaces[i].Ingress} {
			if l.Rate > 0 {
				list = append(list, l)
			}
		}
	}
	return list
}
