package configs

import (
	"fmt"
	"math"
	"strings"

	"shaperd/shaper"
)

const (
	// minBurst is a full Ethernet packet: a smaller burst would hold it up for ever in the kernel.
	minBurst shaper.Size = 1514
	maxBurst             = shaper.GiB
	// A burst may be worth longBurst seconds of the ceil, and always anyBurst, which is what one offloaded packet may have.
	longBurst = 10
	anyBurst  = 64 * shaper.KiB
)

// A linkWalk puts the classes on one link, whose rate gives their percentages a
// meaning.
type linkWalk struct {
	*report
	link shaper.Link
}

// link makes a link of the classes, as it is at the report's moment. Whole is
// where the link's own rate is written; not given, the link is unlimited.
func (r *report) link(name string, whole *linkRate, classes *list[classSpec]) shaper.Link {
	rate, classes := r.moment.rate(name, whole), r.moment.classes(name, classes)
	w := linkWalk{report: r, link: shaper.Link{Name: name, Rate: rate.v.Rate}}
	if rate.wrong || w.link.Rate == 0 && firstPercentage(classes) != nil { // reported
		return w.link
	}
	if !classes.given() {
		w.link.Classes = []shaper.Class{{
			Name: defaultClass, Rate: w.link.Rate, Ceil: w.link.Rate, Priority: defaultPriority, Default: true,
		}}
		return w.link
	}
	w.link.Classes = w.classes(classes, nil)
	if sum, ok := w.sum(classes); ok && w.link.Rate > 0 && sum > w.link.Rate {
		w.wrong(rate.at.place, w.cure("lower some of them, or raise this",
			fmt.Sprintf("lower some of them (shaperd set CLASS --rate …), or raise the link's rate (shaperd set --link %q --rate …)", name)), "the classes are guaranteed %s on %s, which has %s: %s",
			sum, name, w.link.Rate, w.list(classes))
	}
	return w.link
}

// classes puts the classes of one level on the link; parent is nil at the top.
func (w *linkWalk) classes(all *list[classSpec], parent *shaper.Class) []shaper.Class {
	var out []shaper.Class
	for i := range all.all {
		if all.all[i].ok() && !all.all[i].v.ofRequests() && !all.all[i].v.Unit.wrong {
			out = append(out, w.class(&all.all[i].v, all.all[i].at, parent))
		}
	}
	return out
}

func (w *linkWalk) class(c *classSpec, at *node, parent *shaper.Class) shaper.Class {
	out := shaper.Class{
		Name: c.title(), Rate: w.amount(&c.Rate), Ceil: w.amount(&c.Ceil), Burst: c.Burst.v.Size, Mode: c.Mode.v.Mode,
		Priority: c.priority(), Default: c.isDefault(),
	}
	switch {
	case !c.Ceil.given():
		out.Ceil = out.Rate
		if !c.Rate.given() && w.link.Rate > 0 {
			w.wrong(at.place, "add rate, or ceil: 100% to live from what others leave", "class %q can never send: it has neither rate nor ceil", c.title())
		}
	case out.Rate > out.Ceil && c.Ceil.ok() && (w.link.Rate == 0 || out.Rate <= w.link.Rate): // else the sum is wrong, too
		w.wrong(c.Rate.at.place, w.cure("raise the ceil, or lower the rate", "give a higher ceil (--ceil …), or a lower rate (--rate …)"), "class %q is guaranteed %s, more than its ceil of %s",
			c.title(), w.spell(&c.Rate), w.spell(&c.Ceil))
	case parent != nil && parent.Ceil > 0 && out.Ceil > parent.Ceil:
		w.wrong(c.Ceil.at.place, w.cure("lower it, or raise that of "+parent.Name,
			fmt.Sprintf("lower it, or raise that of %[1]s (shaperd set %[1]s --ceil …)", parent.Name)), "class %q has a ceil of %s, more than the %s of the class %q that it is in",
			c.title(), w.spell(&c.Ceil), parent.Ceil, parent.Name)
	}
	w.burst(c, &out)
	if c.Shared.ok() && bool(c.Shared.v) {
		out.Budget = out.Rate
	}
	if c.Classes.given() {
		out.Children = w.classes(&c.Classes, &out)
		limited := w.link.Rate > 0 || c.Rate.given() || c.Ceil.given()
		if sum, ok := w.sum(&c.Classes); ok && limited && sum > out.Rate && !c.Rate.wrong {
			w.wrong(c.Classes.at.key, w.cure("lower some of them, or raise the rate of "+c.title(),
				fmt.Sprintf("lower some of them (shaperd set CLASS --rate …), or raise that of %[1]s (shaperd set %[1]s --rate …)", c.title())),
				"the classes in %q are guaranteed %s, more than its own %s: %s", c.title(), sum, out.Rate, w.list(&c.Classes))
		}
	}
	return out
}

