package netlink

import (
	"fmt"
	"hash/fnv"
	"slices"

	"shaperd/shaper"
)

// A Handle names a qdisc (its minor is 0) or a class: the major number in the
// upper half, the minor in the lower. Handles are ours to give: no policy has any.
type Handle uint32

// Majors from rootMajor to the end of the third range are ours; whatever has
// another is not touched. A leaf class's queue has the major of its class's
// minor in one of two ranges, so that a queue that cannot be changed in place
// has where to go; the third range is for what is inside such a queue.
const (
	rootMajor  = 0x5a00
	otherMajor = 0x6600
	innerMajor = 0x7200
	maxMinor   = 0x0bff

	root     Handle = 0xffffffff // TC_H_ROOT: the parent of a device's root qdisc
	htbRoot  Handle = rootMajor << 16
	noHandle Handle = 0
)

// Minors with a fixed meaning; the others are from the name of their class.
const (
	minorLink    = 1
	minorControl = 2
	minorDefault = 3 // HTB's default is fixed for the qdisc's life, so the number stays and the class may change
	minorFirst   = 0x10
)

func classHandle(minor uint16) Handle { return htbRoot | Handle(minor) }

// leafHandle is the handle of the queue of the class with that minor, in one of the ranges.
func leafHandle(major, minor uint16) Handle { return Handle(major+minor) << 16 }

func (h Handle) major() uint16 { return uint16(h >> 16) }
func (h Handle) minor() uint16 { return uint16(h) }

// ours reports whether the major is in our range.
func (h Handle) ours() bool {
	return h != root && h.major() >= rootMajor && h.major() <= innerMajor+maxMinor
}

// sibling returns a leaf's handle in the other of its two ranges.
func (h Handle) sibling() Handle {
	if m := h.major(); m < otherMajor {
		return Handle(m-rootMajor+otherMajor) << 16
	}
	return Handle(h.major()-otherMajor+rootMajor) << 16
}

// String returns the handle as tc writes it, in hexadecimal.
func (h Handle) String() string {
	switch {
	case h == root:
		return "root"
	case h.minor() == 0:
		return fmt.Sprintf("%x:", h.major())
	}
	return fmt.Sprintf("%x:%x", h.major(), h.minor())
}

// newMinors gives every class of the links its number, the same on each link:
// from its name, so that a class keeps its number, its queue and its counters
// whatever is added before it, and a crashed daemon's classes are known again.
func newMinors(links []*shaper.Link) (out map[string]uint16, err error) {
	var names []string
	out = map[string]uint16{}
	for _, l := range links {
		walk(l.Classes, func(c *shaper.Class, _ *shaper.Class) {
			if n, known := out[c.Name]; known {
				if c.Default != (n == minorDefault) {
					err = fmt.Errorf("%s: class %q is the default on one link and not on another", l.Name, c.Name)
				}
				return
			}
			out[c.Name] = 0
			if c.Default {
				out[c.Name] = minorDefault
				return
			}
			names = append(names, c.Name)
		})
	}
	if err != nil {
		return nil, err
	}
	const room = maxMinor - minorFirst + 1
	if len(names) > room {
		return nil, fmt.Errorf("the policy has %d classes: the kernel datapath has room for %d on a link", len(names), room)
	}
	slices.Sort(names) // who yields to whom does not depend on the file's order
	taken := map[uint16]bool{}
	for _, name := range names {
		h := fnv.New32a()
		_, _ = h.Write([]byte(name))
		n := h.Sum32() % room
		for taken[uint16(n)] {
			n = (n + 1) % room
		}
		taken[uint16(n)] = true
		out[name] = uint16(minorFirst + n)
	}
	return out, nil
}

// walk visits every class, parents before their children.
func walk(classes []shaper.Class, visit func(c, parent *shaper.Class)) { walkIn(nil, classes, visit) }

func walkIn(parent *shaper.Class, classes []shaper.Class, visit func(c, parent *shaper.Class)) {
	for i := range classes {
		visit(&classes[i], parent)
		walkIn(&classes[i], classes[i].Children, visit)
	}
}
