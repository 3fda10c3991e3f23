package main

import (
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"strconv"
	"strings"

	"shaperd/configs"
	"shaperd/shaper"
)

// A policyView is a policy as check and run show it. Its JSON is for programs:
// rates are numbers of bits per second, sizes of bytes, 0 is no limit.
type policyView struct {
	Relays     []relayView     `json:"relays"`
	Interfaces []interfaceView `json:"interfaces,omitempty"`
	Metrics    string          `json:"metrics,omitempty"`
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
}

type linkView struct {
	Name    string      `json:"name"`
	Rate    int64       `json:"rate"`
	Classes []classView `json:"classes"`
}

type classView struct {
	Name         string `json:"name"`
	Parent       string `json:"parent,omitempty"`
	depth        int
	Rate         int64  `json:"rate"`
	Ceil         int64  `json:"ceil"`
	Burst        int64  `json:"burst,omitempty"` // in force; only of a class without children
	BurstDerived bool   `json:"burst_derived"`   // from the rates: the policy gives none
	Priority     uint8  `json:"priority"`
	Mode         string `json:"mode"`
	Default      bool   `json:"default"`
}

// viewPolicy makes the view of p. Relays listen where listen says, by relay;
// where the policy says if it is nil.
func viewPolicy(p *configs.Policy, listen [][]netip.AddrPort) (*policyView, error) {
	v := &policyView{Relays: []relayView{}}
	if p.Metrics.IsValid() {
		v.Metrics = p.Metrics.String()
	}
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
			lv, err := viewLink(link)
			if err != nil {
				return nil, err
			}
			rv.Links = append(rv.Links, lv)
		}
		v.Relays = append(v.Relays, rv)
	}
	for _, i := range p.Interfaces {
		iv := interfaceView{Name: i.Name}
		for _, link := range []shaper.Link{i.Egress, i.Ingress} {
			if link.Rate == 0 {
				continue
			}
			lv, err := viewLink(link)
			if err != nil {
				return nil, err
			}
			for n := range lv.Classes { // the kernel's derived bursts depend on the interface: plan shows them
				if c := &lv.Classes[n]; c.BurstDerived {
					c.Burst, c.BurstDerived = 0, false
				}
			}
			iv.Links = append(iv.Links, lv)
		}
		v.Interfaces = append(v.Interfaces, iv)
	}
	return v, nil
}

func viewLink(l shaper.Link) (linkView, error) {
	tree, err := shaper.NewTree(l, 0) // knows the bursts in force
	if err != nil {
		return linkView{}, err
	}
	inForce := map[string]shaper.ClassStats{}
	for _, c := range tree.Stats(0).Classes {
		inForce[c.Name] = c
	}
	v := linkView{Name: l.Name, Rate: int64(l.Rate), Classes: []classView{}}
	var walk func(parent string, depth int, classes []shaper.Class)
	walk = func(parent string, depth int, classes []shaper.Class) {
		for _, c := range classes {
			v.Classes = append(v.Classes, classView{
				Name: c.Name, Parent: parent, depth: depth, Rate: int64(c.Rate), Ceil: int64(c.Ceil),
				Burst: int64(inForce[c.Name].Burst), BurstDerived: c.Leaf() && c.Burst == 0,
				Priority: c.Priority, Mode: c.Mode.String(), Default: c.Default,
			})
			walk(c.Name, depth+1, c.Children)
		}
	}
	walk("", 0, l.Classes)
	return v, nil
}

// print writes the view for people.
func (v *policyView) print(w io.Writer, s style) {
	for i, r := range v.Relays {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s (%s) listens on %s", s.bold("relay "+r.Name), r.Kind, strings.Join(r.Listen, ", "))
		if len(r.Upstream) > 0 {
			fmt.Fprintf(w, ", connects to %s", strings.Join(r.Upstream, ", else "))
		}
		fmt.Fprintln(w)
		up, down := r.Links[0], r.Links[1]
		down.Name = up.Name
		if reflect.DeepEqual(up, down) {
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
	if derived {
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
