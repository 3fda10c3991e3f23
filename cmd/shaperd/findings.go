package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"shaperd/internal/doctor"
)

// printReport writes the report for people: what is not well, and with verbose
// what is.
func printReport(w io.Writer, r *doctor.Report, verbose bool) {
	s := styleOf(w)
	page := findingPrinter{w: w, style: s, width: widthOf(w)}
	fmt.Fprintf(w, "policy %s on %s\n", s.bold(r.Policy), r.System)
	fine := map[string]bool{}
	group := ""
	for i := range r.Findings {
		x := &r.Findings[i]
		if x.Verdict == doctor.OK && !verbose {
			fine[x.Check] = true
			continue
		}
		if x.Group != group {
			group = x.Group
			fmt.Fprintf(w, "\n%s\n", s.bold(group))
		}
		page.finding(x, i > 0 && sameCure(x, &r.Findings[i-1]), i+1 == len(r.Findings) || !sameCure(x, &r.Findings[i+1]))
	}
	for i := range r.Findings {
		if r.Findings[i].Verdict != doctor.OK {
			delete(fine, r.Findings[i].Check)
		}
	}
	fmt.Fprintln(w)
	if len(fine) > 0 {
		page.wrap("", "", fmt.Sprintf("%d more checks found nothing amiss; --verbose says what they are.", len(fine)), "")
	}
	set := s.green
	if r.Problems > 0 {
		set = s.red
	}
	what, how, _ := strings.Cut(r.Verdict(), "; ")
	if line := what + "; " + how; utf8.RuneCountInString(line) <= page.width {
		what, how = line, ""
	}
	for _, line := range []string{what, how} {
		if line != "" {
			page.wrap("", "", s.bold(set(line)), "")
		}
	}
}

// A findingPrinter writes findings below each other, in lines of a width.
type findingPrinter struct {
	w     io.Writer
	style style
	width int
}

const (
	findingIndent = "           " // what is below a verdict
	costIndent    = findingIndent + "      "
)

// sameCure reports whether two findings can be written as one.
func sameCure(a, b *doctor.Finding) bool {
	return a.Group == b.Group && a.Verdict == b.Verdict && a.Cost == b.Cost && a.Cure == b.Cure && a.Cost+a.Cure != ""
}

// finding writes one. Joined to the one before it has no verdict of its own;
// what it costs stands below the last that is joined.
func (p *findingPrinter) finding(x *doctor.Finding, joined, last bool) {
	head := p.verdict(x.Verdict)
	if joined {
		head = findingIndent
	}
	tag := x.Check
	if x.Verdict == doctor.OK && x.Subject != "" { // whose words do not name it
		tag += " " + x.Subject
	}
	p.wrap(head, findingIndent, x.Found, "["+tag+"]")
	if !last {
		return
	}
	if x.Cost != "" {
		p.wrap(findingIndent+p.style.faint("cost  "), costIndent, x.Cost, "")
	}
	if x.Cure != "" { // in one line, to be copied
		fmt.Fprintf(p.w, "%s%s%s\n", findingIndent, p.style.faint("cure  "), x.Cure)
	}
}

// wrap writes text in lines that are no longer than the width. Head is as wide
// as indent; the tag is faint, and stays in one piece.
func (p *findingPrinter) wrap(head, indent, text, tag string) {
	line, used := head, utf8.RuneCountInString(indent)
	first := true
	add := func(word, set string) {
		n := utf8.RuneCountInString(word)
		switch {
		case first:
		case used+1+n > p.width:
			fmt.Fprintln(p.w, line)
			line, used = indent, utf8.RuneCountInString(indent)
		default:
			line, used = line+" ", used+1
		}
		line, used, first = line+set, used+n, false
	}
	for word := range strings.FieldsSeq(text) {
		add(word, word)
	}
	if tag != "" {
		add(tag, p.style.faint(tag))
	}
	fmt.Fprintln(p.w, line)
}

// verdict is the word that a finding begins with, as wide as findingIndent.
func (p *findingPrinter) verdict(v doctor.Verdict) string {
	text := fmt.Sprintf("%-9s", v)
	switch v {
	case doctor.OK:
		text = p.style.green(text)
	case doctor.Warning:
		text = p.style.yellow(text)
	case doctor.Problem:
		text = p.style.red(text)
	}
	return "  " + text
}

// widthOf returns how long a line of prose may be.
func widthOf(w io.Writer) int {
	const usual, readable, narrow = 80, 100, 40
	f, ok := w.(*os.File)
	if !ok {
		return usual
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return usual
	}
	return max(min(columns, readable), narrow)
}
