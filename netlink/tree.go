package netlink

import (
	"errors"
	"fmt"

	"shaperd/shaper"
)

// A tree is what shapes one device: qdiscs, classes and filters, parents before
// their children.
type tree struct {
	qdiscs  []qdisc
	classes []class
	filters [2][]filter // one set or the other
}

// maxDepth is how many levels of classes HTB has below the link's own.
const maxDepth = 7

// A planner makes the tree of one link on one device.
type planner struct {
	device   *Device
	kernel   Kernel
	overhead int32
	minors   map[string]uint16
	cuts     bool // offloaded packets of borrowers are cut
	tree
}

// newTree plans the link on the device. Overhead is what the link adds to each
// IP packet, 0 to leave it at what the kernel counts. The filters are left to
// the classifier.
func newTree(l *shaper.Link, d *Device, k Kernel, overhead int, minors map[string]uint16) (tree, error) {
	p := planner{device: d, kernel: k, minors: minors}
	if overhead > 0 {
		p.overhead = int32(overhead)
		if d.Ethernet {
			p.overhead -= ethernetHeader // which the kernel has counted
		}
	}
	if err := p.check(l); err != nil {
		return tree{}, err
	}
	if c := soleClass(l); c != nil {
		p.leaf(root, htbRoot, minorLink, "", l.Rate, l.Burst, c.Mode, true)
		p.qdiscs[0].overhead = p.overhead
		return p.tree, nil
	}
	p.link(l)
	return p.tree, nil
}

// soleClass returns the class that has all of the link, if there is one: then a
// bucket at the root will do.
func soleClass(l *shaper.Link) *shaper.Class {
	switch {
	case len(l.Classes) == 0:
		return &shaper.Class{Rate: l.Rate, Ceil: l.Rate}
	case len(l.Classes) == 1 && l.Classes[0].Leaf() && l.Classes[0].Budget == 0 && (l.Classes[0].Ceil == 0 || l.Classes[0].Ceil == l.Rate):
		return &l.Classes[0]
	}
	return nil
}

// check refuses what the kernel cannot hold, before anything is written.
func (p *planner) check(l *shaper.Link) error {
	var errs []error
	wrong := func(name string, r shaper.Rate, burst shaper.Size) {
		switch n, _ := p.device.burst(burst, max(r, minRate), shaper.Token); {
		case r > 0 && r < minRate:
			errs = append(errs, fmt.Errorf("%s: %s is less than the kernel can pace: write at least %s", name, r, minRate))
		case burst > 0 && burst < p.device.packet():
			errs = append(errs, fmt.Errorf("%s: a burst of %d bytes cannot hold a packet of %s, which has an MTU of %d: write at least %db",
				name, burst, p.device.Name, p.device.MTU, p.device.packet()))
		case r > 0:
			if _, fits := ticks(n, whole(r)); !fits {
				errs = append(errs, fmt.Errorf("%s: a burst of %d bytes lasts more than 275 s at %s, the most that the kernel counts: lower it", name, n, r))
			}
		}
	}
	wrong(l.Name, l.Rate, l.Burst)
	depths := map[string]int{}
	walk(l.Classes, func(c, parent *shaper.Class) {
		depth := 1
		if parent != nil {
			depth += depths[parent.Name]
		}
		depths[c.Name] = depth
		if depth > maxDepth {
			errs = append(errs, fmt.Errorf("%s: class %q is nested %d deep: HTB has room for %d", l.Name, c.Name, depth, maxDepth))
		}
		name := fmt.Sprintf("%s: class %q", l.Name, c.Name)
		if c.Budget > 0 { // what it has of it now is never too little
			wrong(name, max(c.Rate, minRate), c.Burst)
			return
		}
		wrong(name, c.Rate, c.Burst)
		if c.Ceil != c.Rate {
			wrong(name, c.Ceil, c.Burst)
		}
	})
	return errors.Join(errs...)
}

