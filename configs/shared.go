package configs

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Shared is the cluster of hosts that share the budgets of classes, and the
// Redis that they do it on. The zero value is none.
type Shared struct {
	Redis    Redis
	Cluster  string // "" for none
	Host     string // "" for the hostname
	Weight   int64
	OnOutage string        // share, min, open or closed
	Period   time.Duration // between renewals
}

// Outages are the values of Shared.OnOutage; the first is the default.
var Outages = []string{"share", "min", "open", "closed"}

const defaultPeriod = 500 * time.Millisecond

// shared checks what classes share, and adds it to the policy.
func (r *report) shared(p *Policy, f *fileSpec) {
	s := &f.Shared.v
	r.sharedClasses(f, &f.Classes, 1)
	if !f.Shared.ok() {
		return
	}
	p.Shared = Shared{
		Cluster: string(s.Cluster.v), Host: string(s.Host.v), Weight: max(int64(s.Weight.v), 1), OnOutage: Outages[0], Period: defaultPeriod,
	}
	if s.OnOutage.ok() {
		p.Shared.OnOutage = string(s.OnOutage.v)
	}
	if s.Period.ok() {
		p.Shared.Period = s.Period.v.Duration
	}
	r.redis(&p.Shared.Redis, s)
}

// sharedClasses checks the classes of one level that have one budget for all hosts.
func (r *report) sharedClasses(f *fileSpec, all *list[classSpec], depth int) {
	for i := range all.all {
		c := &all.all[i].v
		if c.Shared.ok() && bool(c.Shared.v) {
			r.sharedClass(f, c)
		}
		r.sharedClasses(f, &c.Classes, depth+1)
	}
}

func (r *report) sharedClass(f *fileSpec, c *classSpec) {
	for _, i := range f.Interfaces.values() {
		if i.Name.ok() && strings.ContainsAny(string(i.Name.v), "*?[") {
			r.wrong(i.Name.at.place, "name the interface", "class %q is shared, and %s may be several interfaces: which of them has the share?", c.title(), i.Name.v)
		}
	}
	if !f.Shared.given() {
		r.wrong(c.Shared.at.key, `add shared, such as shared: {redis: "redis://10.0.0.9:6379", cluster: edge}`, "class %q is shared, and the policy does not say on which Redis", c.title())
	}
	if c.Classes.given() {
		r.wrong(c.Shared.at.key, "move it to the classes inside", "class %q has classes inside: only those can be shared", c.title())
		return
	}
	rates, ceils := []*value[share]{&c.Rate}, []*value[share]{&c.Ceil}
	for i := range c.Schedule.all {
		rates, ceils = append(rates, &c.Schedule.all[i].v.Rate), append(ceils, &c.Schedule.all[i].v.Ceil)
	}
	for _, s := range rates {
		if s.ok() && s.v.percent > 0 {
			r.wrong(s.at.place, "write a rate, such as 30mbit", "class %q is shared by hosts whose links may differ: %s of what?", c.title(), s.v.text)
		}
	}
	for _, s := range ceils {
		if s.given() {
			r.wrong(s.at.key, "remove it", "class %q is shared: all hosts together keep to its rate, and borrow nothing", c.title())
		}
	}
	if !c.Rate.given() {
		r.wrong(c.Shared.at.key, "add rate", "class %q is shared and has no rate to share", c.title())
	}
}

// A filePath is that of a file of this host.
type filePath string

func (*filePath) format() format {
	return format{what: "a path", example: "/etc/shaperd/token", pattern: `^/.+$`}
}

func (p *filePath) parse(text string) error {
	if !filepath.IsAbs(text) {
		return textErrorf("write it from the root on, such as /etc/shaperd/token", "it is no absolute path")
	}
	*p = filePath(filepath.Clean(text))
	return nil
}

// A weight is a host's share beside others'.
type weight int64

func (*weight) format() format {
	return format{what: "a number from 1 to 1000", example: "1", number: [2]int64{1, 1000}}
}

func (w *weight) parse(text string) error {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n < 1 || n > 1000 {
		return textErrorf("write 1 to 1000", "it is not from 1 to 1000")
	}
	*w = weight(n)
	return nil
}

// onOutage is what a shared class has when Redis is away.
type onOutage string

func (*onOutage) format() format {
	return format{what: orList(Outages), example: "share", enum: Outages}
}

func (o *onOutage) parse(text string) error {
	if !slices.Contains(Outages, text) {
		return unknown(text, "value", Outages)
	}
	*o = onOutage(text)
	return nil
}

// A period is how often shares are renewed.
type period struct{ time.Duration }

func (*period) format() format {
	return format{what: "a time", example: "500ms", pattern: `^[0-9]+(\.[0-9]+)?(ms|s)$`}
}

func (p *period) parse(text string) error {
	var t timeout
	if err := t.parse(text); err != nil {
		return err
	}
	if t.Duration < 100*time.Millisecond || t.Duration > 10*time.Second {
		return textErrorf("write 100ms to 10s", "%s is not from 100ms to 10s", t)
	}
	p.Duration = t.Duration
	return nil
}

// String is for messages.
func (t timeout) String() string { return fmt.Sprint(t.Duration) }
