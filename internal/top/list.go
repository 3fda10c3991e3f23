package top

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"shaperd/internal/admin"
	"shaperd/internal/figures"
)

// mostSessions is how many sessions are asked for: more than anybody reads.
const mostSessions = 500

// A list is the open list of sessions.
type list struct {
	title    string
	reason   string // why there can be none; "" when there can
	query    admin.Query
	total    int
	sessions []admin.Session
	asked    time.Time // of the sessions; zero is not yet
	before   map[string]admin.Session
	apart    time.Duration // between before and sessions; 0 is unknown
	scroll   int
}

// newList makes the list of the sessions of a row, still without any.
func newList(s *admin.Status, r row) *list {
	l := &list{title: r.key.link, query: admin.Query{Class: r.key.class, Limit: mostSessions}}
	if r.class != nil {
		l.title = r.key.class + " on " + r.key.link
	}
	for _, relay := range s.Relays {
		if name := "relay " + relay.Name; r.link.Name == name+" upload" || r.link.Name == name+" download" {
			l.query.Relay = relay.Name
			l.title = name
			if r.class != nil {
				l.title = r.key.class + " on " + name
			}
		}
	}
	if r.link.Datapath != "relay" {
		l.reason = "the kernel knows no sessions: relays have them"
	}
	return l
}

// take takes an answer, unless another list has been opened since it was asked for.
func (l *list) take(q admin.Query, s *admin.Sessions, at time.Time) {
	if l == nil || s == nil || l.query != q {
		return
	}
	l.before, l.apart = map[string]admin.Session{}, 0
	if !l.asked.IsZero() {
		l.apart = at.Sub(l.asked)
	}
	for _, one := range l.sessions {
		l.before[one.Relay+" "+one.Client] = one
	}
	l.total, l.sessions, l.asked = s.Total, s.Sessions, at
}

// rate is how fast a session moved between the last two answers; "" is unknown.
func (l *list) rate(s *admin.Session) string {
	before, known := l.before[s.Relay+" "+s.Client]
	moved, then := s.Upload+s.Download, before.Upload+before.Download
	if !known || l.apart <= 0 || moved < then {
		return ""
	}
	return figures.Bits(float64(moved-then) * 8 / l.apart.Seconds())
}

// listHead says what the list is of, and its column titles below.
func (m *Model) listHead() []string {
	l := m.list
	note := "asking" + m.cut
	switch {
	case l.reason != "":
		note = l.reason
	case !l.asked.IsZero():
		note = plural(l.total, "session")
		if l.total > 1 {
			note += ", those that moved most first"
		}
		if l.total > len(l.sessions) {
			note += fmt.Sprintf(", %d shown", len(l.sessions))
		}
	}
	head := m.line(m.width, false, span{l.title, strong}, span{"  " + note, plain})
	if len(l.sessions) == 0 {
		return []string{"", head}
	}
	return []string{"", head, m.line(m.width, false, span{m.sessionLine([]string{"CLIENT", "UPSTREAM", "AGE", "NOW", "UP", "DOWN", "STATE"}), faint})}
}

// listBody are the lines of the sessions from the scroll on.
func (m *Model) listBody(height int) (lines []string) {
	l := m.list
	for i := l.scroll; i < len(l.sessions) && len(lines) < height; i++ {
		s := &l.sessions[i]
		age := figures.Age(time.Duration(s.AgeSeconds * float64(time.Second)))
		state := ""
		switch {
		case s.Waiting:
			state = "waits"
		case s.State == "draining":
			state = "drains"
		}
		text := m.sessionLine([]string{s.Client, s.Upstream, age, l.rate(s), figures.Bytes(s.Upload), figures.Bytes(s.Download), state})
		lines = append(lines, m.line(m.width, false, span{text, plain}))
	}
	return lines
}

// sessionLine sets the cells of a session in columns. The addresses share what
// the numbers leave; narrow terminals lose the upstream, then the age.
func (m *Model) sessionLine(cells []string) string {
	widths := []int{0, 0, 6, 8, 7, 7, 6}
	rest := m.width - 2*len(widths) - 34
	switch {
	case rest >= 24:
		widths[0] = min(rest/2, 47) // the longest address with a port
		widths[1] = min(rest-widths[0], 53)
	case rest >= 6:
		widths[0] = rest + 2
	default:
		widths[0], widths[2] = max(rest+10, 9), 0
	}
	var text strings.Builder
	for i, cell := range cells {
		if widths[i] > 0 {
			text.WriteString(m.pad(cell, widths[i], i >= 2 && i <= 5) + "  ")
		}
	}
	return strings.TrimRight(text.String(), " ")
}

// plural counts things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
