package daemon

import (
	"slices"
	"strings"
	"time"

	"shaperd/configs"
	"shaperd/conn"
	"shaperd/internal/lease"
	"shaperd/shaper"
)

// leastBurst is what a burst of a shared class is not cut below, where the policy
// gives one: a packet of any device must fit.
const leastBurst = 16 * shaper.KiB

// holderOf is a shared class on a link, which is named as "relay web download".
func holderOf(class, link string) lease.Holder {
	i := strings.LastIndexByte(link, ' ')
	return lease.Holder{Class: class, Direction: link[i+1:], Link: link[:i]}
}

// linkOf is the link's name.
func linkOf(h lease.Holder) string { return h.Link + " " + h.Direction }

// Shares are what this host has of budgets now.
type shares map[lease.Holder]shaper.Rate

// classes returns the classes of a link with the shares in the place of budgets:
// nothing of what is not there. The datapath has a part of each.
func (s shares) classes(link string, all []shaper.Class, part func(lease.Holder) float64) []shaper.Class {
	out := slices.Clone(all)
	for i := range out {
		c := &out[i]
		if c.Budget > 0 {
			h := holderOf(c.Name, link)
			c.Rate = shaper.Rate(float64(min(s[h], c.Budget)) * part(h))
			c.Ceil = c.Rate
			if c.Burst > leastBurst { // the hosts' bursts together are the class's
				c.Burst = max(leastBurst, shaper.Size(float64(c.Burst)*float64(c.Rate)/float64(c.Budget)))
			}
		}
		c.Children = s.classes(link, c.Children, part)
	}
	return out
}

// relay returns a relay's configuration with the shares.
func (s shares) relay(c conn.Config, part func(lease.Holder) float64) conn.Config {
	c.Upload.Classes = s.classes(c.Upload.Name, c.Upload.Classes, part)
	c.Download.Classes = s.classes(c.Download.Name, c.Download.Classes, part)
	return c
}

// policy returns a policy with the shares on its interfaces.
func (s shares) policy(p *configs.Policy) *configs.Policy {
	out := *p
	out.Interfaces = slices.Clone(p.Interfaces)
	all := func(lease.Holder) float64 { return 1 }
	for i := range out.Interfaces {
		for _, l := range []*shaper.Link{&out.Interfaces[i].Egress, &out.Interfaces[i].Ingress} {
			l.Classes = s.classes(l.Name, l.Classes, all)
		}
	}
	return &out
}

// eachShared calls f for every shared class of the links.
func eachShared(links []*shaper.Link, f func(lease.Holder, *shaper.Class)) {
	for _, l := range links {
		var walk func([]shaper.Class)
		walk = func(classes []shaper.Class) {
			for i := range classes {
				if classes[i].Budget > 0 {
					f(holderOf(classes[i].Name, l.Name), &classes[i])
				}
				walk(classes[i].Children)
			}
		}
		walk(l.Classes)
	}
}

// budgetsOf returns what the shared classes of the links have, of a policy that
// was written at a time: each since its last change in this process, if that is
// later.
func budgetsOf(links []*shaper.Link, written time.Time, before []lease.Budget, now time.Time) (all []lease.Budget) {
	old := map[lease.Holder]lease.Budget{}
	for _, b := range before {
		old[b.Holder] = b
	}
	have := map[lease.Holder]bool{}
	eachShared(links, func(h lease.Holder, c *shaper.Class) {
		if have[h] {
			return // a relay of before, which drains
		}
		have[h] = true
		b := lease.Budget{Holder: h, Rate: c.Budget, Version: max(written.UnixNano(), 0)}
		switch was, known := old[h]; {
		case known && was.Rate != b.Rate:
			b.Version = now.UnixNano()
		case known:
			b.Version = max(b.Version, was.Version)
		}
		all = append(all, b)
	})
	return all
}
