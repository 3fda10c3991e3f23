package configs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"shaperd/shaper"
)

// An Override is what somebody has set by hand, in the place of what the file
// says: of a class, on one link or on all, or of a link. Amounts are written as
// in the file; "" leaves what the file says.
type Override struct {
	Link, Class       string
	Rate, Ceil, Burst string
}

// At returns the policy with the rates that schedules and the overrides give it
// at t; later overrides count before earlier ones. It returns p itself when
// nothing does. Overrides that do not fit are an error, or several joined: what
// is wrong and its cure, without a place, since the file is in order.
func (p *Policy) At(t time.Time, overrides []Override) (*Policy, error) {
	if p.file == nil || len(p.times.windows) == 0 && len(overrides) == 0 {
		return p, nil
	}
	set, err := p.read(overrides)
	if err != nil {
		return nil, err
	}
	r := newReport(p.Name)
	r.lines, r.moment.set = p.file.lines, set
	if len(p.times.windows) > 0 {
		r.moment.on = true
		r.moment.day, r.moment.time = p.times.wall(t)
	}
	out := *p
	out.Relays, out.Interfaces = nil, nil
	r.places(&out, p.file.spec)
	if r.err() != nil {
		var all []error
		for _, e := range r.errors {
			all = append(all, errors.New(e.Message+"; "+e.Cure))
		}
		return nil, errors.Join(all...)
	}
	return &out, nil
}

// Next returns when after t schedules give the policy other rates; the zero
// time for never.
func (p *Policy) Next(t time.Time) time.Time { return p.times.next(t) }

// State tells apart the times at which schedules give the policy different rates.
func (p *Policy) State(t time.Time) string { return p.times.state(t) }

// Zone is where the times of schedules hold.
func (p *Policy) Zone() *time.Location { return p.times.zone }

// Links returns all links, in the file's order.
func (p *Policy) Links() (all []*shaper.Link) {
	for i := range p.Interfaces {
		for _, l := range []*shaper.Link{&p.Interfaces[i].Egress, &p.Interfaces[i].Ingress} {
			if l.Rate > 0 {
				all = append(all, l)
			}
		}
	}
	for i := range p.Relays {
		all = append(all, &p.Relays[i].Upload, &p.Relays[i].Download)
	}
	return all
}

// read reads overrides and checks that what they name is there.
func (p *Policy) read(overrides []Override) (all []override, err error) {
	links := p.Links()
	_, classes := p.classes()
	for i := range overrides {
		o := &overrides[i]
		out := override{link: o.Link, class: o.Class}
		if err := p.Knows(o.Link, o.Class); err != nil {
			return nil, err
		}
		switch {
		case o.Class == "" && o.Link == "":
			return nil, errors.New("neither a class nor a link is named")
		case o.Class == "" && (o.Ceil != "" || o.Burst != ""):
			return nil, fmt.Errorf("link %q has a rate, and neither ceil nor burst", o.Link)
		}
		for _, amount := range []struct {
			key, text string
			to        scalar
		}{{"rate", o.Rate, &out.rate}, {"ceil", o.Ceil, &out.ceil}, {"burst", o.Burst, &out.burst}} {
			if amount.text == "" {
				continue
			}
			if err := amount.to.parse(amount.text); err != nil {
				reason, cure := reasonOf(err)
				if cure == "" {
					cure = fmt.Sprintf("write %s, such as %s", amount.to.format().what, amount.to.format().example)
				}
				return nil, fmt.Errorf("%s %s: %s; %s", amount.key, quote(amount.text), reason, cure)
			}
		}
		if o.Burst != "" && out.burst == (burst{}) {
			return nil, fmt.Errorf("burst %s: it cannot hold a full packet; write at least %s", quote(o.Burst), minBurst)
		}
		for _, l := range links {
			if l.Rate == 0 && (o.Link == "" || o.Link == l.Name) && (out.rate.percent > 0 || out.ceil.percent > 0) {
				return nil, fmt.Errorf("%s has no rate that could be meant by a percentage; write a rate, such as 20mbit", l.Name)
			}
		}
		if o.Class == "" && out.rate.percent > 0 {
			return nil, fmt.Errorf("the rate of link %q cannot be a percentage; write a rate, such as 20mbit", o.Link)
		}
		if c := classes[o.Class]; c != nil {
			if err := c.takes(o, out.burst); err != nil {
				return nil, err
			}
		}
		all = append(all, out)
	}
	return all, nil
}

// takes returns what a class cannot be set to.
func (c *classSpec) takes(o *Override, b burst) error {
	_, requests, _ := perHour(o.Rate)
	switch {
	case bool(c.Shared.v) && o.Link != "":
		return fmt.Errorf("class %q is shared and has one rate for all links and hosts: leave out the link", o.Class)
	case bool(c.Shared.v) && o.Ceil != "":
		return fmt.Errorf("class %q is shared and has no ceil: set its rate", o.Class)
	case bool(c.Shared.v) && strings.HasSuffix(o.Rate, "%"):
		return fmt.Errorf("class %q is shared by hosts whose links may differ: write a rate, such as 30mbit", o.Class)
	case c.ofRequests() && (o.Link != "" || o.Ceil != ""):
		return fmt.Errorf("class %q counts requests and is on no link: it has rate and burst only", o.Class)
	case c.ofRequests() && o.Rate != "" && !requests:
		return fmt.Errorf("class %q counts requests: write a rate such as 100/s, 100/m or 100/h", o.Class)
	case !c.ofRequests() && requests:
		return fmt.Errorf("class %q counts bytes: write a rate such as 20mbit", o.Class)
	case b.Size > 0 && c.ofRequests():
		return fmt.Errorf("class %q counts requests: write its burst as a number, such as 200", o.Class)
	case b.count > 0 && !c.ofRequests():
		return fmt.Errorf("burst %s: it has no unit; write %s if bytes are meant", quote(o.Burst), shaper.Size(b.count))
	}
	return nil
}

// Knows returns nil if the policy has the link and the class, else what is
// wrong. "" is any.
func (p *Policy) Knows(link, class string) error {
	var links []string
	for _, l := range p.Links() {
		links = append(links, l.Name)
	}
	if link != "" && !slices.Contains(links, link) {
		return NoSuch("link", link, links)
	}
	names, classes := p.classes()
	switch {
	case class == "" || classes[class] != nil:
		return nil
	case len(classes) == 0:
		return fmt.Errorf("there is no class %q: the policy has no classes, set the rate of a link", class)
	}
	return NoSuch("class", class, names)
}

// classes are all of the file, in its order and by name.
func (p *Policy) classes() (names []string, all map[string]*classSpec) {
	all = map[string]*classSpec{}
	var walk func(*list[classSpec])
	walk = func(l *list[classSpec]) {
		for i := range l.all {
			c := &l.all[i].v
			names, all[c.title()] = append(names, c.title()), c
			walk(&c.Classes)
		}
	}
	walk(&p.file.spec.Classes)
	return names, all
}
