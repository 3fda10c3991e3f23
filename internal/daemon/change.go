package daemon

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"reflect"
	"slices"

	"shaperd/configs"
	"shaperd/conn"
	"shaperd/internal/admin"
	"shaperd/internal/admission/api"
	"shaperd/internal/metrics"
	"shaperd/shaper"
)

// A change is a policy that is ready to come into force: everything that can
// fail has been done. What runs has not been touched, but for the kernel, which
// has all of the policy already. The caller must call commit, or abort.
type change struct {
	policy  *configs.Policy
	relays  []*relay       // of the policy, in its order
	fresh   []*relay       // of these, the new ones
	updates []update       // of the others, those that change
	gone    []*relay       // running, and not in the policy
	moved   bool           // the metrics' address changes
	metrics *endpoint      // new, when moved; nil for none
	kernel  *kernel        // in force, nil for none
	resited bool           // the control socket's place changes
	socket  *controlSocket // new, when resited; nil for none

	token    string    // of clients of the admission's address
	moving   bool      // that address changes
	admitter *endpoint // new, when moving; nil for none
	reshared bool      // the cluster, or its Redis, changes
	sharing  *sharing  // new, when reshared; nil for none
}

type update struct {
	*conn.Change
	relay  *relay
	config conn.Config
	links  [2]shaper.Link
}

// prepare makes the change from what runs, nothing at the start, to p and a token.
func (d *daemon) prepare(p *configs.Policy, token string) (c *change, err error) {
	c = &change{policy: p, token: token}
	defer func() {
		if err != nil {
			c.abort()
		}
	}()
	continued := d.match(p)
	for i := range p.Relays {
		r, config := continued[i], relayConfig(p, &p.Relays[i])
		now := d.shares.relay(config, d.part(r))
		switch {
		case r == nil && d.rests(p.Relays[i].Name):
			continue
		case r == nil:
			r = &relay{readiness: make(readiness), config: config}
			r.links = [2]shaper.Link{now.Upload, now.Download}
			if r.Relay, err = conn.NewInherited(now, d.Log, d.sockets); err != nil {
				return c, describe(p, i, err)
			}
			c.fresh = append(c.fresh, r)
		case !reflect.DeepEqual(r.config, config):
			u, err := r.Prepare(now)
			if err != nil {
				return c, describe(p, i, err)
			}
			c.updates = append(c.updates, update{u, r, config, [2]shaper.Link{now.Upload, now.Download}})
		}
		c.relays = append(c.relays, r)
	}
	for _, r := range d.relays {
		if !slices.Contains(continued, r) {
			c.gone = append(c.gone, r)
		}
	}
	if c.moved = d.policy == nil || p.Metrics != d.policy.Metrics; c.moved && p.Metrics.IsValid() {
		server, err := metrics.Listen(p.Metrics, d.web())
		if err != nil {
			return c, fmt.Errorf("%s: metrics: %w", p.Name, err)
		}
		c.metrics = &endpoint{Server: server, readiness: make(readiness), what: "metrics"}
	}
	if c.resited = d.policy == nil || p.Admin != d.policy.Admin; c.resited {
		if c.socket, err = d.listenControl(p); err != nil {
			return c, err
		}
	}
	if err := d.prepareAdmission(c); err != nil {
		return c, err
	}
	if c.reshared = d.policy == nil || !reflect.DeepEqual(p.Shared, d.policy.Shared); c.reshared {
		if c.sharing, err = d.newSharing(p); err != nil {
			return c, err
		}
	}
	if err := d.prepareKernel(c); err != nil {
		return c, err
	}
	return c, nil
}

func describe(p *configs.Policy, i int, err error) error {
	return fmt.Errorf("%s:%d: relay %q: %w", p.Name, p.Relays[i].Line, p.Relays[i].Name, err)
}

// rests reports whether a relay was drained by hand.
func (d *daemon) rests(name string) bool {
	return slices.ContainsFunc(d.drained, func(r *relay) bool { return r.config.Name == name })
}

// match pairs the relays of p with the running ones that they continue, nil for
// those that are new. A session belongs to the relay that listens where it came
// in, so a common address decides, and the name only where there is none: a
// relay may get another name, and two may swap their addresses.
func (d *daemon) match(p *configs.Policy) []*relay {
	continued := make([]*relay, len(p.Relays))
	pair := func(same func(r *relay, next *configs.Relay) bool) {
		for i := range p.Relays {
			if continued[i] != nil {
				continue
			}
			for _, r := range d.relays {
				if !slices.Contains(continued, r) && same(r, &p.Relays[i]) {
					continued[i] = r
					break
				}
			}
		}
	}
	pair(func(r *relay, next *configs.Relay) bool { return r.config.Name == next.Name && shareAddress(r, next) })
	pair(shareAddress)
	pair(func(r *relay, next *configs.Relay) bool { return r.config.Name == next.Name })
	return continued
}

