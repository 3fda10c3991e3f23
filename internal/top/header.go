package top

import (
	"errors"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"shaperd/internal/admin"
	"shaperd/internal/figures"
)

// header is how the daemon is doing: a line or more.
func (m *Model) header() []string {
	clock := ""
	if !m.now.IsZero() {
		clock = m.now.Local().Format("15:04:05")
	}
	if m.status == nil {
		if m.away == nil {
			return []string{m.line(m.width, false, span{"asking the daemon" + m.cut, plain})}
		}
		return m.waiting(clock)
	}
	s := m.status
	state := span{s.State, good}
	if s.State != "ready" {
		state.kind = warn
	}
	var lines []string
	if m.away != nil {
		lines = m.waiting(clock)
	} else {
		left := []span{state, {"  " + s.Policy, strong}, {"  for " + figures.Age(m.now.Sub(s.Started)), plain}}
		right := clock
		if m.paused {
			left = append(left, span{"  paused", warn})
		}
		if m.filter != "" && !m.typing {
			right = "filter: " + m.filter + "   " + right
		}
		if m.list == nil && m.order != byPolicy {
			right = "sort: " + m.order.String() + "   " + right
		}
		lines = []string{m.spread(m.width, left, right)}
	}
	for _, warning := range warnings(s) {
		lines = append(lines, m.line(m.width, false, span{warning, warn}))
	}
	notes := m.notes(s)
	if one := strings.Join(notes, m.between); lipgloss.Width(one) <= m.width && len(notes) > 0 {
		notes = []string{one}
	}
	for _, note := range notes {
		lines = append(lines, m.line(m.width, false, span{note, plain}))
	}
	return lines
}

// waiting says that the daemon does not answer, and why.
func (m *Model) waiting(clock string) []string {
	left := []span{{"waiting for the daemon", warn}, {"  for " + figures.Age(m.now.Sub(m.since)), plain}}
	return []string{m.spread(m.width, left, clock), m.line(m.width, false, span{reason(m.away), faint})}
}

// reason is the first line of an error, without what to do about it: this view
// waits, and who reads it knows the socket.
func reason(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			break
		}
		err = inner
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	text, _, _ = strings.Cut(text, " (start one")
	return text
}

// warnings are what somebody should look at.
func warnings(s *admin.Status) (all []string) {
	if n := len(s.Reloads.LastError); n > 0 {
		first, _, _ := strings.Cut(s.Reloads.LastError[0], "\n")
		all = append(all, "the last reload was refused, the policy before is in force: "+first)
	}
	if s.Shared != nil && s.Shared.Problem != "" {
		all = append(all, s.Shared.Problem+"; on_outage counts: "+s.Shared.OnOutage)
	}
	for _, i := range s.Interfaces {
		switch {
		case !i.Present:
			all = append(all, "there is no interface "+i.Name+": it is shaped once it comes")
		case i.Drift:
			all = append(all, i.Name+" is not as the policy wants it: "+i.Problem)
		}
	}
	for _, r := range s.Relays {
		if r.State != "serving" {
			all = append(all, "relay "+r.Name+" is "+r.State+" with "+plural(r.Sessions, "session"))
		}
	}
	if len(all) > 3 { // the rest of the terminal is for the links
		all = append(all[:2], "and more: see shaperd status")
	}
	return all
}

// notes are what is not as the file says, and what will change.
func (m *Model) notes(s *admin.Status) (all []string) {
	if n := len(s.Overrides); n > 0 {
		o := s.Overrides[n-1] // the newest; most have one
		text := "set by hand: " + strings.TrimSpace(o.Class+" "+o.Link) + amounts(o)
		if o.Until != nil {
			text += " until " + when(*o.Until, m.now)
		}
		if n > 1 {
			text += " and " + plural(n-1, "other")
		}
		all = append(all, text)
	}
	if s.Next != nil {
		text := "next change " + day(s.Next.At, m.now)
		if n := len(s.Next.Changes); n > 0 {
			c := s.Next.Changes[0]
			name := c.Class
			if name == "" {
				name = c.Link
			}
			from, to := configured(c.From.Rate), configured(c.To.Rate)
			if c.From.Rate == c.To.Rate {
				from, to = "ceil "+configured(c.From.Ceil), configured(c.To.Ceil)
			}
			text += ": " + name + " " + from + " to " + to
			if n > 1 {
				text += " and " + plural(n-1, "other")
			}
		}
		all = append(all, text)
	}
	return all
}

func amounts(o admin.Override) (text string) {
	for _, a := range [][2]string{{"rate", o.Rate}, {"ceil", o.Ceil}, {"burst", o.Burst}} {
		if a[1] != "" {
			text += " " + a[0] + " " + a[1]
		}
	}
	return text
}

// when writes a time as shortly as it is clear.
func when(t, now time.Time) string {
	if t.Sub(now) < 20*time.Hour {
		return t.Local().Format("15:04:05")
	}
	return day(t.Local(), now)
}

// day writes a time with the day, so that it is clear which is meant.
func day(t, now time.Time) string {
	if t.Sub(now) < 6*24*time.Hour {
		return t.Format("Mon 15:04")
	}
	return t.Format("Jan 2 15:04")
}
