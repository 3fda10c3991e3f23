package admission

import (
	"sync"
	"sync/atomic"
	"time"
)

// alone is the buckets by which a host decides for a shared class while the
// store is away. They earn a part of the rate at all times. While the store is
// there they hold that part of the burst too, so that an outage, however often
// there is one, starts with no more; during an outage they hold the whole burst,
// so that nothing is too large.
type alone struct {
	*local
	away atomic.Bool // the buckets are those of an outage

	mu   sync.Mutex
	back time.Time     // since when the store has answered all, while away; zero when it does not
	ends chan struct{} // closed when the store answers; nil while it does
	full limits
	most int // keys
	part float64
}

// settled is how long the store has to answer until an outage has ended: each
// end and each beginning goes through all keys.
const settled = time.Second

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

// answered says that the store has answered.
func (o *alone) answered() {
	if !o.away.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.back.IsZero() {
		o.back = time.Now()
		close(o.ends)
		o.ends = nil
	}
	o.end()
}

// failed says that the store is away. What it returns is closed once it has answered.
func (o *alone) failed() (back <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end() // if it was long ago that it came back, and nobody has asked since
	o.back = time.Time{}
	if !o.away.Load() {
		o.away.Store(true)
		o.apply()
	}
	if o.ends == nil {
		o.ends = make(chan struct{})
	}
	return o.ends
}

// end ends an outage once the store has settled. Called with mu held.
func (o *alone) end() {
	if o.away.Load() && !o.back.IsZero() && time.Since(o.back) >= settled {
		o.away.Store(false)
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
