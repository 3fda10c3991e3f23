package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"shaperd/conn"
	"shaperd/internal/admin"
	"shaperd/internal/httpd"
	"shaperd/shaper"
)

// A relay is the task of one relay. Its listeners are bound already, so it is
// ready as soon as it runs: the kernel queues what comes in.
type relay struct {
	*conn.Relay
	readiness
	config  conn.Config    // of the policy in force; of shared classes it has the budgets
	links   [2]shaper.Link // upload and download in force, with the shares
	running *running       // nil until started
}

// gone reports whether the relay has ended.
func (r *relay) gone() bool {
	select {
	case <-r.running.ended:
		return true
	default:
		return false
	}
}

func (r *relay) Run(ctx context.Context) error {
	close(r.readiness)
	return r.Relay.Run(ctx)
}

func (r *relay) String() string { return fmt.Sprintf("relay %q", r.config.Name) }

// An endpoint is the task that serves HTTP at an address.
type endpoint struct {
	*httpd.Server
	readiness
	what    string
	running *running // nil until started
}

func (e *endpoint) Run(ctx context.Context) error {
	close(e.readiness)
	return e.Server.Run(ctx)
}

func (e *endpoint) String() string { return fmt.Sprintf("%s on %s", e.what, e.Addr()) }

// A controlSocket is the task that answers on the control socket.
type controlSocket struct {
	*httpd.Server
	*admin.Listener
	readiness
	path    string
	running *running // nil until started
}

func (s *controlSocket) Run(ctx context.Context) error {
	close(s.readiness)
	return s.Server.Run(ctx)
}

func (s *controlSocket) String() string { return "control socket " + s.path }

// SocketPath is where the control socket is when nobody says where; "" for a
// user who has no place for it.
func SocketPath() string {
	const name = "shaperd.sock"
	runtime, _, _ := strings.Cut(os.Getenv("RUNTIME_DIRECTORY"), ":") // systemd's
	switch path, users := os.Getenv("SHAPERD_SOCKET"), os.Getenv("XDG_RUNTIME_DIR"); {
	case path != "":
		return path
	case runtime != "":
		return filepath.Join(runtime, name)
	case os.Geteuid() == 0:
		return filepath.Join(lockFolder, name)
	case users != "":
		return filepath.Join(users, name)
	}
	return ""
}

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
