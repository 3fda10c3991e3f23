package top

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// A kind is how a piece of text is set off. Colors are the terminal's own sixteen,
// which its user chose; without colors each kind can still be read.
type kind int

const (
	plain    kind = iota
	strong        // names, marks
	faint         // what can wait
	good          // in order
	warn          // look here
	within        // of a bar: guaranteed
	borrowed      // of a bar: above the guarantee
	reversed      // the row that is selected
)

var styles = map[kind]lipgloss.Style{
	plain:    lipgloss.NewStyle(),
	strong:   lipgloss.NewStyle().Bold(true),
	faint:    lipgloss.NewStyle().Faint(true),
	good:     lipgloss.NewStyle().Foreground(lipgloss.Green),
	warn:     lipgloss.NewStyle().Foreground(lipgloss.Yellow).Bold(true),
	within:   lipgloss.NewStyle().Foreground(lipgloss.Green),
	borrowed: lipgloss.NewStyle().Foreground(lipgloss.Cyan),
	reversed: lipgloss.NewStyle().Reverse(true),
}

// A span is text of one kind.
type span struct {
	text string
	kind kind
}

// widthOf is how many cells spans take.
func widthOf(spans []span) (n int) {
	for _, s := range spans {
		n += lipgloss.Width(s.text)
	}
	return n
}

// line sets spans in a line of a width, and clips what does not fit. A line that
// is selected is reversed as a whole: colors in it would be hard to read.
func (g *glyphs) line(width int, selected bool, spans ...span) string {
	var out strings.Builder
	var run strings.Builder // neighbors of one kind are set together: fewer escapes
	last := plain
	flush := func() {
		if run.Len() > 0 {
			out.WriteString(styles[last].Render(run.String()))
			run.Reset()
		}
	}
	left := width
	for _, s := range spans {
		text := g.clip(s.text, left)
		left -= lipgloss.Width(text)
		if selected {
			s.kind = reversed
		}
		if s.kind != last {
			flush()
			last = s.kind
		}
		run.WriteString(text)
	}
	if selected {
		run.WriteString(strings.Repeat(" ", max(left, 0)))
	}
	flush()
	return out.String()
}

// spread sets left at the left and right at the right end of a line; right gives
// way where there is no room.
func (g *glyphs) spread(width int, left []span, right string) string {
	room := width - widthOf(left) - lipgloss.Width(right)
	if room < 2 || right == "" {
		return g.line(width, false, left...)
	}
	return g.line(width, false, append(left, span{strings.Repeat(" ", room), plain}, span{right, faint})...)
}
