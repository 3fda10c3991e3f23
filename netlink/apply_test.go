package netlink

import (
	"testing"

	"shaperd/classify"
	"shaperd/shaper"
)

// office has a class of each kind.
func office(rate shaper.Rate) shaper.Link {
	return shaper.Link{Name: "office", Rate: rate, Classes: []shaper.Class{
		{Name: "voice", Rate: rate / 10, Ceil: rate / 2, Priority: 0},
		{Name: "web", Rate: rate / 4, Ceil: rate, Priority: 2, Children: nil},
		{Name: "staff", Rate: rate / 4, Ceil: rate, Children: []shaper.Class{
			{Name: "mail", Rate: rate / 10, Ceil: rate / 2, Priority: 3},
			{Name: "files", Rate: rate / 10, Ceil: rate / 10, Priority: 3},
		}},
		{Name: "backup", Rate: rate / 20, Ceil: rate / 20, Mode: shaper.Leaky, Priority: 3},
		{Name: "rest", Rate: rate / 100, Ceil: rate, Priority: 7, Default: true},
	}}
}

var officeRules = classify.Rules{
	List: []classify.Rule{
		{Class: "voice", Match: classify.Match{DSCP: []classify.DSCP{46}}},
		{Class: "web", Match: classify.Match{Proto: []classify.Protocol{classify.TCP}, Port: []classify.PortRange{{First: 80, Last: 80}, {First: 443, Last: 443}}}},
	},
	Default: "rest",
}

func TestApply(t *testing.T) {
	w := newWorld(t, "eth0")
	c := Config{Rules: officeRules, Interfaces: []Interface{{Name: "eth0", Egress: office(100 * shaper.Mbit), Ingress: office(400 * shaper.Mbit)}}}
	p := w.apply(c)
	for i := range p.Changes {
		t.Log(p.Changes[i].String())
		t.Log(p.Changes[i].Command)
	}
	t.Log(w.run("tc -s qdisc show; tc class show dev eth0; tc filter show dev eth0 ingress"))
	c.Interfaces[0].Egress.Classes[0].Rate /= 2
	p = w.apply(c)
	for i := range p.Changes {
		t.Log(p.Changes[i].String())
	}
	q, err := w.Clear()
	if err != nil {
		t.Fatal(err)
	}
	for i := range q.Changes {
		t.Log(q.Changes[i].String())
	}
	t.Log(w.run("tc qdisc show; ip link show"))
}
