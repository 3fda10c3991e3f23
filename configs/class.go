package configs

import (
	"shaperd/classify"
	"shaperd/shaper"
)

const (
	// maxNesting leaves one of HTB's 8 levels to the link.
	maxNesting = 7
	// defaultPriority is that of a class that gives none.
	defaultPriority = 3
	// defaultClass is what the class of a policy without classes is called.
	defaultClass = "default"
)

// classes checks what holds of the classes on any link, and adds the rules and
// marks to the policy.
func (r *report) classes(p *Policy, all *list[classSpec]) {
	p.Marks = map[string]Mark{}
	if !all.given() {
		p.Rules.Default = defaultClass
		p.Marks[defaultClass] = Mark{Priority: defaultPriority}
		return
	}
	w := classWalk{report: r, policy: p, named: map[string]int{}}
	w.walk(all, 1)
	if w.first == nil && !w.unsure && !all.wrong {
		r.wrong(all.at.key, "add default: true to the class that takes what nothing matches", "no class is the default")
	}
	r.shadows(&p.Rules, w.entries)
}

// A classWalk goes over the classes in the order of the file.
type classWalk struct {
	*report
	policy  *Policy
	entries []*node        // that the policy's rules are from
	named   map[string]int // the line of each name
	first   *classSpec     // the default
	unsure  bool           // some class has what cannot be read, so it may be the default
}

func (w *classWalk) walk(all *list[classSpec], depth int) {
	for i := range all.all {
		if !all.all[i].ok() {
			w.unsure = true
			continue
		}
		c := &all.all[i].v
		unique(w.report, "class", &c.Name, w.named)
		w.units(c)
		switch {
		case c.ofRequests():
			w.requests(c, all.all[i].at, depth)
		case !c.Classes.given():
			w.leaf(c, all.all[i].at)
		case depth == maxNesting:
			w.wrong(c.Classes.at.key, "use fewer levels", "classes are nested more than %d deep", maxNesting)
			w.unsure = true
		default:
			w.inner(c)
			w.walk(&c.Classes, depth+1)
		}
	}
}

// inner checks a class that has classes.
func (w *classWalk) inner(c *classSpec) {
	for key, at := range map[string]*node{
		"match": c.Match.at, "mode": c.Mode.at, "priority": c.Priority.at, "default": c.Default.at, "mark": c.Mark.at, "fwmark": c.Fwmark.at,
	} {
		if at != nil {
			w.wrong(at.key, "move it to the classes inside", "class %q has classes inside and no traffic of its own, so no %s", c.title(), key)
		}
	}
}

// leaf checks a class that carries traffic.
func (w *classWalk) leaf(c *classSpec, at *node) {
	w.unsure = w.unsure || c.Default.wrong
	switch {
	case c.isDefault() && w.first != nil:
		w.wrong(c.Default.at.place, "remove it from one of them", "a second default class: the first is %q on line %d", w.first.title(), w.first.Default.at.line)
	case c.isDefault():
		w.first = c
		w.policy.Rules.Default = c.title()
	case !c.Match.given() && !c.Default.wrong && !c.Unit.wrong:
		w.unsure = true // it may be meant to be the default
		w.wrong(at.place, "add match, or default: true", "class %q can never send: no rule leads to it", c.title())
	}
	if c.Mode.ok() && c.Mode.v.Mode == shaper.Leaky && c.Burst.given() {
		w.wrong(c.Burst.at.key, "remove it, or write mode: token", "class %q is leaky, which never bursts", c.title())
	}
	mark := Mark{Priority: c.priority(), Fwmark: uint32(c.Fwmark.v.fwmark)}
	if c.Mark.ok() {
		d := c.Mark.v.DSCP
		mark.DSCP = &d
	}
	w.policy.Marks[c.title()] = mark
	for i := range c.Match.all {
		if m := &c.Match.all[i]; m.ok() {
			if rule, ok := w.rule(m); ok {
				w.policy.Rules.List = append(w.policy.Rules.List, classify.Rule{Class: c.title(), Match: rule})
				w.entries = append(w.entries, m.at)
				w.policy.RuleLines = append(w.policy.RuleLines, m.at.line)
			}
		}
	}
}

// title is the class's name, also in messages about a class without one.
func (c *classSpec) title() string {
	if !c.Name.ok() {
		return "?"
	}
	return string(c.Name.v)
}

func (c *classSpec) priority() uint8 {
	if !c.Priority.ok() {
		return defaultPriority
	}
	return uint8(c.Priority.v)
}

func (c *classSpec) isDefault() bool { return c.Default.ok() && bool(c.Default.v) }
