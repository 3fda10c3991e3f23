package demo

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"shaperd/shaper"
)

// A frame is what is to be seen at one moment: rates while classes send
// together, bursts in the last step.
type frame struct {
	elapsed, total time.Duration
	step           int
	connections    int
	link           float64 // bits per second
	rates          []liveRate
	bursts         []burstResult
}

type liveRate struct {
	promise
	rate        float64 // bits per second
	connections int
}

const (
	nameWidth  = 13
	valueWidth = 21
	minWidth   = 60 // what the terminal does not have of it, it cuts off
	maxWidth   = 120
)

// render draws the frame in lines of at most width. If there are more lines than
// height, empty ones are left out, then the last.
func (f *frame) render(s style, width, height int) []string {
	width = min(max(width, minWidth), maxWidth)
	p := painter{style: s, bar: width - nameWidth - valueWidth}
	p.header(f, width)
	if f.bursts == nil {
		p.rates(f)
	} else {
		p.bursts(f)
	}
	return p.fit(height)
}

func (f *frame) text() (about string, lines []string) {
	name, text := stepText(f.step)
	if f.rates != nil {
		var cells []string
		for _, r := range f.rates {
			cells = append(cells, fmt.Sprintf("%s %.1f of %s", r.class.Name, r.rate/1e6, inMbit(r.total())))
		}
		lines = append(lines, fmt.Sprintf("%4.0f s  %s mbit", f.elapsed.Truncate(time.Second).Seconds(), strings.Join(cells, ", ")))
	}
	return name + ": " + text, lines
}

// A painter collects the lines of a frame.
type painter struct {
	style
	bar   int // cells
	lines []string
}

func (p *painter) line(parts ...string) { p.lines = append(p.lines, strings.Join(parts, "")) }

// fit returns the lines; if there are more than height, empty ones are left out, then the last.
func (p *painter) fit(height int) []string {
	lines := p.lines
	for i := len(lines) - 1; i >= 0 && len(lines) > height; i-- {
		if lines[i] == "" {
			lines = append(lines[:i], lines[i+1:]...)
		}
	}
	return lines[:min(len(lines), max(height, 1))]
}

func (p *painter) header(f *frame, width int) {
	p.line(" ", p.sgr(bold, "shaperd demo"), fmt.Sprintf(": %d connections in %d classes share %s mbit", f.connections, len(f.rates)+len(f.bursts), inMbit(f.link)))
	p.line()
	var names []string
	for i := range len(phases) + 1 {
		name, _ := stepText(i)
		names = append(names, name)
	}
	p.steps(names, f.step, f.elapsed, f.total, width)
	_, text := stepText(f.step)
	for _, l := range wrap(text, width-5) {
		p.line("   ", l)
	}
	p.line()
}

// steps draws which steps there are and which is the current one, and the clock.
// Where there is no room for the names, there is only the current one's.
func (p *painter) steps(names []string, current int, elapsed, total time.Duration, width int) {
	clock := fmt.Sprintf("%.0f of %.0f s", math.Floor(min(elapsed, total).Seconds()), total.Seconds())
	if used := len(strings.Join(names, "   ")) + 3; used+1+len(clock) > width {
		name := fmt.Sprintf("%s (%d of %d)", names[current], current+1, len(names))
		p.line(" ", p.sgr(bold, p.current+" "+name), p.sgr(faint, pad(clock, width-3-len(name))))
		return
	}
	steps, used := "", 0
	for i, name := range names {
		code, sign := faint, " "
		switch {
		case i < current:
			sign = p.done
		case i == current:
			code, sign = bold, p.current
		}
		steps += " " + p.sgr(code, sign+" "+name)
		used += 3 + len(name)
	}
	p.line(steps, p.sgr(faint, p.clip(pad(clock, width-used), width-used)))
}

