package conn

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"shaperd/shaper"
)

// A Relay accepts TCP connections and moves their bytes at the pace of their
// class. Its methods may be called from any goroutine.
type Relay struct {
	loop *loop
	done chan struct{} // closed when Run has returned or Close was called
	once sync.Once

	last Stats // once done
}

// New makes a relay and binds its listeners; connections wait in the kernel's
// queue until Run serves them. A nil logger discards. The caller must call Run
// or Close.
func New(cfg Config, log *slog.Logger) (*Relay, error) { return NewInherited(cfg, log, nil) }

// NewInherited is New, but an address that in has a socket for is not bound, now
// and after a change of configuration.
func NewInherited(cfg Config, log *slog.Logger, in *Inherited) (*Relay, error) {
	p, upstreams, err := prepare(&cfg)
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	l := &loop{
		logger: log, inherited: in, base: time.Now(), policy: p, upstreams: upstreams, resumeAt: never,
		sources: map[netip.Addr]*source{}, failures: map[string]uint64{},
	}
	if l.up, err = shaper.NewTree(cfg.Upload, 0); err != nil {
		return nil, err
	}
	if l.down, err = shaper.NewTree(cfg.Download, 0); err != nil {
		return nil, err
	}
	l.resolver = newResolver(l.post)
	if l.poller, err = newPoller(); err != nil {
		return nil, err
	}
	fresh, err := l.bindNew(p)
	if err != nil {
		l.poller.close()
		return nil, err
	}
	l.install(p, upstreams, fresh)
	return &Relay{loop: l, done: make(chan struct{})}, nil
}

// prepare validates what can be validated without touching a running relay.
func prepare(cfg *Config) (*policy, []*upstream, error) {
	p, err := newPolicy(cfg)
	if err != nil {
		return nil, nil, err
	}
	var upstreams []*upstream
	for _, name := range cfg.Upstream {
		u, err := newUpstream(name)
		if err != nil {
			return nil, nil, fmt.Errorf("upstream %q: %w", name, err)
		}
		upstreams = append(upstreams, u)
	}
	if cfg.Kind == Forward && len(upstreams) == 0 {
		return nil, nil, fmt.Errorf("relay %q has no upstream", cfg.Name)
	}
	for _, link := range []shaper.Link{cfg.Upload, cfg.Download} {
		if _, err := shaper.NewTree(link, 0); err != nil {
			return nil, nil, err
		}
	}
	return p, upstreams, checkMarks(cfg.Marks)
}

// Run serves until ctx is done, then stops accepting, waits up to
// Timeouts.Drain for the sessions to end, resets those that are left, and
// returns nil. It returns an error only when the kernel refuses to go on.
// It may be called once.
func (r *Relay) Run(ctx context.Context) error {
	l := r.loop
	stop := context.AfterFunc(ctx, func() {
		l.post(func() { l.drain(l.policy.Timeouts.Drain) })
	})
	defer stop()
	ended := make(chan error)
	go func() {
		err := l.run()
		r.close()
		ended <- err
	}()
	return <-ended
}

// Drain does what the end of Run's context does, and returns when nobody is
// accepted any more. It does not wait for the sessions.
func (r *Relay) Drain() {
	r.do(func() { r.loop.drain(r.loop.policy.Timeouts.Drain) })
}

// Close releases the listeners of a relay that Run was never called for.
func (r *Relay) Close() {
	r.loop.shutdown()
	r.close()
}

func (r *Relay) close() {
	r.once.Do(func() {
		r.last = r.loop.stats()
		close(r.done)
	})
}

// do has f called by the loop and waits for it; false when the loop has ended.
func (r *Relay) do(f func()) bool {
	called := make(chan struct{})
	if !r.loop.post(func() { f(); close(called) }) {
		return false
	}
	select {
	case <-called:
		return true
	case <-r.done:
		select {
		case <-called:
			return true
		default:
			return false
		}
	}
}

// Addrs returns the addresses that the relay listens on; none once it drains.
// It never blocks.
func (r *Relay) Addrs() []netip.AddrPort {
	if list := r.loop.bound.Load(); list != nil {
		return *list
	}
	return nil
}

// Stats returns a snapshot; after Run has returned, the last one. It waits for
// the loop's current turn, and for Run to be called.
func (r *Relay) Stats() (st Stats) {
	if r.do(func() { st = r.loop.stats() }) {
		return st
	}
	<-r.done
	return r.last
}

func (l *loop) stats() Stats {
	failures, up := make(map[string]uint64, len(l.failures)), make(map[string]bool, len(l.upstreams))
	for _, u := range l.upstreams {
		failures[u.name] = 0
		up[u.name] = u.failures == 0
	}
	if l.policy.Kind == SOCKS5 {
		failures[clientsChoice] = 0
	}
	maps.Copy(failures, l.failures)
	return Stats{
		Name: l.policy.Name, Upload: l.up.Stats(l.now), Download: l.down.Stats(l.now),
		Sessions: l.open, Accepted: l.accepted, Connected: l.connected, Held: l.held,
		Closed: l.closed, Refused: l.refused, UpstreamFailures: failures, UpstreamUp: up,
		AcceptPaused: l.paused, DSCPUnknown: l.dscpUnknown,
	}
}

// RaiseFileLimit raises the process's soft limit of open files to the hard one
// and returns what it now is. A session needs two.
func RaiseFileLimit() (uint64, error) {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		return 0, err
	}
	lim.Cur = lim.Max
	return lim.Cur, unix.Setrlimit(unix.RLIMIT_NOFILE, &lim)
}
