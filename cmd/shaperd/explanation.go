package main

import (
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"time"

	"shaperd/classify"
	"shaperd/configs"
	"shaperd/internal/admin"
	"shaperd/shaper"
)

// An explanation says which class takes a flow, and why. Its JSON is for
// programs: rates are numbers of bits per second, 0 is no limit.
type explanation struct {
	Flow   flowView    `json:"flow"`
	Class  string      `json:"class"`
	Rule   int         `json:"rule"` // that took it, from 1 in the file's order; 0 if none did
	Line   int         `json:"line,omitempty"`
	Match  string      `json:"match,omitempty"`
	Before []missView  `json:"before"` // the rules that were asked first
	Links  []shareView `json:"links"`
	Mark   markView    `json:"mark"`
	scheduleView

	flow classify.Flow
}

type flowView struct {
	Proto  string `json:"proto"`
	Src    string `json:"src,omitempty"`
	Dst    string `json:"dst,omitempty"`
	DSCP   string `json:"dscp"`
	Fwmark uint32 `json:"fwmark"`
}

// A missView is a rule that did not match.
type missView struct {
	Rule  int    `json:"rule"`
	Line  int    `json:"line"`
	Class string `json:"class"`
	Match string `json:"match"`
	Has   string `json:"has"` // what the flow has instead
}

// A shareView is what the class has of one link.
type shareView struct {
	Link string `json:"link"`
	Rate int64  `json:"rate"`
	Ceil int64  `json:"ceil"` // the least on the way to the link
}

// A markView is what the relay sets on the class's sockets.
type markView struct {
	DSCP     string `json:"dscp,omitempty"`
	Fwmark   uint32 `json:"fwmark,omitempty"`
	Priority uint8  `json:"priority"`
}

// explain makes the explanation of a flow, with the rates that are in force at now.
func explain(file *configs.Policy, f classify.Flow, now time.Time) (*explanation, error) {
	times, err := week(file, now)
	if err != nil {
		return nil, err
	}
	p := times[0].policy
	classifier, err := classify.Compile(p.Rules)
	if err != nil {
		return nil, err
	}
	class, rule := classifier.Classify(&f)
	e := &explanation{
		Flow: viewFlow(f), Class: class, Rule: rule + 1, Before: []missView{}, Links: shares(p, class), flow: f,
	}
	e.scheduleView = viewSchedule(times, func(before, after *configs.Policy) []admin.RateChange { return shareChanges(before, after, class) })
	asked := p.Rules.List
	if rule >= 0 {
		asked = asked[:rule]
		e.Match, e.Line = p.Rules.List[rule].Match.String(), p.RuleLines[rule]
	}
	for i, r := range asked {
		e.Before = append(e.Before, missView{i + 1, p.RuleLines[i], r.Class, r.Match.String(), r.Match.Mismatch(&f)})
	}
	m := p.Marks[class]
	e.Mark = markView{Fwmark: m.Fwmark, Priority: m.Priority}
	if m.DSCP != nil {
		e.Mark.DSCP = m.DSCP.String()
	}
	return e, nil
}

// links are all that the policy has.
func links(p *configs.Policy) (all []shaper.Link) {
	for _, r := range p.Relays {
		all = append(all, r.Upload, r.Download)
	}
	for _, i := range p.Interfaces {
		for _, l := range []shaper.Link{i.Egress, i.Ingress} {
			if l.Rate > 0 {
				all = append(all, l)
			}
		}
	}
	return all
}

// shares are what the class has of each link.
func shares(p *configs.Policy, class string) []shareView {
	all := []shareView{}
	for _, l := range links(p) {
		if rate, ceil, ok := share(l.Classes, class, l.Rate); ok {
			all = append(all, shareView{l.Name, int64(rate), int64(ceil)})
		}
	}
	return all
}

// shareChanges compares what the class has in two policies that have the same links.
func shareChanges(before, after *configs.Policy, class string) (all []admin.RateChange) {
	then := shares(after, class)
	for i, now := range shares(before, class) {
		if then := then[i]; then != now {
			all = append(all, admin.RateChange{
				Link: now.Link, Class: class, From: admin.Rates{Rate: now.Rate, Ceil: now.Ceil}, To: admin.Rates{Rate: then.Rate, Ceil: then.Ceil},
			})
		}
	}
	return all
}

// share finds a class and returns its rate and the least ceil on its path.
func share(classes []shaper.Class, name string, ceil shaper.Rate) (shaper.Rate, shaper.Rate, bool) {
	for _, c := range classes {
		least := ceil
		if c.Ceil > 0 && (least == 0 || c.Ceil < least) {
			least = c.Ceil
		}
		if c.Name == name {
			return c.Rate, least, true
		}
		if rate, ceil, ok := share(c.Children, name, least); ok {
			return rate, ceil, true
		}
	}
	return 0, 0, false
}

// print writes the explanation for people.
func (e *explanation) print(w io.Writer) {
	s := styleOf(w)
	fmt.Fprintf(w, "flow   %s\n", e.flow)
	fmt.Fprintf(w, "class  %s\n", s.bold(e.Class))
	if e.Rule > 0 {
		fmt.Fprintf(w, "rule   line %d: %s\n", e.Line, e.Match)
	} else {
		fmt.Fprintln(w, "rule   none matches: the default class takes it")
	}
	if len(e.Before) > 0 {
		rows := [][]string{{"BEFORE, LINE", "CLASS", "MATCH", "THE FLOW HAS"}}
		for _, m := range e.Before {
			rows = append(rows, []string{strconv.Itoa(m.Line), m.Class, m.Match, m.Has})
		}
		fmt.Fprintln(w)
		table(w, s, "", rows)
	}
	if len(e.Links) > 0 {
		rows := [][]string{{"LINK", "RATE", "CEIL"}}
		for _, l := range e.Links {
			rows = append(rows, []string{l.Link, shaper.Rate(l.Rate).String(), rateText(l.Ceil)})
		}
		fmt.Fprintln(w)
		e.printAt(w)
		table(w, s, "", rows)
		e.printNext(w, s)
	}
	fmt.Fprintf(w, "\nmarks  %s\n", e.Mark)
}

func viewFlow(f classify.Flow) flowView {
	return flowView{Proto: f.Proto.String(), Src: endText(f.Src), Dst: endText(f.Dst), DSCP: f.DSCP.String(), Fwmark: f.Fwmark}
}

func (m markView) String() string {
	text := fmt.Sprintf("priority %d", m.Priority)
	if m.DSCP != "" {
		text += ", dscp " + m.DSCP
	}
	if m.Fwmark != 0 {
		text += fmt.Sprintf(", fwmark %#x", m.Fwmark)
	}
	return text
}

// endText writes what is known of an end.
func endText(a netip.AddrPort) string {
	switch {
	case !a.Addr().IsValid() && a.Port() == 0:
		return ""
	case !a.Addr().IsValid():
		return ":" + strconv.Itoa(int(a.Port()))
	case a.Port() == 0:
		return a.Addr().String()
	}
	return a.String()
}
