package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// A view shows frames while they come.
type view interface {
	due(now time.Duration) bool // whether it is time for a frame
	window() time.Duration      // what the frame's rates are taken over
	draw(f frame)
	close()
}

// newView returns the view that suits out: moving bars on a terminal, a line
// each second elsewhere.
func newView(out io.Writer) view {
	if f, ok := terminal(out); ok {
		return newScreen(f)
	}
	return &lines{out: out, pace: pace{every: time.Second, over: time.Second, next: time.Second}, step: -1}
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

func newScreen(out *os.File) *screen {
	io.WriteString(out, "\x1b[?1049h\x1b[?25l\x1b[?7l") // second screen, no cursor, no wrapping
	return &screen{out, styleOf(os.Getenv), pace{every: 100 * time.Millisecond, over: 500 * time.Millisecond}}
}

func (s *screen) draw(f frame) { s.show(f.render) }

// show draws what render makes of the terminal's size.
func (s *screen) show(render func(s style, width, height int) []string) {
	width, height := size(s.out)
	lines := render(s.style, width, height)
	// As one update, without remains. What is erased is so before a line is
	// written: after a full one the cursor is still on its last character.
	text := "\x1b[?2026h\x1b[H\x1b[K" + strings.Join(lines, "\r\n\x1b[K")
	if len(lines) < height {
		text += "\r\n\x1b[J"
	}
	io.WriteString(s.out, text+"\x1b[?2026l")
}

func (s *screen) close() { io.WriteString(s.out, "\x1b[?7h\x1b[?25h\x1b[?1049l") }

// lines prints a line each second, for logs and pipes.
type lines struct {
	out io.Writer
	pace
	step int // whose text has been printed
}

func (l *lines) draw(f frame) {
	if f.step != l.step {
		l.step = f.step
		name, text := about(f.step)
		fmt.Fprintln(l.out, strings.Join(wrap(name+": "+text, 80), "\n"))
	}
	if f.rates == nil {
		return
	}
	var cells []string
	for _, r := range f.rates {
		cells = append(cells, fmt.Sprintf("%s %.1f of %s", r.class.Name, r.rate/1e6, inMbit(r.total())))
	}
	fmt.Fprintf(l.out, "%4.0f s  %s mbit\n", f.elapsed.Truncate(time.Second).Seconds(), strings.Join(cells, ", "))
}

func (l *lines) close() {}
