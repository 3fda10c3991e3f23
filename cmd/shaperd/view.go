package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"time"

	"shaperd/configs"
	"shaperd/internal/daemon"
	"shaperd/netlink"
	"shaperd/shaper"
)

// A policyView is a policy as check and run show it. Its JSON is for programs:
// rates are numbers of bits per second, sizes of bytes, 0 is no limit.
type policyView struct {
	scheduleView
	Relays          []relayView     `json:"relays"`
	Interfaces      []interfaceView `json:"interfaces,omitempty"`
	Metrics         string          `json:"metrics,omitempty"`
	Admission       []admittingView `json:"admission"`                  // what programs can ask for
	AdmissionListen string          `json:"admission_listen,omitempty"` // besides the control socket
	Shared          *sharedView     `json:"shared,omitempty"`           // nil where nothing is

}

// An admittingView is a class that programs can ask for.
type admittingView struct {
	Class    string `json:"class"`
	Rate     int64  `json:"rate,omitempty"`     // bits per second, of unit bytes
	PerHour  int64  `json:"per_hour,omitempty"` // of unit requests
	Burst    int64  `json:"burst"`              // bytes, or requests
	AllHosts bool   `json:"shared"`             // one bucket for all hosts
}

// A sharedView is with whom classes are shared.
type sharedView struct {
	Cluster  string   `json:"cluster"`
	Redis    []string `json:"redis"`
	OnOutage string   `json:"on_outage"`
	Classes  []string `json:"classes"`
}

type interfaceView struct {
	Name  string     `json:"name"` // or a pattern
	Links []linkView `json:"links"`
}

type relayView struct {
	Name     string     `json:"name"`
	Kind     string     `json:"kind"`
	Listen   []string   `json:"listen"`
	Upstream []string   `json:"upstream,omitempty"`
	Login    bool       `json:"login"` // clients must log in
	Links    []linkView `json:"links"`

	alike bool // upload and download are, at all times
}

type linkView struct {
	Name    string      `json:"name"`
	Rate    int64       `json:"rate"`
	Classes []classView `json:"classes"`

	mtu int // that derived bursts are for; 0 where they do not depend on it
}

type classView struct {
	Name         string `json:"name"`
	Parent       string `json:"parent,omitempty"`
	depth        int
	Rate         int64  `json:"rate"`
	Ceil         int64  `json:"ceil"`
	Burst        int64  `json:"burst,omitempty"` // in force, of an interface with an MTU of 1500; only of a class without children
	BurstDerived bool   `json:"burst_derived"`   // from the rates: the policy gives none
	Priority     uint8  `json:"priority"`
	Mode         string `json:"mode"`
	Default      bool   `json:"default"`
}

// usualMTU is what derived bursts of interfaces are shown for: a policy says
// nothing of packets, and means hosts where its interfaces differ.
const usualMTU = 1500

// viewPolicy makes the view of a policy, with the rates that are in force at
// now. Relays listen where listen says, by relay; where the policy says if it is
// nil. What a datapath would refuse at some time of the week is an error.
func viewPolicy(file *configs.Policy, listen [][]netip.AddrPort, now time.Time) (*policyView, error) {
	times, err := week(file, now)
	if err != nil {
		return nil, err
	}
	v, err := viewMoment(times[0].policy, listen)
	if err != nil {
		return nil, err
	}
	for _, m := range times[1:] {
		later, err := viewMoment(m.policy, listen)
		if err != nil {
			return nil, describe(err, func(e error) error { return fmt.Errorf("%w (from %s on)", e, m.at.Format(clock)) })
		}
		for i := range v.Relays {
			v.Relays[i].alike = v.Relays[i].alike && later.Relays[i].alike
		}
	}
	v.scheduleView = viewSchedule(times, daemon.RateChanges)
	return v, nil
}

