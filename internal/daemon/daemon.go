package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"shaperd/configs"
	"shaperd/conn"
	"shaperd/internal/admin"
	"shaperd/internal/admission"
	"shaperd/internal/admission/api"
	"shaperd/internal/lease"
	"shaperd/internal/metrics"
	"shaperd/systemd"
)

// Options say what a daemon runs with.
type Options struct {
	// Load reads the policy: at the start, and again for each reload.
	Load func() (*configs.Policy, error)
	// Log takes what happens; nil discards it.
	Log *slog.Logger
	// Level is that of Log, for those who want to change it; nil if it cannot change.
	Level *slog.LevelVar
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
	Control string             // path of the control socket; "" for none
}

// daemon is owned by the goroutine that called Run, except where it says so.
type daemon struct {
	Options
	tasks     tasks
	admission *admission.Admission
	token     api.Token // of clients of admitter
	admitter  *endpoint // nil for none
	metrics   *metrics.Metrics
	sockets   *conn.Inherited // of the service manager

	file      file             // as it was read
	overrides []admin.Override // of what it says
	policy    *configs.Policy  // in force: the file's at this time, with the overrides; nil before the first
	state     string           // of the file's schedules, in force
	sharing   *sharing         // nil for none
	shares    shares           // in force
	divided   division         // of these, where loops divide them otherwise than evenly
	budgets   []lease.Budget   // that this host shares
	alarm     *time.Timer      // rings when the clock may change what is in force
	asked     chan func()      // what others have the owner do

	relays   []*relay
	drained  []*relay       // by hand, until the next reload
	ending   []*relay       // that accept nobody any more; some may have ended
	endpoint *endpoint      // nil for none
	socket   *controlSocket // nil for none
	kernel   *kernel        // nil for none

	started, loaded time.Time
	reloads         admin.Reloads

	// For any goroutine:
	view       atomic.Pointer[view]    // what is in force
	shaping    atomic.Pointer[kernel]  // kernel
	shared     atomic.Pointer[sharing] // sharing
	readErrors atomic.Uint64           // of the kernel's counters
	phase      atomic.Int32            // a phase
	pulse      pulse
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

	d := &daemon{Options: o, asked: make(chan func()), alarm: time.NewTimer(look), started: time.Now()}
	d.admission = admission.New()
	d.metrics = metrics.New(metrics.Build{Version: o.Version, Revision: o.Revision}, metrics.Sources{Relays: d.snapshot, Kernel: d.kernelSnapshot, Sharing: d.sharingSnapshot, Admission: d.admissionSnapshot})
	d.raiseFileLimit()
	d.sockets = conn.Inherit(systemd.Listeners())
	defer d.sockets.Close()
	f, now, err := d.load()
	if err != nil {
		return err
	}
	rest, endRest := context.WithCancel(context.WithoutCancel(ctx)) // ctx ends the relays first
	defer endRest()
	d.tasks = newTasks(rest)
	c, err := d.prepare(now, f.token)
	if err != nil {
		return err
	}
	d.file, d.loaded = f, time.Now()
	for _, err := range d.sockets.Unused() {
		d.Log.Warn("socket that is of no use", "error", err)
	}
	if err := d.start(c); err != nil {
		return err
	}

	for {
		select {
		case <-hangups:
			_, _ = d.reload(slog.StringValue("SIGHUP")) // it has logged what is wrong
			continue
		case f := <-d.asked:
			f()
			continue
		case <-d.alarm.C:
			d.tick()
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
	d.timed()
	if interval > 0 {
		d.tasks.awaitReady(d.tasks.start(&watchdog{make(readiness), interval, d.alive}))
	}
	d.metrics.Started(time.Now())
	d.phase.Store(int32(serving))

	s := Serving{Policy: d.policy}
	if d.socket != nil {
		s.Control = d.socket.path
	}
	for _, r := range d.relays {
		s.Relays = append(s.Relays, r.Addrs())
	}
	if d.endpoint != nil {
		s.Metrics = d.endpoint.AddrPort()
	}
	d.Log.Info("ready", "policy", d.policy.Name)
	d.notify(systemd.Ready(d.status()))
	if d.OnReady != nil {
		d.OnReady(s)
	}
	return nil
}

// reload puts the policy file as it is now into force, or leaves all as it was.
// It logs how it went, also the error that it returns: those who ask by a signal
// have nothing else. By says who asked.
func (d *daemon) reload(by slog.Value) (*admin.Reloaded, error) {
	d.notify(systemd.Reloading())
	ended, resumed, err := d.apply()
	if errors.Is(err, syscall.EADDRINUSE) { // by a relay, metrics or admission
		err = fmt.Errorf("%w; %s", err, portCure)
	}
	d.reloads.LastError = nil
	if err != nil {
		d.metrics.ReloadFailed()
		d.reloads.Failed++
		for _, e := range Reasons(err) {
			d.reloads.LastError = append(d.reloads.LastError, e.Error())
		}
		d.Log.Error("reload refused: the policy that was in force stays", "policy", d.policy.Name, "by", by, "error", oneLine(err))
	} else {
		d.metrics.Reloaded(time.Now())
		d.reloads.Succeeded++
		for _, o := range ended {
			d.Log.Info("set by hand: ended by the reload", "set", o)
		}
		for _, name := range resumed {
			d.Log.Info("relay was drained by hand: it serves again", "relay", name)
		}
		d.Log.Info("reloaded", "policy", d.policy.Name, "by", by)
	}
	d.publish()
	d.notify(systemd.Ready(d.status()))
	return &admin.Reloaded{Policy: d.policy.Name, Reloads: d.reloads, Ended: ended, Resumed: resumed}, err
}

// portCure is for a reload that may be in its own way: it opens what is new before
// it closes what is old.
const portCure = "if the daemon itself has that port at another address, as with 127.0.0.1 and 0.0.0.0: restart it, or go by way of another port"

// A file is what was read from files: the policy, and the token that it names.
type file struct {
	*configs.Policy
	token string // of clients of the admission's address; "" for none
}

// load reads the files; now is the policy with the rates of this time.
func (d *daemon) load() (f file, now *configs.Policy, err error) {
	if f.Policy, err = d.Load(); err != nil {
		return f, nil, err
	}
	if f.Admission.Listen.IsValid() {
		if f.token, err = api.ReadToken(f.Admission.TokenFile); err != nil {
			return f, nil, fmt.Errorf("%s: admission: %w", f.Name, err)
		}
	}
	now, err = f.At(time.Now(), nil)
	return f, now, err
}

// apply reads the policy and puts it into force: what was set by hand ends, and
// relays that were drained by hand serve again. It returns which those are.
func (d *daemon) apply() (ended []admin.Override, resumed []string, err error) {
	f, now, err := d.load()
	if err != nil {
		return nil, nil, err
	}
	drained := d.drained
	d.drained = nil
	if err := d.enforce(now, f.token); err != nil {
		d.drained = drained
		return nil, nil, err
	}
	for _, r := range drained {
		if slices.ContainsFunc(now.Relays, func(next configs.Relay) bool { return next.Name == r.config.Name }) {
			resumed = append(resumed, r.config.Name)
		}
	}
	ended = d.overrides
	d.file, d.loaded, d.overrides = f, time.Now(), nil
	d.timed()
	return ended, resumed, nil
}

// enforce puts a policy and a token into force, or leaves all as it was.
func (d *daemon) enforce(p *configs.Policy, token string) error {
	c, err := d.prepare(p, token)
	if err != nil {
		return err
	}
	d.commit(c)
	return nil
}

// retire has a relay accept nobody any more, and its sessions end.
func (d *daemon) retire(r *relay) {
	r.running.stop() // first: without sessions the drain is its end
	r.Drain()
	d.ending = append(slices.DeleteFunc(d.ending, (*relay).gone), r)
	go func() { // what it had of shares is for others then
		<-r.running.ended
		_ = d.own(d.tasks.ctx, func() error { d.publish(); d.rebudget(); return nil }) // unless all has ended
	}()
}

// end drains the relays, then ends the rest, so that a drain can be watched.
func (d *daemon) end(ends <-chan os.Signal, endRest context.CancelFunc) error {
	d.phase.Store(int32(draining))
	for _, r := range d.relays {
		d.retire(r)
	}
	var longest time.Duration
	for _, r := range d.ending {
		longest = max(longest, r.config.Timeouts.Drain)
	}
	d.notify(systemd.Stopping("draining", longest+5*time.Second))
	ended := make(chan error, 1)
	go func() {
		for _, r := range d.ending {
			<-r.running.ended
		}
		endRest()
		ended <- d.tasks.group.Wait()
	}()
	for {
		select {
		case f := <-d.asked: // it refuses what changes something
			f()
		case err := <-ended:
			d.Log.Info("ended")
			return err
		case sig := <-ends:
			return fmt.Errorf("%v while draining: ended at once", sig)
		}
	}
}

// snapshot returns the statistics of the relays in force. Any goroutine may
// call it; it blocks while a relay does not respond.
func (d *daemon) snapshot() []metrics.Relay {
	v := d.view.Load()
	if v == nil {
		return nil
	}
	all := []metrics.Relay{}
	for _, r := range v.all() {
		all = append(all, relayMetrics(r.Stats()))
	}
	return all
}

// alive tells systemd that the relays and the kernel's datapath respond, and how they are.
func (d *daemon) alive() { d.notify(systemd.Alive(d.status())) }

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
