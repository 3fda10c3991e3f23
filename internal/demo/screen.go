package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// A moment is what is to be seen at one time.
type moment interface {
	render(s style, width, height int) []string // for a terminal
	text() (about string, lines []string)       // what the step shows, and how it is now, for logs and pipes
}

// A view shows moments while they come.
type view interface {
	open()
	due(now time.Duration) bool // whether it is time for another
	window() time.Duration      // what rates are taken over
	draw(m moment)
	close()
}

// newView returns the view that suits out: moving pictures on a terminal, a line
// each second elsewhere, nothing if it is to be quiet.
func newView(out io.Writer, quiet bool) view {
	if f, ok := terminal(out); ok && !quiet {
		return &screen{f, styleOf(os.Getenv), pace{every: 100 * time.Millisecond, over: 500 * time.Millisecond}}
	}
	if quiet {
		out = io.Discard
	}
	return &lines{out: out, pace: pace{every: time.Second, over: time.Second, next: time.Second}}
}

// terminal returns out as one, if it is one that can move its cursor.
func terminal(out io.Writer) (*os.File, bool) {
	f, ok := out.(*os.File)
	return f, ok && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// size returns the terminal's, now.
func size(f *os.File) (width, height int) {
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// A pace lets something happen once per interval.
type pace struct{ every, over, next time.Duration }

func (p *pace) due(now time.Duration) bool {
	if now < p.next {
		return false
	}
	p.next = now - now%p.every + p.every
	return true
}

func (p *pace) window() time.Duration { return p.over }

// A screen redraws a terminal's second screen, so that a resize leaves no
// traces, and the first comes back as it was.
type screen struct {
	out   *os.File
	style style
	pace
}

func (s *screen) open() { io.WriteString(s.out, "\x1b[?1049h\x1b[?25l\x1b[?7l") } // second screen, no cursor, no wrapping

func (s *screen) draw(m moment) {
	width, height := size(s.out)
	lines := m.render(s.style, width, height)
	// As one update, without remains. What is erased is so before a line is
	// written: after a full one the cursor is still on its last character.
	text := "\x1b[?2026h\x1b[H\x1b[K" + strings.Join(lines, "\r\n\x1b[K")
	if len(lines) < height {
		text += "\r\n\x1b[J"
	}
	io.WriteString(s.out, text+"\x1b[?2026l")
}

func (s *screen) close() { io.WriteString(s.out, "\x1b[?7h\x1b[?25h\x1b[?1049l") }

// lines prints what each step is about, and lines each second, for logs and pipes.
type lines struct {
	out io.Writer
	pace
	about string // that has been printed
}

func (l *lines) open() {}

func (l *lines) draw(m moment) {
	about, lines := m.text()
	if about != l.about {
		l.about = about
		lines = append(wrap(about, 80), lines...)
	}
	for _, line := range lines {
		fmt.Fprintln(l.out, line)
	}
}

func (l *lines) close() {}