// cure is what would be right: in the file, or where something was set by hand,
// since it is that which does not fit then.
func (w *linkWalk) cure(inFile, byHand string) string {
	if len(w.moment.set) > 0 {
		return byHand
	}
	return inFile
}

// amount returns what a share is on this link; 0 if it is not given or wrong.
func (w *linkWalk) amount(s *value[share]) shaper.Rate {
	if !s.ok() {
		return 0
	}
	n := s.v.of(w.link.Rate)
	if n == 0 {
		w.wrong(s.at.place, w.cure("write what it may send", "give the link more, or the class a rate that is no percentage"), "%s of the %s of %s is less than 1bit", s.v.text, w.link.Rate, w.link.Name)
	}
	return n
}

// spell writes a share for messages.
func (w *linkWalk) spell(s *value[share]) string {
	if s.v.percent == 0 {
		return s.v.rate.String()
	}
	return fmt.Sprintf("%s (%s of %s)", s.v.text, w.amount(s), w.link.Name)
}

// sum adds up the guarantees of one level; not ok if one of them is wrong.
func (w *linkWalk) sum(all *list[classSpec]) (sum shaper.Rate, ok bool) {
	for i := range all.all {
		c := &all.all[i]
		if !c.ok() || c.v.Rate.wrong {
			return 0, false
		}
		if c.v.ofRequests() {
			continue
		}
		r := w.amount(&c.v.Rate)
		if r > math.MaxInt64-sum {
			return math.MaxInt64, true
		}
		sum += r
	}
	return sum, true
}

// list names the guarantees of one level, with their lines in the file.
func (w *linkWalk) list(all *list[classSpec]) string {
	var parts []string
	for i := range all.all {
		if c := &all.all[i].v; c.Rate.given() && !c.ofRequests() {
			parts = append(parts, c.title()+" "+w.amount(&c.Rate).String()+w.cure(fmt.Sprintf(" (line %d)", c.Rate.at.line), ""))
		}
	}
	return strings.Join(parts, ", ")
}

// burst checks a burst that is given.
func (w *linkWalk) burst(c *classSpec, out *shaper.Class) {
	if !c.Burst.ok() {
		return
	}
	most := maxBurst
	if second := shaper.Size(max(out.Ceil, out.Rate) / 8); second > 0 && second < maxBurst/longBurst {
		most = max(second*longBurst, anyBurst)
	}
	switch {
	case out.Burst < minBurst:
		w.wrong(c.Burst.at.place, fmt.Sprintf("write at least %s", minBurst)+w.cure(", or remove the key", ""), "a burst of %s cannot hold a full packet", out.Burst)
	case out.Burst > maxBurst:
		w.wrong(c.Burst.at.place, fmt.Sprintf("write at most %s", most), "a burst of %s is too large", out.Burst)
	case out.Burst > most:
		w.wrong(c.Burst.at.place, fmt.Sprintf("write at most %dkb", most/shaper.KiB), "a burst of %s is more than %d seconds at %s",
			out.Burst, longBurst, max(out.Ceil, out.Rate))
	}
}
