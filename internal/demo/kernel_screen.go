package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// A kernelView shows frames while they come.
type kernelView interface {
	open()
	due(now time.Duration) bool // whether it is time for a frame
	draw(f *kernelFrame)
	close()
}

// newKernelView returns the view that suits out; quiet shows nothing.
func newKernelView(out io.Writer, quiet bool) kernelView {
	if f, ok := terminal(out); ok && !quiet {
		return &kernelScreen{out: f}
	}
	if quiet {
		out = io.Discard
	}
	return &kernelLines{out: out, pace: pace{every: time.Second, next: time.Second}, step: -1}
}

// A kernelScreen draws on a terminal's second screen.
type kernelScreen struct {
	out *os.File
	*screen
}

func (s *kernelScreen) open() { s.screen = newScreen(s.out) }

func (s *kernelScreen) draw(f *kernelFrame) { s.show(f.render) }

// kernelLines prints a line for each direction each second.
type kernelLines struct {
	out io.Writer
	pace
	step int // whose text has been printed
}

func (l *kernelLines) open() {}

func (l *kernelLines) close() {}

func (l *kernelLines) draw(f *kernelFrame) {
	if f.step != l.step {
		l.step = f.step
		text := repairName + ": " + repairText
		if f.step < len(kernelPhases) {
			text = kernelPhases[f.step].name + ": " + kernelPhases[f.step].text
		}
		fmt.Fprintln(l.out, strings.Join(wrap(text, 80), "\n"))
	}
	for _, c := range f.directions {
		var cells []string
		for _, r := range c.rows {
			cells = append(cells, fmt.Sprintf("%s %.1f of %s", r.class.Name, r.rate/1e6, inMbit(r.total())))
		}
		fmt.Fprintf(l.out, "%4.0f s  %-8s  %s mbit\n", f.elapsed.Truncate(time.Second).Seconds(), c.name, strings.Join(cells, ", "))
	}
}
