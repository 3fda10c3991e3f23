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
	Text    string `json:"text"`   // the line, with passwords blotted out
	Message string `json:"message"`
	Cure    string `json:"cure"` // what would be right

	width int // of the offending text, in characters
}

// Error returns one line: file, place, what is wrong and what would be right.
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s; %s", e.File, e.Line, e.Column, e.Message, e.Cure)
}

// Detail returns Error and under it the line of the file with the offending text underlined.
func (e *Error) Detail() string {
	line, before := crop([]rune(e.Text), e.Column-1, max(e.width, 1))
	number := fmt.Sprintf("%5d", e.Line)
	var caret strings.Builder
	for _, r := range line[:before] {
		if r != '\t' {
			r = ' '
		}
		caret.WriteRune(r)
	}
	caret.WriteString(strings.Repeat("^", min(max(e.width, 1), max(len(line)-before, 1))))
	return fmt.Sprintf("%s\n%s | %s\n%*s | %s", e.Error(), number, printable(line), len(number), "", &caret)
}

// crop returns at most 120 characters of a line, with those from column to
// column+width in it as far as they fit, and where the column is in them.
func crop(line []rune, column, width int) ([]rune, int) {
	const most = 120
	column = min(column, len(line))
	from := 0
	if len(line) > most && column+width > most {
		from = max(column-most/3, 0)
	}
	return line[from:min(from+most, len(line))], column - from
}

func printable(line []rune) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, string(line))
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
}

// wrong adds an error. Only the first at a place counts: what comes later
// follows from it.
func (r *report) wrong(at place, cure, format string, args ...any) {
	for _, e := range r.errors {
		if e.Line == at.line && e.Column == at.column {
			return
		}
	}
	e := &Error{File: r.file, Line: at.line, Column: at.column, Message: fmt.Sprintf(format, args...), Cure: cure, width: at.width}
	if at.line <= len(r.lines) {
		e.Text = r.lines[at.line-1]
	}
	r.errors = append(r.errors, e)
}

// err returns what was collected; nil if nothing was.
func (r *report) err() error {
	if len(r.errors) == 0 {
		return nil
	}
	slices.SortStableFunc(r.errors, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return r.errors
}

// blot makes a secret unreadable in what errors show of the file.
func (r *report) blot(at place) {
	if at.line > len(r.lines) {
		return
	}
	line := []rune(r.lines[at.line-1])
	for i := at.column - 1; i < min(at.column-1+at.width, len(line)); i++ {
		line[i] = '*'
	}
	r.lines[at.line-1] = string(line)
}
