package daemon

import (
	"context"
	"fmt"
	"time"

	"shaperd/conn"
	"shaperd/internal/metrics"
)

// A relay is the task of one relay. Its listeners are bound already, so it is
// ready as soon as it runs: the kernel queues what comes in.
type relay struct {
	*conn.Relay
	readiness
	config  conn.Config // in force
	running *running    // nil until started
}

func (r *relay) Run(ctx context.Context) error {
	close(r.readiness)
	return r.Relay.Run(ctx)
}

func (r *relay) String() string { return fmt.Sprintf("relay %q", r.config.Name) }

// A served relay is what other goroutines see of a relay.
type served struct {
	*conn.Relay
	name string // for people
}

// An endpoint is the task that serves metrics.
type endpoint struct {
	*metrics.Server
	readiness
	running *running // nil until started
}

func (e *endpoint) Run(ctx context.Context) error {
	close(e.readiness)
	return e.Server.Run(ctx)
}

func (e *endpoint) String() string { return fmt.Sprintf("metrics on %s", e.Addr()) }

// A watchdog is the task that tells systemd that the relays respond. A relay
// that hangs leaves it waiting, and systemd restarts the daemon.
type watchdog struct {
	readiness
	interval time.Duration // systemd's
	alive    func()        // tells it, once all relays have responded
}

func (w *watchdog) Run(ctx context.Context) error {
	close(w.readiness)
	tick := time.NewTicker(w.interval / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.alive()
		case <-ctx.Done():
			return nil
		}
	}
}

func (w *watchdog) String() string { return "watchdog" }