// link plans HTB: its root, the link's class, the control class and all others.
func (p *planner) link(l *shaper.Link) {
	p.cuts = l.Rate < cutBelow
	p.qdiscs = append(p.qdiscs, qdisc{
		handle: htbRoot, parent: root, name: "root", overhead: p.overhead,
		options: htb{defaultMinor: minorDefault, directQlen: directQlen},
		why:     map[string]string{"default": "the default class", "direct_qlen": "explicit: what no class takes leaves unshaped, and is counted"},
	})
	rate, packet := whole(l.Rate), uint32(p.device.packet())
	p.add(class{
		handle: classHandle(minorLink), parent: htbRoot, name: "(link)", inner: true,
		htb: htbClass{rate: rate, ceil: rate, quantum: packet}, why: map[string]string{"rate": "the link's rate"},
	}, l.Burst, shaper.Token)
	p.control(rate)
	walk(l.Classes, func(c, parent *shaper.Class) {
		minor, most := p.minors[c.Name], rate
		out := class{handle: classHandle(minor), parent: classHandle(minorLink), name: c.Name, inner: !c.Leaf(), why: map[string]string{}}
		if parent != nil {
			out.parent, most = classHandle(p.minors[parent.Name]), ceilOf(parent, rate)
		}
		out.htb = htbClass{rate: whole(c.Rate), quantum: packet}
		if out.htb.rate < minRate {
			out.htb.rate = minRate
			out.why["rate"] = "guarantees nothing: the least that HTB takes"
			if c.Budget > 0 {
				out.why["rate"] = "no share of the budget now: the least that HTB takes"
			}
		}
		out.htb.ceil = max(whole(min(ceilOf(c, rate), most)), out.htb.rate)
		if c.Leaf() {
			out.htb.priority = c.Priority
			out.htb.quantum, out.why["quantum"] = p.device.quantum(c.Rate, rate)
		}
		mode := shaper.Token // else its leaf is steady
		if c.Budget > 0 {
			mode = c.Mode
		}
		p.add(out, c.Burst, mode)
		switch {
		case c.Budget > 0: // HTB keeps its tokens when a rate changes, a bucket is refilled
			p.leaf(out.handle, leafHandle(rootMajor, minor), minor, c.Name, min(c.Budget, most), c.Burst, shaper.Token, false)
		case c.Leaf():
			p.leaf(out.handle, leafHandle(rootMajor, minor), minor, c.Name, out.htb.ceil, c.Burst, c.Mode, c.Ceil == c.Rate)
		}
	})
}

// control plans the class of what keeps a network alive: it is served first.
func (p *planner) control(link shaper.Rate) {
	rate := max(min(whole(link/100), controlMost), minRate)
	p.add(class{
		handle: classHandle(minorControl), parent: classHandle(minorLink), name: "(control)",
		htb: htbClass{rate: rate, ceil: link, quantum: uint32(p.device.packet())},
		why: map[string]string{"rate": "1 % of the link for ARP, neighbour discovery, DHCP and the like", "ceil": "the link: control traffic comes first"},
	}, 0, shaper.Token)
	size, why := p.device.queue(rate)
	p.qdiscs = append(p.qdiscs, qdisc{
		handle: leafHandle(rootMajor, minorControl), parent: classHandle(minorControl), name: "of (control)",
		options: fifo{size}, why: map[string]string{"limit": why},
	})
}

const controlMost = 10 * shaper.Mbit

// ceilOf is the class's ceil; one without is the link's, and a shared one has its share.
func ceilOf(c *shaper.Class, link shaper.Rate) shaper.Rate {
	switch {
	case c.Budget > 0:
		return c.Rate
	case c.Ceil == 0:
		return link
	}
	return c.Ceil
}

// add adds a class whose bursts follow from its rates and the policy's burst, 0 for none.
func (p *planner) add(c class, burst shaper.Size, mode shaper.Mode) {
	c.htb.burst, c.why["burst"] = p.device.burst(burst, c.htb.rate, mode)
	c.htb.cburst, c.why["cburst"] = p.device.burst(burst, c.htb.ceil, mode)
	p.classes = append(p.classes, c)
}

// leaf plans what queues the packets of a class: a token bucket where the class
// has a hard cap or is steady, and one that does nothing but cut offloaded
// packets where it borrows; inside it a fair queue, where the kernel has one.
func (p *planner) leaf(parent, handle Handle, minor uint16, name string, rate shaper.Rate, burst shaper.Size, mode shaper.Mode, capped bool) {
	rate = whole(rate)
	size, sizeWhy := p.device.queue(rate)
	title := "of " + name
	if name == "" {
		title = "root"
	}
	bucket, why := tbf{rate: rate}, map[string]string{"rate": "the class's ceil"}
	bucket.burst, why["burst"] = p.device.burst(burst, rate, mode)
	bucket.limit, why["limit"] = bucket.burst+size, "the burst and "+sizeWhy
	switch {
	case parent == root:
		why["rate"] = "the link's rate"
	case capped || mode == shaper.Leaky:
	case p.cuts:
		bucket = tbf{rate: cutRate, burst: minPackets * p.device.packet(), limit: size}
		why = map[string]string{
			"rate":  "does not hold anything up: the class's own ceil does",
			"burst": fmt.Sprintf("%d packets of %d bytes: cuts offloaded packets, of which each would have a turn whatever its size", minPackets, p.device.packet()),
			"limit": sizeWhy,
		}
	default:
		bucket.rate = 0
	}
	if bucket.rate > 0 {
		p.qdiscs = append(p.qdiscs, qdisc{handle: handle, parent: parent, name: title, why: why, options: bucket})
		if mode == shaper.Leaky || !p.kernel.FqCodel {
			return // the bucket's own queue will do
		}
		parent, handle, title = handle|1, leafHandle(innerMajor, minor), "inside the tbf "+title
	}
	q := qdisc{handle: handle, parent: parent, name: title, options: fifo{size}, why: map[string]string{"limit": sizeWhy}}
	if p.kernel.FqCodel {
		q.options, q.why = p.device.fqCodel(rate)
	}
	p.qdiscs = append(p.qdiscs, q)
}
