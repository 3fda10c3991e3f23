package daemon

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"shaperd/internal/lease"
)

// A division is what part of a share each loop has, where that is not an equal one:
// loops divide a share while a relay drains beside its successor.
type division map[source]float64

// A need is what a loop did with its part lately, in bits per second.
type need struct {
	has, used float64
	waiting   bool // it could use more
}

// divide adds the parts of one share by need, max-min fair. Who does not wait has a
// little more than it used, and what nobody needs is divided evenly. It adds nothing
// if the parts are nearly so.
func (d division) divide(needs map[source]need) {
	const slack, least, still = 1.05, 0.02, 0.05
	var share float64
	for _, n := range needs {
		share += n.has
	}
	if len(needs) < 2 || share == 0 {
		return
	}
	want := func(s source) float64 {
		if needs[s].waiting {
			return 1
		}
		return min(needs[s].used/share*slack+least, 1)
	}
	order := slices.SortedFunc(maps.Keys(needs), func(a, b source) int { return cmp.Compare(want(a), want(b)) })
	parts, left, moved := division{}, 1., false
	for i, s := range order {
		parts[s] = min(want(s), left/float64(len(order)-i))
		left -= parts[s]
	}
	for s := range parts {
		parts[s] += left / float64(len(order))
		moved = moved || math.Abs(parts[s]-needs[s].has/share) > still
	}
	if moved {
		maps.Copy(d, parts)
	}
}

// redivide puts a division into force, for the goroutine that observed it, unless the
// loops are others meanwhile.
func (d *daemon) redivide(next division, seen *view) error {
	if len(next) == 0 {
		return nil
	}
	return d.own(d.tasks.ctx, func() error {
		if d.view.Load() != seen {
			return nil
		}
		d.divided = next
		return d.reshape(d.shares)
	})
}

// part returns what part of a share a relay has: an equal one, until something else is seen.
// r is nil for one that is to be made.
func (d *daemon) part(r *relay) func(lease.Holder) float64 {
	return func(h lease.Holder) float64 {
		if r != nil {
			if p, ok := d.divided[source{h, r.Relay}]; ok {
				return p
			}
		}
		return 1 / float64(max(d.loops(h), 1))
	}
}

// loops is how many relays divide a share: one, and those of its name that drain.
func (d *daemon) loops(h lease.Holder) (n int) {
	for _, r := range slices.Concat(d.relays, d.retired()) {
		if link := linkOf(h); r.config.Upload.Name == link || r.config.Download.Name == link {
			n++
		}
	}
	return n
}
