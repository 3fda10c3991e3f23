package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"shaperd/configs"
	"shaperd/conn"
	"shaperd/internal/admin"
	"shaperd/netlink"
	"shaperd/shaper"
)

// A view is what is in force, for any goroutine. It is never changed: another
// takes its place.
type view struct {
	file      *configs.Policy // as read
	policy    *configs.Policy // as it is now
	relays    []viewed
	drained   []viewed // by hand; they may have ended
	loops     []viewed // all that may have sessions
	metrics   string   // their address; "" for none
	admits    string   // where programs ask for admission; "" for nowhere
	overrides []admin.Override
	next      *admin.Upcoming
	loaded    time.Time
	reloads   admin.Reloads
}

type viewed struct {
	*conn.Relay
	name string
}

func (v viewed) String() string { return fmt.Sprintf("relay %q", v.name) }

// all are the relays that may have sessions.
func (v *view) all() []viewed {
	if v == nil {
		return nil
	}
	return slices.Concat(v.relays, v.drained)
}

// publish makes what is in force the view.
func (d *daemon) publish() {
	v := &view{
		file: d.file.Policy, policy: d.policy, overrides: d.overrides, loaded: d.loaded, reloads: d.reloads, next: d.upcoming(),
	}
	if d.endpoint != nil {
		v.metrics = d.endpoint.Addr().String()
	}
	if d.admitter != nil {
		v.admits = d.admitter.Addr().String()
	}
	for _, r := range d.relays {
		v.relays = append(v.relays, viewed{r.Relay, r.config.Name})
	}
	for _, r := range d.drained {
		v.drained = append(v.drained, viewed{r.Relay, r.config.Name})
	}
	for _, r := range slices.Concat(d.relays, d.retired()) {
		v.loops = append(v.loops, viewed{r.Relay, r.config.Name})
	}
	d.view.Store(v)
}

// status is what systemctl status shows. Any goroutine may call it; it blocks
// while a datapath does not respond.
func (d *daemon) status() string {
	v := d.view.Load()
	parts := []string{"policy " + v.policy.Name}
	sessions := 0
	var relays, interfaces []string
	for _, r := range v.relays {
		relays = append(relays, r.name)
		sessions += r.Stats().Sessions
	}
	if len(relays) > 0 {
		parts = append(parts, fmt.Sprintf("relays: %s (%d sessions)", strings.Join(relays, ", "), sessions))
	}
	for _, i := range d.kernelSnapshot().Interfaces {
		switch {
		case !i.Present:
			interfaces = append(interfaces, i.Name+" (awaited)")
		case i.Drift:
			interfaces = append(interfaces, i.Name+" (being repaired)")
		default:
			interfaces = append(interfaces, i.Name)
		}
	}
	if len(interfaces) > 0 {
		parts = append(parts, "interfaces: "+strings.Join(interfaces, ", "))
	}
	if v.reloads.LastError != nil {
		parts = append(parts, "the last reload was refused, see the log")
	}
	return strings.Join(parts, "; ")
}

// upcoming says what the next change of rates will be.
func (d *daemon) upcoming() *admin.Upcoming {
	at := d.nextChange()
	if at.IsZero() {
		return nil
	}
	var left []admin.Override
	for _, o := range d.overrides {
		if !over(o, at) {
			left = append(left, o)
		}
	}
	out := &admin.Upcoming{At: at.In(d.file.Zone()), Changes: []admin.RateChange{}}
	if then, err := d.file.At(at, asFile(left)); err == nil {
		out.Changes = RateChanges(d.policy, then)
	}
	return out
}

// RateChanges compares the rates of two policies that have the same links.
func RateChanges(before, after *configs.Policy) []admin.RateChange {
	all := []admin.RateChange{}
	old := map[[2]string]admin.Rates{}
	eachRate(before, func(link, class string, r admin.Rates) { old[[2]string{link, class}] = r })
	eachRate(after, func(link, class string, r admin.Rates) {
		if from := old[[2]string{link, class}]; from != r {
			all = append(all, admin.RateChange{Link: link, Class: class, From: from, To: r})
		}
	})
	return all
}

// eachRate calls f for every link, with class "", and each of its classes.
func eachRate(p *configs.Policy, f func(link, class string, r admin.Rates)) {
	for _, l := range p.Links() {
		f(l.Name, "", admin.Rates{Rate: int64(l.Rate)})
		var walk func([]shaper.Class)
		walk = func(classes []shaper.Class) {
			for i := range classes {
				c := &classes[i]
				f(l.Name, c.Name, admin.Rates{Rate: int64(c.Rate), Ceil: int64(c.Ceil), Burst: int64(c.Burst)})
				walk(c.Children)
			}
		}
		walk(l.Classes)
	}
	for _, c := range p.Admission.Classes { // the others are on links too
		if c.PerHour > 0 {
			f("admission", c.Name, admin.Rates{PerHour: c.PerHour, Burst: c.Requests})
		}
	}
}

