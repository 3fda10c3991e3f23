package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"shaperd/internal/metrics"
)

// responseTime is how long a part of the daemon may take to respond. Relays
// respond within a turn, the kernel within milliseconds.
const responseTime = 5 * time.Second

// A phase is how far the daemon's life has come.
type phase int32

const (
	starting phase = iota
	serving
	draining
)

// ready returns nil while the daemon serves, else why it does not.
func (p phase) ready(context.Context) error {
	switch p {
	case starting:
		return errors.New("starting")
	case draining:
		return errors.New("draining")
	}
	return nil
}

// A pulse finds out whether parts of the daemon respond. Any goroutine may ask;
// all who ask while a round is under way share it, so that a part that hangs
// holds one goroutine, however often somebody asks.
type pulse struct {
	mu    sync.Mutex
	round *round // under way, nil for none
}

// A round asks one part after another.
type round struct {
	asking atomic.Pointer[string] // who has been asked last
	ended  chan struct{}          // all have responded
}

// A part can be asked to respond, which blocks until it does.
type part struct {
	name string
	ask  func()
}

// check returns nil once all parts have responded, or names the one that does
// not within the time.
func (p *pulse) check(ctx context.Context, within time.Duration, parts func() []part) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	r := p.join(parts)
	select {
	case <-r.ended:
		return nil
	case <-ctx.Done():
		who := "the daemon"
		if name := r.asking.Load(); name != nil {
			who = *name
		}
		return fmt.Errorf("%s does not respond", who)
	}
}

// join returns the round under way, or a new one.
func (p *pulse) join(parts func() []part) *round {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.round != nil {
		return p.round
	}
	r := &round{ended: make(chan struct{})}
	p.round = r
	go func() {
		for _, one := range parts() {
			r.asking.Store(&one.name)
			one.ask()
		}
		p.mu.Lock()
		p.round = nil
		p.mu.Unlock()
		close(r.ended)
	}()
	return r
}

// health is what the metrics' listener says of the daemon.
func (d *daemon) health() metrics.Health {
	return metrics.Health{
		Alive: func(ctx context.Context) error { return d.pulse.check(ctx, responseTime, d.parts) },
		Ready: func(ctx context.Context) error { return phase(d.phase.Load()).ready(ctx) },
	}
}

// parts are those that have to respond. Any goroutine may call it.
func (d *daemon) parts() (all []part) {
	for _, r := range d.view.Load().all() {
		all = append(all, part{r.String(), func() { r.Stats() }})
	}
	return append(all, part{"the kernel datapath", func() { d.kernelSnapshot() }})
}
