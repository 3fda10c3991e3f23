package configs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An Error is one mistake in a policy file. Its JSON form is for programs.
type Error struct {
	File    string `json:"file"`
	Line    int    `json:"line"`   // from 1
	Column  int    `json:"column"` // from 1, in characters
	Text    string `json:"text"`   // the line, or the part of a long one that has it; passwords are blotted out
	Message string `json:"message"`
	Cure    string `json:"cure"` // what would be right

	before, width int // the offending text in Text, in characters
}

// Error returns one line: file, place, what is wrong and what would be right.
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s; %s", e.File, e.Line, e.Column, e.Message, e.Cure)
}

// Detail returns Error and under it the line of the file with the offending text underlined.
func (e *Error) Detail() string {
	number := fmt.Sprintf("%5d", e.Line)
	return fmt.Sprintf("%s\n%s | %s\n%*s | %s%s", e.Error(), number, e.Text, len(number), "",
		strings.Repeat(" ", e.before), strings.Repeat("^", e.width))
}

// show sets what Detail shows of the line: what can be printed, and at most
// maxText characters, with the offending ones among them.
func (e *Error) show(line string) {
	const maxText = 120
	text := []rune(line)
	e.before = min(e.Column-1, len(text))
	if len(text) > maxText && e.before+e.width > maxText {
		cut := max(e.before-maxText/3, 0)
		text, e.before = text[cut:], e.before-cut
	}
	text = text[:min(len(text), maxText)]
	e.width = max(min(e.width, len(text)-e.before), 1)
	for i, r := range text {
		switch {
		case r == '\t':
			text[i] = ' '
		case !unicode.IsPrint(r):
			text[i] = unicode.ReplacementChar
		}
	}
	e.Text = string(text)
}

// Errors are all the mistakes of one file, in its order. errors.As finds the
// single ones.
type Errors []*Error

// Error returns every error with its line of the file.
func (e Errors) Error() string {
	all := make([]string, len(e))
	for i, one := range e {
		all[i] = one.Detail()
	}
	return strings.Join(all, "\n")
}

// Unwrap returns the single errors.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, one := range e {
		all[i] = one
	}
	return all
}

// A place is where something stands in the file: line and column from 1, and
// how many characters wide it is.
type place struct{ line, column, width int }

// A report collects what is wrong with one file.
type report struct {
	file   string
	lines  []string
	errors Errors
	at     map[place]bool // where one was reported already
	more   int            // beyond maxErrors
	moment moment         // that the links are made for
}

// maxErrors is how many are worth reading.
const maxErrors = 200

func newReport(file string) *report { return &report{file: file, at: map[place]bool{}} }

// wrong adds an error. Only the first at a place counts: what comes later
// follows from it.
func (r *report) wrong(at place, cure, format string, args ...any) {
	spot := place{line: at.line, column: at.column}
	if r.at[spot] {
		return
	}
	r.at[spot] = true
	if len(r.errors) == maxErrors {
		r.more++
		return
	}
	at = r.clamp(at)
	r.errors = append(r.errors, &Error{
		File: r.file, Line: at.line, Column: at.column, Message: fmt.Sprintf(format, args...) + r.moment.suffix(), Cure: cure, width: at.width,
	})
}

// clamp keeps a place within the file: the YAML library puts what is missing behind its end.
func (r *report) clamp(at place) place {
	at.line = max(min(at.line, len(r.lines)), 1)
	if len(r.lines) > 0 {
		at.column = min(at.column, utf8.RuneCountInString(r.lines[at.line-1])+1)
	}
	at.column = max(at.column, 1)
	return at
}

// err returns what was collected; nil if nothing was.
func (r *report) err() error {
	if len(r.errors) == 0 {
		return nil
	}
	for _, e := range r.errors {
		if e.Line <= len(r.lines) {
			e.show(r.lines[e.Line-1])
		}
	}
	slices.SortStableFunc(r.errors, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if r.more > 0 {
		last := r.errors[len(r.errors)-1]
		last.Cure += fmt.Sprintf(" (%d more mistakes are not shown)", r.more)
	}
	return r.errors
}

// blot makes the values in n unreadable in what errors show of the file.
func (r *report) blot(n *node) {
	switch n.kind {
	case scalarNode:
		r.blotText(n.place)
	case badNode: // whatever is there
		r.blotText(place{n.line, n.column, maxBytes})
	}
	for _, item := range n.items {
		r.blot(item)
	}
	for _, f := range n.fields {
		r.blot(f.value)
	}
}

func (r *report) blotText(at place) {
	if at.line > len(r.lines) {
		return
	}
	line := []rune(r.lines[at.line-1])
	for i := at.column - 1; i < min(at.column-1+at.width, len(line)); i++ {
		line[i] = '*'
	}
	r.lines[at.line-1] = string(line)
}