// Status says how everything is doing.
func (c control) Status(context.Context) (*admin.Status, error) {
	v := c.view.Load()
	out := &admin.Status{
		Version: c.Version, Revision: c.Revision, PID: os.Getpid(), Started: c.started, State: "ready", LogLevel: "info",
		Policy: v.policy.Name, Loaded: v.loaded, TimeZone: v.file.Zone().String(), Reloads: v.reloads, Next: v.next,
		Links: []admin.Link{}, Relays: []admin.Relay{}, Interfaces: []admin.Interface{}, Overrides: v.overrides, Metrics: v.metrics, Admits: v.admits,
	}
	if out.Overrides == nil {
		out.Overrides = []admin.Override{}
	}
	serves := "serving"
	if phase(c.phase.Load()) == draining {
		out.State, serves = "draining", "draining"
	}
	if c.Level != nil {
		out.LogLevel = strings.ToLower(c.Level.Level().String())
	}
	out.Shared, out.Admission = c.sharingStatus(), c.admitted(v)
	if k := c.shaping.Load(); k != nil {
		s, err := k.Stats()
		if err != nil && !errors.Is(err, os.ErrClosed) { // else it ends just now
			return nil, err
		}
		for i := range s.Links {
			out.Links = append(out.Links, kernelLink(&s.Links[i]))
		}
		for _, i := range s.Interfaces {
			out.Interfaces = append(out.Interfaces, admin.Interface(i))
		}
	}
	for _, r := range v.relays {
		s := r.Stats()
		out.Links = append(out.Links, relayLink(&s.Upload), relayLink(&s.Download))
		out.Relays = append(out.Relays, relayStatus(&s, r, serves))
	}
	for _, r := range v.drained {
		s := r.Stats()
		out.Links = append(out.Links, relayLink(&s.Upload), relayLink(&s.Download))
		state := "draining"
		if s.Sessions == 0 {
			state = "drained"
		}
		out.Relays = append(out.Relays, relayStatus(&s, r, state))
	}
	return out, nil
}

func relayStatus(s *conn.Stats, r viewed, state string) admin.Relay {
	m := relayMetrics(*s)
	out := admin.Relay{
		Name: r.name, State: state, Listen: []string{}, Sessions: s.Sessions, Accepted: s.Accepted, Connected: s.Connected,
		Refused: m.Refused, Failures: m.UpstreamFailures,
	}
	for _, a := range r.Addrs() {
		out.Listen = append(out.Listen, a.String())
	}
	return out
}

func relayLink(l *shaper.LinkStats) admin.Link {
	out := admin.Link{Name: l.Name, Datapath: "relay", Rate: int64(l.Rate), Achieved: l.Achieved, Sent: l.Bytes, Classes: []admin.Class{}}
	for i := range l.Classes {
		c := &l.Classes[i]
		class := admin.Class{
			Name: c.Name, Rate: int64(c.Rate), Ceil: int64(c.Ceil), Burst: int64(c.Burst), Mode: c.Mode.String(),
			Achieved: c.Achieved, Sent: c.Bytes, Borrowed: c.Borrowed, Sessions: c.Queues, Backlogged: c.Backlogged,
			WaitSeconds: c.Wait.Sum.Seconds(),
		}
		for _, n := range c.Wait.Counts {
			class.Waits += n
		}
		out.Classes = append(out.Classes, class)
	}
	return out
}

func kernelLink(l *netlink.LinkStats) admin.Link {
	applied := int64(l.Applied)
	out := admin.Link{
		Name: l.Name, Datapath: "kernel", Rate: int64(l.Rate), Applied: &applied, Achieved: l.Achieved, Sent: l.Bytes,
		Dropped: l.Drops, Unshaped: l.Unshaped, Classes: []admin.Class{},
	}
	for i := range l.Classes {
		c := &l.Classes[i]
		out.Classes = append(out.Classes, admin.Class{
			Name: c.Name, Rate: int64(c.Rate), Ceil: int64(c.Ceil), Burst: int64(c.Burst), Achieved: c.Achieved, Sent: c.Bytes,
			Borrowed: c.BorrowedPackets, Packets: c.Packets, Dropped: c.Drops, Backlog: c.BacklogBytes,
		})
	}
	return out
}
