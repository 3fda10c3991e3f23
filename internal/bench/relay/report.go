package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
)

// A row is one line of the result: what was measured, beside whom, and whether it is what it has to be.
type row struct {
	what, own, peer, theirs, ratio, target, met string
}

// add makes the rows of a comparison. A target is the largest ratio, shaperd to the peer, that is good enough.
func (b *bench) add(what, unit string, own []float64, of map[string][]float64, targets map[string]float64) {
	for _, c := range peers {
		theirs := of[c.name]
		if len(theirs) == 0 {
			b.rows = append(b.rows, row{what: what, own: format(median(own)) + unit, peer: c.name, theirs: "not installed"})
			continue
		}
		ratios := make([]float64, len(own))
		for i := range own {
			ratios[i] = own[i] / theirs[i]
		}
		r := row{what: what, own: format(median(own)) + unit, peer: c.name, theirs: format(median(theirs)) + unit, ratio: format(median(ratios))}
		if target, ok := targets[c.name]; ok {
			r.target = "≤ " + format(target)
			r.met = verdict(median(ratios) <= target)
		}
		b.rows = append(b.rows, r)
	}
}

// require makes the row of a value that has to be good by itself.
func (b *bench) require(what string, value float64, target string, met bool) {
	b.rows = append(b.rows, row{what: what, own: format(value), target: target, met: verdict(met)})
}

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "missed"
}

func (b *bench) missed() (n int) {
	for _, r := range b.rows {
		if r.met == "missed" {
			n++
		}
	}
	return n
}

func format(v float64) string {
	switch {
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func (b *bench) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "measured\tshaperd\tpeer\tpeer's\tratio\ttarget\t")
	for _, r := range b.rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.what, r.own, r.peer, r.theirs, r.ratio, r.target, r.met)
	}
	_ = t.Flush()
	fmt.Fprintf(w, "\n%s\n", b.machine())
}

func (b *bench) writeMarkdown(file string) error {
	var s strings.Builder
	fmt.Fprintf(&s, "%s\n\n| measured | shaperd | peer | peer's | ratio | target | |\n|---|---|---|---|---|---|---|\n", b.machine())
	for _, r := range b.rows {
		fmt.Fprintf(&s, "| %s | %s | %s | %s | %s | %s | %s |\n", r.what, r.own, r.peer, r.theirs, r.ratio, r.target, r.met)
	}
	return os.WriteFile(file, []byte(s.String()), 0o644)
}

// machine says what the numbers were measured on.
func (b *bench) machine() string {
	var u unix.Utsname
	_ = unix.Uname(&u)
	return fmt.Sprintf("%s, %d CPUs, Linux %s, %s, %s, %s; %d rounds, medians of the ratios within a round.",
		time.Now().Format(time.DateOnly), runtime.NumCPU(), unix.ByteSliceToString(u.Release[:]), runtime.Version(),
		b.version("haproxy", "-v"), b.version("nginx", "-v"), b.rounds)
}

// version is the first line of what a program says of itself, cut to the essential.
func (b *bench) version(binary, arg string) string {
	path, err := b.look(binary)
	if err != nil {
		return binary + " not installed"
	}
	out, _ := exec.Command(path, arg).CombinedOutput()
	line, _, _ := strings.Cut(string(out), "\n")
	words := strings.Fields(line)
	return strings.TrimPrefix(strings.Join(words[:min(3, len(words))], " "), "nginx version: ")
}

// haproxyTarget is the ratio to reach: HAProxy 3 needs half of what 2 does.
func (b *bench) haproxyTarget() float64 {
	if strings.Contains(b.version("haproxy", "-v"), "version 3") {
		return 1. / 2
	}
	return 1. / 4
}
