package daemon

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"shaperd/configs"
	"shaperd/conn"
	"shaperd/internal/metrics"
)

// A change is a policy that is ready to come into force: everything that can
// fail has been done. What runs has not been touched, but for the kernel, which
// has all of the policy already. The caller must call commit, or abort.
type change struct {
	policy  *configs.Policy
	relays  []*relay  // of the policy, in its order
	fresh   []*relay  // of these, the new ones
	updates []update  // of the others, those that change
	gone    []*relay  // running, and not in the policy
	moved   bool      // the metrics' address changes
	metrics *endpoint // new, when moved; nil for none
	kernel  *kernel   // in force, nil for none
}

type update struct {
	*conn.Change
	relay  *relay
	config conn.Config
}

// prepare makes the change from what runs, nothing at the start, to p.
func (d *daemon) prepare(p *configs.Policy) (c *change, err error) {
	c = &change{policy: p}
	defer func() {
		if err != nil {
			c.abort()
		}
	}()
	continued := d.match(p)
	for i := range p.Relays {
		r, config := continued[i], relayConfig(p, &p.Relays[i])
		switch {
		case r == nil:
			r = &relay{readiness: make(readiness), config: config}
			if r.Relay, err = conn.NewInherited(config, d.Log, d.sockets); err != nil {
				return c, describe(p, i, err)
			}
			c.fresh = append(c.fresh, r)
		case !reflect.DeepEqual(r.config, config):
			u, err := r.Prepare(config)
			if err != nil {
				return c, describe(p, i, err)
			}
			c.updates = append(c.updates, update{u, r, config})
		}
		c.relays = append(c.relays, r)
	}
	for _, r := range d.relays {
		if !slices.Contains(continued, r) {
			c.gone = append(c.gone, r)
		}
	}
	if c.moved = d.policy == nil || p.Metrics != d.policy.Metrics; c.moved && p.Metrics.IsValid() {
		server, err := metrics.Listen(p.Metrics, d.metrics.Handler(d.ready.Load))
		if err != nil {
			return c, fmt.Errorf("%s: metrics: %w", p.Name, err)
		}
		c.metrics = &endpoint{Server: server, readiness: make(readiness)}
	}
	if err := d.prepareKernel(c); err != nil {
		return c, err
	}
	return c, nil
}

func describe(p *configs.Policy, i int, err error) error {
	return fmt.Errorf("%s:%d: relay %q: %w", p.Name, p.Relays[i].Line, p.Relays[i].Name, err)
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
	if c.kernel != nil && c.kernel.running == nil {
		_, _ = c.kernel.Clear()
		c.kernel.Close()
	}
}

// commit puts the change into force. Relays that are gone drain on their own.
func (d *daemon) commit(c *change) {
	for _, u := range c.updates {
		u.Commit()
		u.relay.config = u.config
		d.Log.Info("relay updated", "relay", u.config.Name, "listen", u.relay.Addrs())
	}
	for _, r := range c.gone {
		r.running.stop()
		d.Log.Info("relay removed: it drains", "relay", r.config.Name)
	}
	for _, r := range c.fresh {
		r.running = d.tasks.start(r)
		d.Log.Info("relay listens", "relay", r.config.Name, "listen", r.Addrs())
	}
	d.policy, d.relays = c.policy, c.relays
	d.serving.Store(&c.relays)
	for _, r := range c.fresh {
		d.tasks.awaitReady(r)
	}
	if c.moved {
		d.moveMetrics(c.metrics)
	}
	d.commitKernel(c.kernel)
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
