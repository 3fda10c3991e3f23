package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
)

// A row is one line of the result.
type row struct {
	what, own, peer string
	target          string
	met             bool
}

// add makes a row: what was measured, of shaperd and beside it. Peer is "" if
// there is nothing to stand beside it, and target if there is none to meet.
func (b *bench) add(what, own, peer, target string, met bool) {
	b.rows = append(b.rows, row{what, own, peer, target, met})
	beside := ""
	if peer != "" {
		beside = ", beside " + peer
	}
	fmt.Fprintf(os.Stderr, "  %s: %s%s\n", what, own, beside)
}

func (r *row) cells() []string {
	verdict := ""
	if r.target != "" {
		verdict = map[bool]string{true: "met", false: "missed"}[r.met]
	}
	return []string{r.what, r.own, r.peer, r.target, verdict}
}

func (b *bench) missed() (n int) {
	for i := range b.rows {
		if b.rows[i].target != "" && !b.rows[i].met {
			n++
		}
	}
	return n
}

var head = []string{"measured", "shaperd", "plain tc", "target", ""}

func (b *bench) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(head, "\t"))
	for i := range b.rows {
		fmt.Fprintln(t, strings.Join(b.rows[i].cells(), "\t"))
	}
	_ = t.Flush()
	fmt.Fprintf(w, "\n%s\n", b.machine())
}

func (b *bench) markdownText() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s\n\n| %s |\n|%s\n", b.machine(), strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for i := range b.rows {
		fmt.Fprintf(&s, "| %s |\n", strings.Join(b.rows[i].cells(), " | "))
	}
	return s.String()
}

// machine says what the numbers were measured on.
func (b *bench) machine() string {
	var u unix.Utsname
	_ = unix.Uname(&u)
	return fmt.Sprintf("%s, %d CPUs, Linux %s, %s; medians of %d rounds where times are compared. Others, with the kernel's own threads, had %.0f %% of the processors meanwhile.",
		time.Now().Format(time.DateOnly), runtime.NumCPU(), unix.ByteSliceToString(u.Release[:]), runtime.Version(), b.rounds, 100*b.before.others(usageNow()))
}

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
