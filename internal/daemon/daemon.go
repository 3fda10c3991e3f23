package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"shaperd/configs"
	"shaperd/conn"
	"shaperd/internal/metrics"
	"shaperd/systemd"
)

// Options say what a daemon runs with.
type Options struct {
	// Load reads the policy: at the start, and again for each reload.
	Load func() (*configs.Policy, error)
	// Log takes what happens; nil discards it.
	Log *slog.Logger
	// OnReady, if not nil, is called once, when everything serves.
	OnReady func(Serving)
	// Version and Revision say what program this is.
	Version, Revision string
}

// Serving is what a daemon serves, and where.
type Serving struct {
	Policy  *configs.Policy
	Relays  [][]netip.AddrPort // what each of the policy's relays listens on, ports as the kernel chose them
	Metrics netip.AddrPort     // zero for none
}

// daemon is owned by the goroutine that called Run, except where it says so.
type daemon struct {
	Options
	tasks   tasks
	metrics *metrics.Metrics
	sockets *conn.Inherited // for the first policy's relays

	policy   *configs.Policy // in force; nil before the first
	relays   []*relay
	endpoint *endpoint // nil for none
	kernel   *kernel   // nil for none

	serving atomic.Pointer[[]*relay] // relays, for any goroutine
	shaping atomic.Pointer[kernel]   // kernel, for any goroutine
	ready   atomic.Bool              // for any goroutine
}

// Run runs the daemon until ctx is done or a signal ends it, then drains and
// returns nil. It returns an error, and has served nothing, when the policy
// cannot be loaded or an address cannot be bound; and later when a part of the
// daemon cannot go on, or a second signal ended the drain.
func Run(ctx context.Context, o Options) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	hangups, ends := make(chan os.Signal, 1), make(chan os.Signal, 2)
	signal.Notify(hangups, syscall.SIGHUP)
	signal.Notify(ends, syscall.SIGTERM, syscall.SIGINT)
	signal.Ignore(syscall.SIGPIPE) // who reads the log may end before the daemon does
	defer signal.Stop(hangups)
	defer signal.Stop(ends)

	d := &daemon{Options: o}
	d.metrics = metrics.New(metrics.Build{Version: o.Version, Revision: o.Revision}, d.snapshot, d.kernelSnapshot)
	d.raiseFileLimit()
	d.sockets = conn.Inherit(systemd.Listeners())
	defer d.sockets.Close()
	p, err := o.Load()
	if err != nil {
		return err
	}
	rest, endRest := context.WithCancel(context.WithoutCancel(ctx)) // ctx ends the relays first
	defer endRest()
	d.tasks = newTasks(rest)
	c, err := d.prepare(p)
	if err != nil {
		return err
	}
	for _, err := range d.sockets.Close() {
		d.Log.Warn("socket closed", "error", err)
	}
	if err := d.start(c); err != nil {
		return err
	}

	for {
		select {
		case <-hangups:
			d.reload()
			continue
		case sig := <-ends:
			d.Log.Info("draining: once more ends at once", "signal", sig)
		case <-ctx.Done():
			d.Log.Info("draining")
		case <-d.tasks.ctx.Done():
			d.Log.Error("draining", "error", context.Cause(d.tasks.ctx)) // now: Run returns it after the drain
		}
		return d.end(ends, endRest)
	}
}

// start puts the first policy into force and says so.
func (d *daemon) start(c *change) error {
	interval, err := systemd.WatchdogInterval()
	if err != nil {
		c.abort()
		return err
	}
	d.commit(c)
	if interval > 0 {
		d.tasks.awaitReady(d.tasks.start(&watchdog{make(readiness), interval, d.alive}))
	}
	d.metrics.Started(time.Now())
	d.ready.Store(true)

	s := Serving{Policy: d.policy}
	for _, r := range d.relays {
		s.Relays = append(s.Relays, r.Addrs())
	}
	if d.endpoint != nil {
		s.Metrics = d.endpoint.Addr()
	}
	d.Log.Info("ready", "policy", d.policy.Name)
	d.notify(systemd.Ready(d.status()))
	if d.OnReady != nil {
		d.OnReady(s)
	}
	return nil
}

// reload puts the policy file as it is now into force, or leaves all as it was.
func (d *daemon) reload() {
	d.notify(systemd.Reloading())
	err := d.apply()
	status := d.status()
	if err != nil {
		d.metrics.ReloadFailed()
		for _, e := range Reasons(err) {
			d.Log.Error("reload", "error", e)
		}
		d.Log.Warn("reload refused: the policy stays as it was", "policy", d.policy.Name)
		status += "; the last reload was refused, see the log"
	} else {
		d.metrics.Reloaded(time.Now())
		d.Log.Info("reloaded", "policy", d.policy.Name)
	}
	d.notify(systemd.Ready(status))
}

func (d *daemon) apply() error {
	p, err := d.Load()
	if err != nil {
		return err
	}
	c, err := d.prepare(p)
	if err != nil {
		return err
	}
	d.commit(c)
	return nil
}

// end drains the relays, then ends the rest, so that a drain can be watched.
func (d *daemon) end(ends <-chan os.Signal, endRest context.CancelFunc) error {
	d.ready.Store(false)
	var longest time.Duration
	for _, r := range d.relays {
		longest = max(longest, r.config.Timeouts.Drain)
		r.running.stop()
	}
	d.notify(systemd.Stopping("draining", longest+5*time.Second))
	ended := make(chan error, 1)
	go func() {
		for _, r := range d.relays {
			<-r.running.ended
		}
		endRest()
		ended <- d.tasks.group.Wait()
	}()
	select {
	case err := <-ended:
		d.Log.Info("ended")
		return err
	case sig := <-ends:
		return fmt.Errorf("%v while draining: ended at once", sig)
	}
}

// snapshot returns the statistics of the relays in force. Any goroutine may
// call it; it blocks while a relay does not respond.
func (d *daemon) snapshot() []metrics.Relay {
	var all []metrics.Relay
	if relays := d.serving.Load(); relays != nil {
		for _, r := range *relays {
			all = append(all, relayMetrics(r.Stats()))
		}
	}
	return all
}

// alive tells systemd that the relays and the kernel's datapath respond.
func (d *daemon) alive() {
	d.snapshot()
	d.kernelSnapshot()
	d.notify(systemd.Alive())
}

// status is what systemctl status shows.
func (d *daemon) status() string {
	parts := []string{"policy " + d.policy.Name}
	var relays []string
	for _, r := range d.relays {
		relays = append(relays, r.config.Name)
	}
	if len(relays) > 0 {
		parts = append(parts, "relays: "+strings.Join(relays, ", "))
	}
	var interfaces []string
	for _, i := range d.kernelSnapshot().Interfaces {
		switch {
		case !i.Present:
			interfaces = append(interfaces, i.Name+" (awaited)")
		case i.Drift:
			interfaces = append(interfaces, i.Name+" (being repaired)")
		default:
			interfaces = append(interfaces, i.Name)
		}
	}
	if len(interfaces) > 0 {
		parts = append(parts, "interfaces: "+strings.Join(interfaces, ", "))
	}
	return strings.Join(parts, "; ")
}

// notify logs that systemd could not be told something.
func (d *daemon) notify(err error) {
	if err != nil {
		d.Log.Warn("service manager", "error", err)
	}
}

func (d *daemon) raiseFileLimit() {
	limit, err := conn.RaiseFileLimit()
	if err != nil {
		d.Log.Warn("raise limit of open files", "error", err)
		return
	}
	d.Log.Info("limit of open files", "files", limit, "sessions", limit/2)
}