func shareAddress(r *relay, next *configs.Relay) bool {
	return slices.ContainsFunc(next.Listen, func(a netip.AddrPort) bool {
		return a.Port() != 0 && slices.Contains(r.config.Listen, a)
	})
}

// abort gives back what prepare took.
func (c *change) abort() {
	for _, u := range c.updates {
		u.Abort()
	}
	for _, r := range c.fresh {
		r.Close()
	}
	if c.metrics != nil {
		c.metrics.Close()
	}
	if c.socket != nil {
		c.socket.Server.Close()
	}
	if c.admitter != nil {
		c.admitter.Close()
	}
	if c.sharing != nil {
		c.sharing.close()
	}
	if c.kernel != nil && c.kernel.running == nil {
		_, _ = c.kernel.Clear()
		c.kernel.Close()
	}
}

// commit puts the change into force. Relays that are gone drain on their own.
func (d *daemon) commit(c *change) {
	for _, u := range c.updates {
		u.Commit()
		u.relay.config, u.relay.links = u.config, u.links
		d.Log.Info("relay updated", "relay", u.config.Name, "listen", u.relay.Addrs())
	}
	for _, r := range c.gone {
		d.retire(r)
		d.Log.Info("relay removed: it drains", "relay", r.config.Name)
	}
	for _, r := range c.fresh {
		r.running = d.tasks.start(r)
		d.Log.Info("relay listens", "relay", r.config.Name, "listen", r.Addrs())
	}
	d.policy, d.relays = c.policy, c.relays
	d.commitAdmission(c)
	d.publish()
	for _, r := range c.fresh {
		d.tasks.awaitReady(r)
	}
	if c.resited {
		d.moveControl(c.socket)
	}
	if c.moved {
		d.moveMetrics(c.metrics)
	}
	d.commitKernel(c.kernel)
	if c.reshared {
		d.moveSharing(c.sharing)
	}
	d.rebudget()
}

// moveMetrics serves metrics at e, or nowhere when e is nil.
func (d *daemon) moveMetrics(e *endpoint) {
	if d.endpoint != nil {
		d.endpoint.running.stop()
	}
	if d.endpoint = e; e != nil {
		e.running = d.tasks.start(e)
		d.tasks.awaitReady(e)
		d.Log.Info("metrics are served", "listen", e.Addr())
	}
}

// listenControl makes the control socket of a policy, which is not in its place
// yet; nil for none. Where the policy does not say where, a daemon can do without.
func (d *daemon) listenControl(p *configs.Policy) (*controlSocket, error) {
	path := cmp.Or(p.Admin.Socket, SocketPath())
	if p.Admin.Off || path == "" {
		return nil, nil
	}
	l, err := admin.Listen(admin.Socket{Path: path, Mode: p.Admin.Mode, Group: p.Admin.Group})
	switch {
	case err == nil:
		take := func(mux *http.ServeMux) { api.Mount(mux, d.admission) }
		s := admin.NewServer(l, control{d}, d.Log, take)
		s.HTTP.Handler = api.Authorize(d.admission, s.HTTP.Handler)
		return &controlSocket{Server: s, Listener: l, path: path, readiness: make(readiness)}, nil
	case p.Admin == configs.Admin{}:
		d.Log.Warn("there is none: status, top, set and reload will not work", "error", err)
		return nil, nil
	}
	return nil, fmt.Errorf("%s: %w", p.Name, err)
}

// moveControl answers on s, or nowhere when s is nil.
func (d *daemon) moveControl(s *controlSocket) {
	if s != nil {
		if err := s.Place(); err != nil { // its folder has gone since prepare
			d.Log.Error("control socket", "error", err)
			s.Server.Close()
			s = nil
		}
	}
	if d.socket != nil {
		d.socket.running.stop() // who asked for the reload still gets the answer
	}
	if d.socket = s; s != nil {
		s.running = d.tasks.start(s)
		d.tasks.awaitReady(s)
		d.Log.Info("control socket is there", "socket", s.path)
	}
}
