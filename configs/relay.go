package configs

import (
	"fmt"
	"strings"
	"time"
)

var defaultTimeouts = Timeouts{
	Handshake: 10 * time.Second, Connect: 10 * time.Second, Idle: time.Hour, HalfClosed: 5 * time.Minute, Drain: 30 * time.Second,
}

// relays checks the relays and adds them to the policy.
func (r *report) relays(p *Policy, f *fileSpec) {
	named := map[string]int{}
	for i := range f.Relays.all {
		entry := &f.Relays.all[i]
		if !entry.ok() {
			continue
		}
		s := &entry.v
		unique(r, "relay", &s.Name, named)
		r.relayKind(s, entry.at)
		r.percentages(s, entry.at, &f.Classes)
		title := string(s.Name.v)
		relay := Relay{
			Name: title, Kind: s.Kind.v.RelayKind, Line: entry.at.line,
			Upload:   r.link("relay "+title+" upload", &s.Upload, &f.Classes),
			Download: r.link("relay "+title+" download", &s.Download, &f.Classes),
			Limits:   s.Limits.v.values(), Timeouts: s.Timeouts.v.values(),
		}
		for _, a := range s.Listen.values() {
			relay.Listen = append(relay.Listen, a.AddrPort)
		}
		for _, u := range s.Upstream.values() {
			relay.Upstream = append(relay.Upstream, u.text)
		}
		if len(s.Users.all) > 0 {
			relay.Users = map[string]string{}
		}
		for _, u := range s.Users.all {
			relay.Users[string(u.user.v)] = string(u.password.v)
		}
		p.Relays = append(p.Relays, relay)
	}
	r.listeners(f)
}

// unique reports a name that is taken, and takes it.
func unique[T ~string](r *report, kind string, n *value[T], taken map[string]int) {
	if !n.ok() {
		return
	}
	if line := taken[string(n.v)]; line > 0 {
		r.wrong(n.at.place, "rename one, or make one of both", "a second %s %q: the first is on line %d", kind, n.v, line)
		return
	}
	taken[string(n.v)] = n.at.line
}

// relayKind checks that a relay has what its kind needs, and no more.
func (r *report) relayKind(s *relaySpec, at *node) {
	if s.Kind.wrong {
		return
	}
	if s.Kind.v.RelayKind == SOCKS5 {
		if s.Upstream.given() {
			r.wrong(s.Upstream.at.key, "remove it, or write kind: forward", "a socks5 relay has no upstream: its clients name the destination")
		}
		return
	}
	if !s.Upstream.given() {
		r.wrong(at.place, `add upstream, such as "10.0.0.5:443", or kind: socks5`, "relay %q forwards to nowhere: it has no upstream", s.Name.v)
	}
	if s.Users.given() {
		r.wrong(s.Users.at.key, "remove it, or write kind: socks5", "a forward relay has no users: nobody logs in to it")
	}
	lines := map[string]int{}
	for i := range s.Upstream.all {
		u := &s.Upstream.all[i]
		if !u.ok() {
			continue
		}
		if line := lines[u.v.text]; line > 0 {
			r.wrong(u.at.place, "remove one of them", "upstream %s is there twice, first on line %d", u.v.text, line)
		}
		lines[u.v.text] = u.at.line
	}
}

// percentages reports a relay without the rates that classes have a part of.
func (r *report) percentages(s *relaySpec, at *node, classes *list[classSpec]) {
	var missing []string
	if !s.Upload.given() {
		missing = append(missing, "upload")
	}
	if !s.Download.given() {
		missing = append(missing, "download")
	}
	if part := firstPercentage(classes); part != nil && len(missing) > 0 {
		keys := strings.Join(missing, " and ")
		r.wrong(at.place, fmt.Sprintf("add %s, or write %s on line %d as a rate", keys, part.v.text, part.at.line),
			"relay %q has no rate for %s, and classes have a percentage of it", s.Name.v, keys)
	}
}

// firstPercentage returns a share of some class that is a percentage; nil if there is none.
func firstPercentage(classes *list[classSpec]) *value[share] {
	for i := range classes.all {
		c := &classes.all[i].v
		shares := []*value[share]{&c.Rate, &c.Ceil}
		for i := range c.Schedule.all {
			t := &c.Schedule.all[i].v
			shares = append(shares, &t.Rate, &t.Ceil)
		}
		for _, s := range append(shares, firstPercentage(&c.Classes)) {
			if s != nil && s.ok() && s.v.percent > 0 {
				return s
			}
		}
	}
	return nil
}

func (l *limitsSpec) values() Limits {
	return Limits{
		PerSession: l.PerSession.v.Rate, PerSource: l.PerSource.v.Rate,
		Sessions: int(l.Sessions.v), SessionsPerSource: int(l.SessionsPerSource.v), NewPerSecond: int(l.NewPerSecond.v),
	}
}

func (t *timeoutsSpec) values() Timeouts {
	out := defaultTimeouts
	for to, v := range map[*time.Duration]*value[timeout]{
		&out.Handshake: &t.Handshake, &out.Connect: &t.Connect, &out.Idle: &t.Idle, &out.HalfClosed: &t.HalfClosed, &out.Drain: &t.Drain,
	} {
		if v.ok() {
			*to = v.v.Duration
		}
	}
	return out
}
