package admission

import (
	"sync"
	"sync/atomic"
)

// alone is the buckets by which a host decides for a shared class while the
// store is away. They earn a part of the rate at all times. While the store is
// there they hold that part of the burst too, so that an outage, however often
// there is one, starts with no more; during an outage they hold the whole burst,
// so that nothing is too large.
type alone struct {
	*local
	away atomic.Bool

	mu   sync.Mutex
	full limits
	most int // keys
	part float64
}

func newAlone(l limits, most int, part float64) *alone {
	of := l.part(part)
	return &alone{local: newLocal(of, of.burst, most), full: l, most: most, part: part}
}

// set changes the limits and keeps the levels.
func (o *alone) set(l limits, most int, part float64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.full, o.most, o.part = l, most, part
	o.apply()
}

// setPart changes the part.
func (o *alone) setPart(part float64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.part != part {
		o.part = part
		o.apply()
	}
}

// put says whether the store is away.
func (o *alone) put(away bool) {
	if o.away.Load() == away {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.away.Load() != away {
		o.away.Store(away)
		o.apply()
	}
}

func (o *alone) apply() {
	of := o.full.part(o.part)
	start := of.burst
	if o.away.Load() {
		of.burst = o.full.burst
	}
	o.local.set(of, start, o.most)
}
