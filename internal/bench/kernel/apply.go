package main

import (
	"fmt"
	"strings"
	"time"

	"shaperd/shaper"
)

// apply measures how long 1,000 classes with their queues and 10,000 rules
// take, beside tc with the same in a batch; for tc only the IPv4 half of the rules.
func (b *bench) apply() error {
	const classes, rules, rounds = 1000, 10000, 5
	l := shaper.Link{Name: "eth0 egress", Rate: 100 * shaper.Gbit}
	name := func(i int) string { return fmt.Sprintf("c%d", i%classes) }
	for i := range classes {
		l.Classes = append(l.Classes, shaper.Class{Name: name(i), Rate: 10 * shaper.Mbit, Ceil: shaper.Gbit, Default: i == 0})
	}
	c := config(l)
	c.Rules.List = ports(rules, name)
	plan, err := b.path.Plan(c)
	if err != nil {
		return err
	}
	var commands strings.Builder
	for line := range strings.Lines(plan.Commands()) {
		if command, ok := strings.CutPrefix(line, "tc "); ok && !strings.Contains(line, "protocol ipv6") {
			commands.WriteString(command)
		}
	}
	var own, theirs, again []time.Duration
	for range rounds {
		begin := time.Now()
		if _, err := b.path.Apply(c); err != nil {
			return err
		}
		own = append(own, time.Since(begin))
		begin = time.Now()
		p, err := b.path.Apply(c)
		if err != nil {
			return err
		}
		if again = append(again, time.Since(begin)); len(p.Changes) > 0 {
			return fmt.Errorf("a second apply has %d changes", len(p.Changes))
		}
		if _, err := b.path.Clear(); err != nil {
			return err
		}
		begin = time.Now()
		if err := b.batch(commands.String()); err != nil {
			return err
		}
		theirs = append(theirs, time.Since(begin))
		if err := b.tc("qdisc", "del", "dev", "eth0", "root"); err != nil {
			return err
		}
	}
	b.add("1,000 classes with queues and 10,000 rules: apply", ms(median(own)), ms(median(theirs)), "≤ half", 2*median(own) <= median(theirs))
	b.add("the same again: writes nothing", ms(median(again)), "", "≤ 200 ms", median(again) <= 200*time.Millisecond)
	if _, err := b.path.Apply(c); err != nil {
		return err
	}
	c.Interfaces[0].Egress.Classes[7].Rate += shaper.Mbit
	p, err := b.path.Apply(c)
	if err != nil {
		return err
	}
	b.add("one class's rate changes: messages", fmt.Sprint(len(p.Changes)), "", "1", len(p.Changes) == 1)
	return nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
