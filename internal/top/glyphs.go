package top

import (
	"math"
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"
)

// glyphs are what is drawn with.
type glyphs struct {
	ascii   bool
	parts   []rune // of a bar's cell, from almost empty to full
	empty   rune   // cell of a bar
	mark    rune   // of the guaranteed rate on a bar
	levels  []rune // of the minute: nothing, little, most
	pointer string
	cut     string // where text goes on
	updown  string // keys
	between string // of two notes
}

var (
	unicodeGlyphs = glyphs{
		parts: []rune("▏▎▍▌▋▊▉█"), empty: '·', mark: '│', levels: []rune("▁▂▃▄▅▆▇█"),
		pointer: "▸ ", cut: "…", updown: "↑↓", between: " · ",
	}
	asciiGlyphs = glyphs{
		ascii: true,
		parts: []rune("#"), empty: '.', mark: '|', levels: []rune("_.:-=+*#"),
		pointer: "> ", cut: "~", updown: "jk", between: "; ",
	}
)

// something is the part of a scale from which on a rate shows, however little it
// fills. Below is what a mean still has of traffic that has ended.
const something = 0.001

// bar draws a rate on a scale, with a mark at the guaranteed rate. What is above
// the mark is borrowed.
func (g *glyphs) bar(now, guaranteed, scale float64, cells int) []span {
	steps := len(g.parts)
	filled, mark := 0, -1
	if scale > 0 {
		filled = int(min(now/scale, 1)*float64(steps*cells) + 0.5)
		if now >= scale*something {
			filled = max(filled, 1)
		}
		if guaranteed > 0 {
			mark = min(int(guaranteed/scale*float64(cells)), cells-1)
		}
	}
	var spans []span
	for i := range cells {
		kind, text := within, g.empty
		if mark >= 0 && i > mark {
			kind = borrowed
		}
		switch here := filled - i*steps; {
		case i == mark:
			kind, text = strong, g.mark
		case here >= steps:
			text = g.parts[steps-1]
		case here > 0:
			text = g.parts[here-1]
		default:
			kind = faint
		}
		spans = append(spans, span{string(text), kind})
	}
	return spans
}

// minute draws the history on a scale: blank where nobody asked, the lowest level
// for nothing at all.
func (g *glyphs) minute(h *history, scale float64, cells int) string {
	var text strings.Builder
	top := len(g.levels) - 1
	for _, v := range h.cells(cells) {
		switch {
		case math.IsNaN(v):
			text.WriteByte(' ')
		case v < scale*something || scale <= 0:
			text.WriteRune(g.levels[0])
		default:
			text.WriteRune(g.levels[max(1, int(min(v/scale, 1)*float64(top)+0.5))])
		}
	}
	return text.String()
}

// clip makes text harmless, and as wide as it may be.
func (g *glyphs) clip(text string, width int) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || g.ascii && r > unicode.MaxASCII {
			return '?'
		}
		return r
	}, text)
	if lipgloss.Width(text) <= width {
		return text
	}
	runes := []rune(text)
	for len(runes) > 0 && lipgloss.Width(string(runes)) > width-1 {
		runes = runes[:len(runes)-1]
	}
	if width < 1 {
		return ""
	}
	return string(runes) + g.cut
}

// pad clips and fills text to a width.
func (g *glyphs) pad(text string, width int, right bool) string {
	text = g.clip(text, width)
	space := strings.Repeat(" ", max(width-lipgloss.Width(text), 0))
	if right {
		return space + text
	}
	return text + space
}