func (p *painter) rates(f *frame) {
	p.axis(f.link/1e6, "mbit")
	var rates []float64
	for i, r := range f.rates {
		rate, color := float64(r.class.Rate), classColor(i)
		ceil := float64(cmp.Or(r.class.Ceil, shaper.Rate(f.link)))
		p.row(i, r.class.Name, p.meter(f.link, rate, segment{min(r.rate, rate), p.own, color}, segment{r.rate, p.borrowed, color}, segment{ceil, p.room, faint}),
			fmt.Sprintf("%.1f of %.1f mbit", r.rate/1e6, r.total()/1e6))
		note := fmt.Sprintf("%s; priority %d, %d connections", r.reason(), r.class.Priority, r.connections)
		if r.class.Mode == shaper.Leaky {
			note += ", leaky"
		}
		p.note(note)
		rates = append(rates, r.rate)
	}
	bar, sum := p.division(f.link, rates)
	p.row(-1, "link", bar, fmt.Sprintf("%.1f of %.1f mbit", sum/1e6, f.link/1e6))
	p.line()
	p.legend(p.own+" guaranteed", p.borrowed+" borrowed", p.room+" up to its ceil", p.mark+" its guarantee, unused")
}

func (p *painter) bursts(f *frame) {
	scale := 0.0
	for _, b := range f.bursts {
		scale = max(scale, kib(b.Configured))
	}
	p.axis(scale, "kib")
	for i, b := range f.bursts {
		p.row(i, b.Class, p.meter(scale, 0, segment{kib(b.Measured), p.own, classColor(i)}, segment{kib(b.Configured), p.room, faint}),
			fmt.Sprintf("%.1f of %.1f kib", kib(b.Measured), kib(b.Configured)))
		p.note(b.Reason)
	}
	p.line()
	p.line()
	p.legend(p.own+" left at once", p.room+" configured")
}

func kib(bytes int64) float64 { return float64(bytes) / float64(shaper.KiB) }

// axis draws the scale above the bars.
func (p *painter) axis(scale float64, unit string) {
	const ticks = 4
	cells := []rune(strings.Repeat(" ", p.bar))
	for i := range ticks + 1 {
		label := []rune(fmt.Sprintf("%.0f", scale*float64(i)/ticks))
		at := p.bar*i/ticks - len(label)/2
		copy(cells[min(max(at, 0), p.bar-len(label)):], label)
	}
	p.line(strings.Repeat(" ", nameWidth), p.sgr(faint, string(cells)+" "+unit))
}

// row draws a bar with its name in front, in the color of class i, and its value behind.
func (p *painter) row(i int, name, bar, value string) {
	code := bold
	if i >= 0 {
		code += ";" + classColor(i)
	}
	p.line(" ", p.sgr(code, pad(name, -(nameWidth-1))), bar, pad(value, valueWidth-1))
}

// note draws a line below a bar, and one to set the next off.
func (p *painter) note(text string) {
	p.line(strings.Repeat(" ", nameWidth), p.sgr(faint, p.clip(text, p.bar+valueWidth-1)))
	p.line()
}

func (p *painter) legend(keys ...string) {
	p.line(" ", p.sgr(faint, p.clip(strings.Join(keys, "   "), nameWidth+p.bar+valueWidth-2)))
}

// A segment of a bar reaches from the one before it to end.
type segment struct {
	end          float64
	glyph, color string
}

// meter draws segments in order of their ends, and a mark if it lies beyond the
// first two.
func (p *painter) meter(scale, mark float64, segments ...segment) string {
	cell := func(v float64) int { return min(int(math.Round(v/scale*float64(p.bar))), p.bar) }
	var out strings.Builder
	from := 0
	for i, s := range segments {
		var text strings.Builder
		for ; from < cell(s.end); from++ {
			if i >= 2 && from == cell(mark)-1 {
				text.WriteString(p.mark)
			} else {
				text.WriteString(s.glyph)
			}
		}
		out.WriteString(p.sgr(s.color, text.String()))
	}
	return out.String() + strings.Repeat(" ", p.bar-from)
}

// division draws a bar of what each has of the whole, or of the sum of all if that
// is more, which it returns.
func (p *painter) division(whole float64, rates []float64) (bar string, sum float64) {
	var parts []segment
	for i, rate := range rates {
		sum += rate
		glyph := p.own
		if !p.color && i%2 == 1 {
			glyph = p.borrowed
		}
		parts = append(parts, segment{sum, glyph, classColor(i)})
	}
	return p.meter(max(whole, sum), 0, parts...), sum
}
