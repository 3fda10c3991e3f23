package daemon

import (
	"maps"
	"reflect"
	"strings"
	"time"

	"shaperd/configs"
	"shaperd/conn"
	"shaperd/internal/admin"
	"shaperd/internal/metrics"
	"shaperd/shaper"
)

// leastBurst is what a burst of a shared class is not cut below, where the policy
// gives one: a packet of any device must fit.
const leastBurst = 16 * shaper.KiB

// A sharer is a shared class on one link of this host.
type sharer struct{ class, link string }

// direction is what the links are of that share a budget: upload, download,
// egress or ingress.
func (s sharer) direction() string { return s.link[strings.LastIndexByte(s.link, ' ')+1:] }

// A budget is what the hosts share of a class in one direction, as this host's
// policy has it.
type budget struct {
	rate    shaper.Rate
	version time.Time // since when: the newest of the cluster's counts
}

// eachShared calls f for every shared class on every link.
func eachShared(p *configs.Policy, f func(sharer, *shaper.Class)) {
	for _, l := range p.Links() {
		var walk func([]shaper.Class)
		walk = func(classes []shaper.Class) {
			for i := range classes {
				if classes[i].Budget > 0 {
					f(sharer{classes[i].Name, l.Name}, &classes[i])
				}
				walk(classes[i].Children)
			}
		}
		walk(l.Classes)
	}
}

// budgetsOf returns what the shared classes of a policy have, each since its last
// change in this process, else since the file was written.
func budgetsOf(p *configs.Policy, before map[sharer]budget, now time.Time) map[sharer]budget {
	all := map[sharer]budget{}
	eachShared(p, func(s sharer, c *shaper.Class) {
		b := budget{c.Budget, p.Modified}
		switch old, known := before[s]; {
		case known && old.rate != b.rate:
			b.version = now
		case known && old.version.After(b.version):
			b.version = old.version
		}
		all[s] = b
	})
	return all
}

// withShares returns the policy with this host's shares in the place of budgets:
// nothing of what is not there.
func withShares(p *configs.Policy, shares map[sharer]shaper.Rate) *configs.Policy {
	if len(p.Shared.URLs) == 0 {
		return p
	}
	out := *p
	out.Interfaces, out.Relays = append([]configs.Interface(nil), p.Interfaces...), append([]configs.Relay(nil), p.Relays...)
	for _, l := range out.Links() {
		l.Classes = shared(l.Name, l.Classes, shares)
	}
	return &out
}

// shared returns the classes of one level with their shares.
func shared(link string, classes []shaper.Class, shares map[sharer]shaper.Rate) []shaper.Class {
	out := append([]shaper.Class(nil), classes...)
	for i := range out {
		c := &out[i]
		if c.Budget > 0 {
			c.Rate = min(shares[sharer{c.Name, link}], c.Budget)
			c.Ceil = c.Rate
			if c.Burst > leastBurst { // the hosts' bursts together are the class's
				c.Burst = max(leastBurst, shaper.Size(float64(c.Burst)*float64(c.Rate)/float64(c.Budget)))
			}
		}
		c.Children = shared(link, c.Children, shares)
	}
	return out
}

// reshape gives the datapaths the shares that this host has now, and nothing else.
func (d *daemon) reshape(shares map[sharer]shaper.Rate) error {
	if maps.Equal(shares, d.shares) {
		return nil
	}
	before, after := withShares(d.policy, d.shares), withShares(d.policy, shares)
	if !reflect.DeepEqual(before.Interfaces, after.Interfaces) && d.kernel != nil {
		if _, err := d.kernel.Apply(KernelConfig(after)); err != nil {
			return describeKernel(d.policy, err)
		}
	}
	for _, r := range d.relays {
		for i := range after.Relays {
			if next := relayConfig(after, &after.Relays[i]); next.Name == r.config.Name && !reflect.DeepEqual(next, r.config) {
				if err := r.SetRates(next.Upload, next.Download); err != nil {
					return err
				}
				r.config = next
			}
		}
	}
	d.shares = shares
	return nil
}

// usage is what a shared class has sent, and whether something waits.
type usage struct {
	bytes   uint64
	waiting bool
}

// usages returns what shared classes have sent so far. Any goroutine may call it;
// it blocks while a datapath does not respond.
func (d *daemon) usages(of map[sharer]budget) map[sharer]usage {
	all := map[sharer]usage{}
	v := d.view.Load()
	note := func(l *shaper.LinkStats) {
		for i := range l.Classes {
			c := &l.Classes[i]
			if s := (sharer{c.Name, l.Name}); of[s].rate > 0 {
				all[s] = usage{c.Bytes, c.Backlogged > 0}
			}
		}
	}
	for _, r := range v.all() {
		var st conn.Stats = r.Stats()
		note(&st.Upload)
		note(&st.Download)
	}
	for _, l := range d.kernelSnapshot().Links {
		for i := range l.Classes {
			c := &l.Classes[i]
			if s := (sharer{c.Name, l.Name}); of[s].rate > 0 {
				all[s] = usage{c.Bytes, c.BacklogBytes > 0}
			}
		}
	}
	return all
}

// sharingSnapshot returns how the shares of this host are; nil where it shares
// nothing. Any goroutine may call it.
func (d *daemon) sharingSnapshot() *metrics.Sharing { return nil }

// sharing is how the shares of this host are, for the status; nil where there are none.
func (d *daemon) sharing() *admin.Shared { return nil }
