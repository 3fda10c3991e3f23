package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
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

// add makes a row; a target of "" has none to meet.
func (b *bench) add(what, own, peer, target string, met bool) {
	b.progress("%s: %s, peer %s", what, own, peer)
	b.rows = append(b.rows, row{what, own, peer, target, met})
}

func (r *row) cells() []string {
	verdict := ""
	if r.target != "" {
		verdict = map[bool]string{true: "met", false: "missed"}[r.met]
	}
	return []string{r.what, r.own, r.peer, r.target, verdict}
}

var head = []string{"measured", "shaperd", "plain tc", "target", ""}

func (b *bench) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(head, "\t"))
	for i := range b.rows {
		fmt.Fprintln(t, strings.Join(b.rows[i].cells(), "\t"))
	}
	_ = t.Flush()
	fmt.Fprintf(w, "\n%s\n", machine())
}

func (b *bench) markdown() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s\n\n| %s |\n|%s\n", machine(), strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for i := range b.rows {
		fmt.Fprintf(&s, "| %s |\n", strings.Join(b.rows[i].cells(), " | "))
	}
	return s.String()
}

// machine says what the numbers were measured on.
func machine() string {
	var u unix.Utsname
	_ = unix.Uname(&u)
	return fmt.Sprintf("%s, %d CPUs, Linux %s, %s.", time.Now().Format(time.DateOnly), runtime.NumCPU(), unix.ByteSliceToString(u.Release[:]), runtime.Version())
}

func median(list []time.Duration) time.Duration {
	list = slices.Clone(list)
	slices.Sort(list)
	return list[len(list)/2]
}