// viewMoment makes the view of a policy as it is at one time.
func viewMoment(p *configs.Policy, listen [][]netip.AddrPort) (*policyView, error) {
	var errs []error
	v := &policyView{Relays: []relayView{}}
	if p.Metrics.IsValid() {
		v.Metrics = p.Metrics.String()
	}
	v.viewAdmission(p)
	for i, r := range p.Relays {
		rv := relayView{Name: r.Name, Kind: r.Kind.String(), Upstream: r.Upstream, Login: len(r.Users) > 0}
		addrs := r.Listen
		if listen != nil {
			addrs = listen[i]
		}
		for _, a := range addrs {
			rv.Listen = append(rv.Listen, a.String())
		}
		for _, link := range []shaper.Link{r.Upload, r.Download} {
			tree, err := shaper.NewTree(link, 0) // knows the bursts in force
			if err != nil {
				return nil, err
			}
			bursts := map[string]shaper.Size{}
			for _, c := range tree.Stats(0).Classes {
				bursts[c.Name] = c.Burst
			}
			rv.Links = append(rv.Links, viewLink(link, bursts, 0))
		}
		up, down := rv.Links[0], rv.Links[1]
		down.Name = up.Name
		rv.alike = reflect.DeepEqual(up, down)
		v.Relays = append(v.Relays, rv)
	}
	for _, i := range p.Interfaces {
		iv := interfaceView{Name: i.Name}
		for _, link := range []shaper.Link{i.Egress, i.Ingress} {
			if link.Rate == 0 {
				continue
			}
			bursts, err := netlink.Bursts(&link, usualMTU)
			if err != nil {
				errs = append(errs, describe(err, func(e error) error { return fmt.Errorf("%s:%d: %w", p.Name, i.Line, e) }))
			}
			iv.Links = append(iv.Links, viewLink(link, bursts, usualMTU))
		}
		v.Interfaces = append(v.Interfaces, iv)
	}
	return v, errors.Join(errs...)
}

// describe has with add something to each reason of an error.
func describe(err error, with func(error) error) error {
	reasons := daemon.Reasons(err)
	for i, e := range reasons {
		reasons[i] = with(e)
	}
	return errors.Join(reasons...)
}

// viewLink makes the view of a link on which these bursts are in force.
func viewLink(l shaper.Link, bursts map[string]shaper.Size, mtu int) linkView {
	v := linkView{Name: l.Name, Rate: int64(l.Rate), Classes: []classView{}, mtu: mtu}
	var walk func(parent string, depth int, classes []shaper.Class)
	walk = func(parent string, depth int, classes []shaper.Class) {
		for _, c := range classes {
			v.Classes = append(v.Classes, classView{
				Name: c.Name, Parent: parent, depth: depth, Rate: int64(c.Rate), Ceil: int64(c.Ceil),
				Burst: int64(bursts[c.Name]), BurstDerived: c.Leaf() && c.Burst == 0,
				Priority: c.Priority, Mode: c.Mode.String(), Default: c.Default,
			})
			walk(c.Name, depth+1, c.Children)
		}
	}
	walk("", 0, l.Classes)
	return v
}

// print writes the view for people.
func (v *policyView) print(w io.Writer, s style) {
	v.printAt(w)
	if !v.At.IsZero() {
		fmt.Fprintln(w)
	}
	for i, r := range v.Relays {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s (%s) listens on %s", s.bold("relay "+r.Name), r.Kind, strings.Join(r.Listen, ", "))
		if len(r.Upstream) > 0 {
			fmt.Fprintf(w, ", connects to %s", strings.Join(r.Upstream, ", else "))
		}
		fmt.Fprintln(w)
		up := r.Links[0]
		if r.alike {
			up.Name += " and download"
			up.print(w, s)
			continue
		}
		up.print(w, s)
		r.Links[1].print(w, s)
	}
	for i, iface := range v.Interfaces {
		if i > 0 || len(v.Relays) > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s is shaped by the kernel\n", s.bold("interface "+iface.Name))
		for _, l := range iface.Links {
			l.print(w, s)
		}
	}
	v.printAdmission(w, s)
	v.printNext(w, s)
}

func (l linkView) print(w io.Writer, s style) {
	fmt.Fprintf(w, "\n  %s, %s\n", s.bold(l.Name), rateText(l.Rate))
	rows := [][]string{{"CLASS", "RATE", "CEIL", "BURST", "PRIORITY", "MODE", ""}}
	derived := false
	for _, c := range l.Classes {
		burst, note := "", ""
		if c.Burst > 0 {
			burst = shaper.Size(c.Burst).String()
		}
		if c.BurstDerived {
			burst += " *"
			derived = true
		}
		if c.Default {
			note = "takes the rest"
		}
		rows = append(rows, []string{
			strings.Repeat("  ", c.depth) + c.Name, shaper.Rate(c.Rate).String(), rateText(c.Ceil), burst,
			strconv.Itoa(int(c.Priority)), c.Mode, note,
		})
	}
	if len(l.Classes) > 0 {
		table(w, s, "  ", rows)
	}
	switch {
	case derived && l.mtu > 0:
		fmt.Fprintf(w, "  %s\n", s.faint(fmt.Sprintf("* derived from the rate, for an MTU of %d", l.mtu)))
	case derived:
		fmt.Fprintf(w, "  %s\n", s.faint("* derived from the rate"))
	}
}

// rateText writes a rate of which 0 is no limit.
func rateText(bitsPerSecond int64) string {
	if bitsPerSecond == 0 {
		return "unlimited"
	}
	return shaper.Rate(bitsPerSecond).String()
}
