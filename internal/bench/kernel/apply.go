package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"shaperd/configs"
	"shaperd/netlink"
	"shaperd/shaper"
)

const (
	manyClasses = 1000
	manyRules   = 10000
)

// many is a policy with many classes and rules, as values and as a file.
func many() (c netlink.Config, file string) {
	l := shaper.Link{Name: device + " egress", Rate: 100 * shaper.Gbit}
	name := func(i int) string { return fmt.Sprintf("c%d", i%manyClasses) }
	var text strings.Builder
	text.WriteString("classes:\n")
	for i := range manyClasses {
		l.Classes = append(l.Classes, shaper.Class{Name: name(i), Rate: 10 * shaper.Mbit, Ceil: shaper.Gbit, Priority: 3, Default: i == 0})
		fmt.Fprintf(&text, "  - {name: %s, rate: 10mbit, ceil: 1gbit, default: %t, match: [", name(i), i == 0)
		for rule := i; rule < manyRules; rule += manyClasses {
			fmt.Fprintf(&text, "{proto: tcp, dport: %d}, ", rule+1)
		}
		text.WriteString("]}\n")
	}
	fmt.Fprintf(&text, "interfaces: [{name: %s, egress: %s}]\n", device, l.Rate)
	c = config(l)
	c.Rules.List = ports(manyRules, name)
	return c, text.String()
}

// apply measures how long 1,000 classes with their queues and 10,000 rules
// take, beside tc with the same in a batch: of that only the IPv4 half of the
// filters, which is less than what shaperd does. The program is measured beside
// the program, and the library alone too.
func (b *bench) apply() error {
	c, text := many()
	file := b.dir + "/many.yaml"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	planned, err := b.lab.Output(sender, b.program, "plan", "--tc", file)
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 2 { // there is something to do
		return fmt.Errorf("plan: %w", err)
	}
	var commands strings.Builder
	for line := range strings.Lines(planned) {
		if command, ok := strings.CutPrefix(line, "tc "); ok && !strings.Contains(line, "protocol ipv6") {
			commands.WriteString(command)
		}
	}
	program := func(args ...string) func() error {
		return func() error {
			_, err := b.lab.Output(sender, append([]string{b.program}, args...)...)
			return err
		}
	}
	took := map[string][]time.Duration{}
	for range b.rounds {
		for _, step := range []struct {
			what string
			do   func() error
		}{
			{"library", func() error { _, err := b.path.Apply(c); return err }},
			{"library again", func() error {
				p, err := b.path.Apply(c)
				if err == nil && len(p.Changes) > 0 {
					err = fmt.Errorf("a second apply has %d changes", len(p.Changes))
				}
				return err
			}},
			{"clear", program("clear")},
			{"reading", func() error { _, err := configs.Parse(file, []byte(text)); return err }},
			{"program", program("apply", file)},
			{"program again", program("apply", file)},
			{"nothing to do", program("plan", file)}, // which ends with 2 otherwise
			{"clear", program("clear")},
			{"tc", func() error { return b.batch(commands.String()) }},
			{"delete", func() error { return b.tc("qdisc", "del", "dev", device, "root") }},
		} {
			d, err := timed(step.do)
			if err != nil {
				return fmt.Errorf("%s: %w", step.what, err)
			}
			took[step.what] = append(took[step.what], d)
		}
	}
	own, library, tc := median(took["program"]), median(took["library"]), median(took["tc"])
	const what = "1,000 classes with queues, 10,000 rules: "
	b.add(what+"shaperd apply, beside: tc -batch", ms(own), ms(tc), "≤ half", 2*own <= tc)
	b.add("of that: reading the policy file", ms(median(took["reading"])), "", "", true)
	b.add(what+"the library's Apply alone", ms(library), ms(tc), "≤ half", 2*library <= tc)
	again := median(took["program again"])
	b.add("shaperd apply again, which writes nothing", ms(again), "", "≤ 200 ms", again <= 200*time.Millisecond)
	b.add("the library's Apply again, which writes nothing", ms(median(took["library again"])), "", "≤ 200 ms", median(took["library again"]) <= 200*time.Millisecond)
	return b.oneChange(c)
}

// oneChange counts what the kernel tells of the change of one class's rate.
func (b *bench) oneChange(c netlink.Config) error {
	if _, err := b.path.Apply(c); err != nil {
		return err
	}
	seen, err := b.monitor(func() error {
		c.Interfaces[0].Egress.Classes[7].Rate += shaper.Mbit
		_, err := b.path.Apply(c)
		return err
	})
	if err != nil {
		return err
	}
	b.add("one of 1,000 classes changes its rate: changes that the kernel tells of", fmt.Sprint(len(seen)), "", "1", len(seen) == 1)
	return nil
}

// monitor returns what the kernel tells of qdiscs, classes and filters while do runs.
func (b *bench) monitor(do func() error) (seen []string, err error) {
	const mark = "mark0" // a device whose qdisc comes before and after
	if err := b.lab.Sink(sender, mark); err != nil {
		return nil, err
	}
	cmd := exec.Command("tc", "monitor")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	wait, err := b.lab.Start(sender, cmd)
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = wait()
	}()
	told := make(chan string)
	go func() {
		defer close(told)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			told <- lines.Text()
		}
	}()
	// It listens once it tells of the mark, which is changed until then.
	for listens := false; !listens; {
		if err := b.tc("qdisc", "replace", "dev", mark, "root", "pfifo", "limit", "10"); err != nil {
			return nil, err
		}
		select {
		case <-told:
			listens = true
		case <-time.After(50 * time.Millisecond):
		}
	}
	if err := do(); err != nil {
		return nil, err
	}
	if err := b.tc("qdisc", "replace", "dev", mark, "root", "bfifo", "limit", "2000"); err != nil {
		return nil, err
	}
	for line := range told {
		if strings.Contains(line, "dev "+mark) {
			if strings.Contains(line, "bfifo") && !strings.HasPrefix(line, "deleted") {
				return seen, nil
			}
			continue
		}
		if line != "" && line[0] != ' ' && line[0] != '\t' {
			seen = append(seen, line)
		}
	}
	return nil, fmt.Errorf("tc monitor ended: %w", wait())
}
