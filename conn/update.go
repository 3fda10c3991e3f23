package conn

import (
	"errors"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"shaperd/shaper"
)

// ErrEnded is returned by Prepare and Update when Run has returned.
var ErrEnded = errors.New("relay has ended")

// A Change is a new configuration, validated and with its new listeners bound,
// that waits for Commit or Abort.
type Change struct {
	relay     *Relay
	policy    *policy
	upstreams []*upstream
	fresh     []*listener
}

// Prepare does everything of a change of configuration that can fail, and
// leaves the relay as it is. The caller must call Commit or Abort, and must not
// prepare another change before.
func (r *Relay) Prepare(cfg Config) (*Change, error) {
	p, upstreams, err := prepare(&cfg)
	if err != nil {
		return nil, err
	}
	c := &Change{relay: r, policy: p, upstreams: upstreams}
	if !r.do(func() { c.fresh, err = r.loop.bindNew(p) }) {
		return nil, ErrEnded
	}
	return c, err
}

// Commit puts the change into force without dropping a session: listeners that
// are gone are closed, rates and limits reach those who wait at once with every
// bucket's level kept, and each session moves to the class that the new rules
// give it.
func (c *Change) Commit() {
	c.relay.do(func() { c.relay.loop.commit(c) })
}

// Abort drops the change.
func (c *Change) Abort() { closeAll(c.fresh, c.relay.loop.poller) }

// Update prepares and commits a change of configuration.
func (r *Relay) Update(cfg Config) error {
	c, err := r.Prepare(cfg)
	if err != nil {
		return err
	}
	c.Commit()
	return nil
}

// SetRates gives the classes of the relay's links other rates, in place and at
// once, with every bucket's level kept. Nothing else of the links may differ from
// those in force. After Run has returned it does nothing.
func (r *Relay) SetRates(upload, download shaper.Link) error {
	for _, l := range []shaper.Link{upload, download} {
		if _, err := shaper.NewTree(l, 0); err != nil {
			return err
		}
	}
	r.do(func() {
		l := r.loop
		l.tick()
		if err := errors.Join(l.up.Update(upload, l.now), l.down.Update(download, l.now)); err != nil {
			l.log.Error("update of the class tree", "error", err)
		}
	})
	return nil
}

func closeAll(list []*listener, p *poller) {
	for _, ln := range list {
		ln.close(p)
	}
}

// bindNew inherits, or binds, the addresses of p that the loop does not listen on yet.
func (l *loop) bindNew(p *policy) (fresh []*listener, err error) {
	for _, addr := range p.Listen {
		if slices.ContainsFunc(l.listeners, func(ln *listener) bool { return ln.want == addr }) {
			continue
		}
		ln := l.inherited.take(addr)
		if ln == nil {
			if ln, err = listen(addr, v6Only(addr, p.Listen)); err != nil {
				closeAll(fresh, l.poller)
				return nil, err
			}
		}
		fresh = append(fresh, ln)
	}
	return fresh, nil
}

func (l *loop) commit(c *Change) {
	if l.draining {
		c.Abort()
		return
	}
	l.tick()
	// Prepare has built a tree of each link: neither update can fail.
	if err := errors.Join(l.up.Update(c.policy.Upload, l.now), l.down.Update(c.policy.Download, l.now)); err != nil {
		l.log.Error("update of the class tree", "error", err)
	}
	l.install(c.policy, c.upstreams, c.fresh)
	for _, s := range l.slots {
		if s.client >= 0 {
			l.reclassify(s)
		}
	}
}

// install puts a policy into force, except for the sessions there are.
func (l *loop) install(p *policy, upstreams []*upstream, fresh []*listener) {
	l.policy, l.log = p, l.logger.With("relay", p.Name)
	l.up.SetLimits(p.Limits.PerSession, p.Limits.PerSource, l.now)
	l.down.SetLimits(p.Limits.PerSession, p.Limits.PerSource, l.now)
	l.limitAdmission(p.Limits.NewPerSecond)
	for i, u := range upstreams {
		if j := slices.IndexFunc(l.upstreams, func(old *upstream) bool { return old.name == u.name }); j >= 0 {
			upstreams[i] = l.upstreams[j] // keeps what it knows of it
		}
	}
	l.upstreams = upstreams
	l.listeners = slices.DeleteFunc(l.listeners, func(ln *listener) bool {
		gone := !slices.Contains(p.Listen, ln.want)
		if gone {
			ln.close(l.poller)
		}
		return gone
	})
	for _, ln := range fresh {
		l.nextList++
		ln.token = listenerBit | l.nextList
		if err := l.poller.add(ln.fd, unix.EPOLLIN, ln.token); err != nil {
			l.log.Error("serve listener", "listen", ln.bound, "error", err)
		}
		l.listeners = append(l.listeners, ln)
	}
	bound := make([]netip.AddrPort, len(l.listeners))
	for i, ln := range l.listeners {
		ln.adjust(p)
		bound[i] = ln.bound
	}
	l.bound.Store(&bound)
}

// limitAdmission sets how many connections a second are taken. One connection
// is one byte of a token bucket that holds a second's worth.
func (l *loop) limitAdmission(perSecond int) {
	rate, burst := shaper.Rate(perSecond)*8, shaper.Size(perSecond)
	switch {
	case perSecond == 0:
		l.admission = nil
	case l.admission == nil:
		l.admission = shaper.NewTokenBucket(rate, burst)
	default:
		l.admission.SetRate(rate)
		l.admission.SetBurst(burst)
	}
}

// reclassify gives a session the class and the timeouts of the policy in force.
func (l *loop) reclassify(s *session) {
	if l.policy.needDSCP && !s.dscpKnown {
		l.learnDSCP(s)
	}
	old := s.leaf
	if old != nil {
		s.leaf = l.policy.classify(s.src, s.dst, s.dscp)
	}
	if s.state != relaying {
		if s.state != resetting {
			l.timers.arm(s, l.now) // look at its deadline again
		}
		return
	}
	if s.leaf.name != old.name {
		l.up.Move(&s.up.queue, s.leaf.name, l.now)
		l.down.Move(&s.down.queue, s.leaf.name, l.now)
	}
	if s.leaf.name != old.name || !s.leaf.mark.equal(&old.mark) {
		s.leaf.mark.apply(s.client, s.src.Addr().Is6())
		s.leaf.mark.apply(s.server, s.dst.Addr().Is6())
	}
	if s.leaf.upload != old.upload || s.leaf.download != old.download {
		fitBuffers(s.client, s.leaf.upload, s.leaf.download)
		fitBuffers(s.server, s.leaf.download, s.leaf.upload)
	}
	l.checkIdle(s)
}
