package configs

import (
	"fmt"
	"time"
)

// A moment is what holds besides the file when links are made: the windows of
// schedules whose time it is, and what was set by hand. The zero value is the
// file outside of all schedules.
type moment struct {
	on   bool // schedules count
	day  time.Weekday
	time int // minutes of the day
	set  []override
}

// An override is an Override that was read.
type override struct {
	link, class string // link "" is every link, class "" the link itself
	rate, ceil  share
	burst       burst
}

// suffix says in a message when it is that something is wrong. What is set by
// hand is set now.
func (m *moment) suffix() string {
	if !m.on || len(m.set) > 0 {
		return ""
	}
	return fmt.Sprintf(" (%s at %s)", weekdays[m.day], timeOfDay(m.time))
}

func (m *moment) holds(d *some[days], from, to *value[timeOfDay]) bool {
	return m.on && windowOf(d, from, to).holds(m.day, m.time)
}

// rate returns where the rate that a link has now is written.
func (m *moment) rate(link string, l *linkRate) *value[rate] {
	out := &l.v.Rate
	for i := range l.v.Schedule.all {
		if t := &l.v.Schedule.all[i].v; m.holds(&t.Days, &t.From, &t.To) {
			out = &t.Rate
			break
		}
	}
	for _, o := range m.set {
		if o.class == "" && o.link == link {
			out = &value[rate]{v: rate{o.rate.rate}, at: out.at}
		}
	}
	return out
}

// classes returns the classes with the amounts that they have on a link now:
// all itself, when these are the file's.
func (m *moment) classes(link string, all *list[classSpec]) *list[classSpec] {
	if !m.on && len(m.set) == 0 {
		return all
	}
	out := *all
	out.all = make([]value[classSpec], len(all.all))
	for i, c := range all.all {
		m.class(link, &c)
		c.v.Classes = *m.classes(link, &c.v.Classes)
		out.all[i] = c
	}
	return &out
}

// class gives a class the amounts that it has now.
func (m *moment) class(link string, c *value[classSpec]) {
	for i := range c.v.Schedule.all {
		if t := &c.v.Schedule.all[i].v; m.holds(&t.Days, &t.From, &t.To) {
			replace(&c.v.Rate, t.Rate)
			replace(&c.v.Ceil, t.Ceil)
			replace(&c.v.Burst, t.Burst)
			break
		}
	}
	for _, o := range m.set {
		if o.class != c.v.title() || o.link != "" && o.link != link {
			continue
		}
		if o.rate != (share{}) {
			replace(&c.v.Rate, value[share]{v: o.rate, at: whichever(c.v.Rate.at, c.at)})
		}
		if o.ceil != (share{}) {
			replace(&c.v.Ceil, value[share]{v: o.ceil, at: whichever(c.v.Ceil.at, c.at)})
		}
		if o.burst != (burst{}) {
			replace(&c.v.Burst, value[burst]{v: o.burst, at: whichever(c.v.Burst.at, c.at)})
		}
	}
}

// replace puts what is given in the place of old.
func replace[T any](old *value[T], by value[T]) {
	if by.given() {
		*old = by
	}
}

// whichever is where a value that the file may lack is missing.
func whichever(at, otherwise *node) *node {
	if at == nil {
		return otherwise
	}
	return at
}

// eachMoment collects the schedules of the file for p, and checks that the
// links are in order at every time of the week.
func (r *report) eachMoment(p *Policy, f *value[fileSpec]) {
	if !f.ok() {
		return
	}
	p.file, p.times.zone = &file{&f.v, r.lines}, hostZone()
	if f.v.TimeZone.ok() {
		p.times.zone = f.v.TimeZone.v.Location
	}
	p.times.windows = r.windows(&f.v)
	if len(r.errors) > 0 {
		return // what else is wrong would follow from it
	}
	checked := map[string]bool{"": true}
	for day := range time.Weekday(7) {
		for _, minute := range p.times.bounds() {
			at := time.Date(2026, time.February, 1+int(day), minute/60, minute%60, 0, 0, time.UTC) // a Sunday and so on
			state := (&weekly{time.UTC, p.times.windows}).state(at)
			if !checked[state] {
				checked[state] = true
				r.moment = moment{on: true, day: day, time: minute}
				r.places(new(Policy), &f.v)
			}
		}
	}
	r.moment = moment{}
}

// windows are those of all schedules of the file, without those that say nothing.
func (r *report) windows(f *fileSpec) (all []window) {
	add := func(d *some[days], from, to *value[timeOfDay]) {
		if from.ok() && from.v == minutesOfDay {
			r.wrong(from.at.place, `write "00:00" and the day after`, "a day has no more after 24:00")
		}
		if from.ok() && to.ok() && from.v == to.v {
			r.wrong(to.at.place, "leave out both for the whole day", "it ends when it begins")
		}
		all = append(all, windowOf(d, from, to))
	}
	var classes func(*list[classSpec])
	classes = func(l *list[classSpec]) {
		for i := range l.all {
			c := &l.all[i].v
			for j := range c.Schedule.all {
				e := &c.Schedule.all[j]
				if e.ok() && !e.v.Rate.given() && !e.v.Ceil.given() && !e.v.Burst.given() {
					r.wrong(e.at.place, "add rate, ceil or burst", "an entry of the schedule of class %q changes nothing", c.title())
				}
				add(&e.v.Days, &e.v.From, &e.v.To)
			}
			classes(&c.Classes)
		}
	}
	classes(&f.Classes)
	for _, l := range f.links() {
		for j := range l.v.Schedule.all {
			e := &l.v.Schedule.all[j].v
			add(&e.Days, &e.From, &e.To)
		}
	}
	return all
}

// links are the rates of all links of the file.
func (f *fileSpec) links() (all []*linkRate) {
	for i := range f.Interfaces.all {
		all = append(all, &f.Interfaces.all[i].v.Egress, &f.Interfaces.all[i].v.Ingress)
	}
	for i := range f.Relays.all {
		all = append(all, &f.Relays.all[i].v.Upload, &f.Relays.all[i].v.Download)
	}
	return all
}
