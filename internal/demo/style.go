package demo

import (
	"cmp"
	"strings"
	"unicode/utf8"
)

// A style is what a terminal can show.
type style struct {
	color bool
	glyphs
}

// glyphs are what bars are made of.
type glyphs struct{ own, borrowed, room, mark, done, current, more, axisMark string }

var (
	blocks = glyphs{own: "█", borrowed: "▓", room: "░", mark: "│", done: "✓", current: "▸", more: "…", axisMark: "╵"}
	ascii  = glyphs{own: "#", borrowed: "=", room: ".", mark: "|", done: "x", current: ">", more: "~", axisMark: "|"}
)

// styleOf returns the style for a terminal, as the environment has it: NO_COLOR
// (see no-color.org), and a locale that is not UTF-8.
func styleOf(getenv func(string) string) style {
	s := style{color: getenv("NO_COLOR") == "", glyphs: blocks}
	locale := strings.ToLower(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG"), "utf-8"))
	if !strings.Contains(locale, "utf-8") && !strings.Contains(locale, "utf8") {
		s.glyphs = ascii
	}
	return s
}

// Select Graphic Rendition codes.
const (
	bold  = "1"
	faint = "2"
	red   = "31"
	green = "32"
)

// classColor sets the classes apart, by their order in the policy.
func classColor(i int) string { return []string{"36", "32", "33", "35"}[i%4] }

func (s style) sgr(code, text string) string {
	if !s.color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// judged colors what was measured by whether it is wrong.
func (s style) judged(wrong bool, text string) string {
	if wrong {
		return s.sgr(bold+";"+red, text)
	}
	return s.sgr(green, text)
}

// clip cuts text to width.
func (s style) clip(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(width-1, 0)]) + s.more
}

// pad fills text with spaces up to width: in front, or behind if width is negative as in fmt.
func pad(text string, width int) string {
	fill := strings.Repeat(" ", max(max(width, -width)-utf8.RuneCountInString(text), 0))
	if width < 0 {
		return text + fill
	}
	return fill + text
}

// wrap breaks text into lines of at most width.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
