package netlink

import "shaperd/shaper"

// Bursts returns how many bytes of each class may leave at once after a quiet
// time, as a plan has it for an interface with this MTU. A class with others
// inside has none of its own. It returns an error for a link that the kernel
// cannot hold.
func Bursts(l *shaper.Link, mtu int) (map[string]shaper.Size, error) {
	minors, err := newMinors([]*shaper.Link{l})
	if err != nil {
		return nil, err
	}
	t, err := newTree(l, &Device{Name: l.Name, MTU: mtu}, Kernel{}, 0, minors)
	if err != nil {
		return nil, err
	}
	if c := soleClass(l); c != nil {
		return map[string]shaper.Size{c.Name: t.qdiscs[0].options.(tbf).burst}, nil
	}
	out, bursts := map[string]shaper.Size{}, t.bursts()
	for i := range t.classes {
		if c := &t.classes[i]; !c.inner {
			out[c.name] = bursts[c.handle]
		}
	}
	return out, nil
}

// bursts are what may leave at once after a quiet time, by class: what HTB has
// for the ceil, or less where a bucket inside the class holds less. A bucket
// that is faster than the class only cuts.
func (t *tree) bursts() map[Handle]shaper.Size {
	out, ceils := map[Handle]shaper.Size{}, map[Handle]shaper.Rate{}
	for i := range t.classes {
		c := &t.classes[i]
		out[c.handle], ceils[c.handle] = c.htb.cburst, c.htb.ceil
	}
	for i := range t.qdiscs {
		q := &t.qdiscs[i]
		if b, ok := q.options.(tbf); ok && q.parent != root && b.rate <= ceils[q.parent] {
			out[q.parent] = min(out[q.parent], b.burst)
		}
	}
	return out
}
