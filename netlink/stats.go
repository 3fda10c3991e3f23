package netlink

import (
	"os"
	"time"

	"github.com/vishvananda/netlink/nl"

	"shaperd/shaper"
)

// LinkStats is what the kernel has counted on one direction of one interface.
// What counts only grows, but for when the interface or its qdisc is made anew.
type LinkStats struct {
	Name       string      // "eth0 egress"
	Rate       shaper.Rate // of the policy
	Applied    shaper.Rate // what the kernel has; 0 when it does not shape
	Achieved   float64     // bits per second, between the last two looks that were a second or more apart
	Bytes      uint64
	Packets    uint64
	Drops      uint64 // packets
	Overlimits uint64 // times that something had to wait
	Unshaped   uint64 // packets that no class took
	Classes    []ClassStats
}

// ClassStats is what the kernel has counted of a class, with its queue.
type ClassStats struct {
	Name                      string
	Rate, Ceil                shaper.Rate // of the policy
	AppliedRate, AppliedCeil  shaper.Rate // what the kernel has; 0 when it has no such class
	Burst                     shaper.Size
	Achieved                  float64 // bits per second
	Bytes, Packets            uint64
	Drops, Overlimits         uint64
	BacklogBytes, Backlog     uint64 // waiting now: bytes, packets
	LentPackets               uint64 // sent within the class's own rate
	BorrowedPackets           uint64 // sent with what others left
	TokensBytes, CeilTokBytes int64  // what it could send at once now, at its rate and at its ceil
}

// InterfaceStats is how an interface of the policy is doing.
type InterfaceStats struct {
	Name    string // of the interface, or the policy's name or pattern when there is none
	Present bool
	Drift   bool   // it is not as the policy wants it
	Problem string // why, where that is known
	Repairs uint64 // times that what others changed was put right
}

// Stats are those of all interfaces of the policy in force.
type Stats struct {
	Links      []LinkStats
	Interfaces []InterfaceStats
}

// Stats reads the kernel's counters. Any goroutine may call it, also after
// Close: then the error is os.ErrClosed.
func (d *Datapath) Stats() (Stats, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return Stats{}, os.ErrClosed
	}
	sites, minors, missing, err := d.sites(&d.config)
	if err != nil {
		return Stats{}, err
	}
	if _, err := d.classify(&d.config, minors, sites, true); err != nil {
		return Stats{}, err
	}
	var out Stats
	now := time.Now()
	for _, s := range sites {
		if s.config == nil || s.device == nil {
			continue
		}
		c := d.condition(s.device.Name)
		out.Interfaces = append(out.Interfaces, InterfaceStats{
			Name: s.device.Name, Present: true, Drift: s.check() != nil || len(s.diff()) > 0, Problem: c.problem, Repairs: c.repairs,
		})
		if s.config.Egress.Rate > 0 {
			out.Links = append(out.Links, d.meters.link(s.device.Name+" egress", &s.config.Egress, &s.egress, s.egressHas, s.device.Index, now))
		}
		if s.config.Ingress.Rate > 0 {
			index := 0
			if s.servant != nil {
				index = s.servant.Index
			}
			out.Links = append(out.Links, d.meters.link(s.device.Name+" ingress", &s.config.Ingress, &s.ingress, s.ingressHas, index, now))
		}
	}
	for _, name := range missing {
		out.Interfaces = append(out.Interfaces, InterfaceStats{Name: name, Problem: (&MissingError{name}).Error()})
	}
	return out, nil
}

// counters are the kernel's of a qdisc or class.
type counters struct {
	bytes, packets     uint64
	drops, overlimits  uint32
	backlog, queued    uint32 // bytes, packets: waiting now
	lent, borrowed     uint32 // packets, of an HTB class
	tokens, ceilTokens int32  // in ticks, of an HTB class
}

func parseStats(b []byte) (c counters) {
	attributes(b, func(typ uint16, value []byte) {
		switch typ {
		case nl.TCA_STATS_BASIC:
			c.bytes, c.packets = u64At(value, 0), max(c.packets, uint64(u32At(value, 8)))
		case nl.TCA_STATS_PKT64:
			c.packets = u64At(value, 0)
		case nl.TCA_STATS_QUEUE:
			c.queued, c.backlog = u32At(value, 0), u32At(value, 4)
			c.drops, c.overlimits = u32At(value, 8), u32At(value, 16)
		case nl.TCA_STATS_APP:
			if len(value) == 20 { // struct tc_htb_xstats
				c.lent, c.borrowed = u32At(value, 0), u32At(value, 4)
				c.tokens, c.ceilTokens = int32(u32At(value, 12)), int32(u32At(value, 16))
			}
		}
	})
	return c
}
