package demo

import (
	"fmt"
	"strings"
	"time"

	"shaperd/shaper"
)

// A kernelFrame is what is to be seen of the kernel's demo at one moment.
type kernelFrame struct {
	elapsed, total time.Duration
	step           int
	begins         []time.Duration // of the steps
	directions     []kernelColumn
}

// A kernelColumn is one direction of it.
type kernelColumn struct {
	name string
	link float64 // bits per second
	rows []kernelRow
}

type kernelRow struct {
	promise
	rate float64 // over the last second
	plot plot
}

const (
	kernelNameWidth  = 11
	kernelValueWidth = 9
	kernelPlotHeight = 2
	kernelGap        = 2
	kernelHeadroom   = 8. / 7 // of what was promised, above which a plot ends
	liveWindow       = time.Second
)

// matches say how the demo's classes are told apart.
var matches = map[string]string{"voice": "dscp ef", "web": "port 443", "backup": "port 873", "bulk": "the rest"}

// frame is what is to be seen now.
func (d *kernelDemo) frame(now time.Duration) *kernelFrame {
	f := &kernelFrame{elapsed: now, total: d.total, step: d.step, begins: d.begins}
	for _, dir := range d.directions {
		c := kernelColumn{name: dir.name, link: float64(dir.link.Rate)}
		for i, fl := range dir.flows {
			c.rows = append(c.rows, kernelRow{dir.promised[i], lately(fl.samples, now), plot{fl.top * kernelHeadroom, d.total, fl.samples}})
		}
		f.directions = append(f.directions, c)
	}
	return f
}

// lately is the mean of the samples of the last second.
func lately(samples []sample, now time.Duration) (rate float64) {
	n := 0
	for i := len(samples) - 1; i >= 0 && samples[i].at > now-liveWindow; i-- {
		rate += samples[i].rate
		n++
	}
	return rate / float64(max(n, 1))
}

// A detail is how much is said of the classes.
type detail int

const (
	picture detail = iota // the plots only
	values                // and the rates of now
	reasons               // and why they are as they are
)

// render draws the frame in lines of at most width. If there are more lines than
// height, the reasons are left out, then empty lines, then the last.
func (f *kernelFrame) render(s style, width, height int) []string {
	width = min(max(width, minWidth), maxWidth)
	for _, much := range []detail{reasons, values} {
		p := painter{style: s}
		p.kernelHeader(f, width)
		p.plots(f, width, much)
		p.line()
		p.line(" ", s.sgr(faint, p.clip("each class's rate over time; the most that it is promised is 7/8 of the height", width-1)))
		if much == values || len(p.lines) <= height {
			return p.fit(height)
		}
	}
	return nil
}

func (f *kernelFrame) text() (about string, lines []string) {
	for _, c := range f.directions {
		var cells []string
		for _, r := range c.rows {
			cells = append(cells, fmt.Sprintf("%s %.1f of %s", r.class.Name, r.rate/1e6, inMbit(r.total())))
		}
		lines = append(lines, fmt.Sprintf("%4.0f s  %-8s  %s mbit", f.elapsed.Truncate(time.Second).Seconds(), c.name, strings.Join(cells, ", ")))
	}
	if f.step < len(kernelPhases) {
		return kernelPhases[f.step].name + ": " + kernelPhases[f.step].text, lines
	}
	return repairName + ": " + repairText, lines
}

// kernelSteps names the phases, and the repair.
func kernelSteps() (names []string) {
	for _, k := range kernelPhases {
		names = append(names, k.name)
	}
	return append(names, repairName)
}

func (p *painter) kernelHeader(f *kernelFrame, width int) {
	const name, about = "shaperd demo --kernel", ": client, server, and a router that shapes between them"
	p.line(" ", p.sgr(bold, name), p.clip(about, width-1-len(name)))
	p.line()
	p.steps(kernelSteps(), f.step, f.elapsed, f.total, width)
	text := repairText
	if f.step < len(kernelPhases) {
		text = kernelPhases[f.step].text
	}
	for _, l := range wrap(text, width-5) {
		p.line("   ", l)
	}
	p.line()
}

// plots draws the directions side by side.
func (p *painter) plots(f *kernelFrame, width int, much detail) {
	p.bar = (width - kernelNameWidth - kernelGap*(len(f.directions)-1)) / len(f.directions)
	if much >= values {
		p.bar -= kernelValueWidth
	}
	heads, axis := []string{strings.Repeat(" ", kernelNameWidth)}, []string{strings.Repeat(" ", kernelNameWidth)}
	total := []string{" " + p.sgr(bold, pad("link", 1-kernelNameWidth))}
	var labels []string
	for _, k := range kernelPhases {
		labels = append(labels, k.label)
	}
	labels = append(labels, repairName)
	for i, c := range f.directions {
		title := pad(p.clip(fmt.Sprintf("%s, %s mbit", c.name, inMbit(c.link)), p.bar), -p.bar)
		var rates []float64
		for _, r := range c.rows {
			rates = append(rates, r.rate)
		}
		bar, sum := p.division(c.link, rates)
		unit, room, rate := "", p.bar, ""
		if much >= values {
			unit, room = p.sgr(faint, pad("mbit", kernelValueWidth)), p.bar+kernelValueWidth
			rate = pad(fmt.Sprintf("%.1f", sum/1e6), kernelValueWidth)
		}
		heads = append(heads, gap(i), p.sgr(bold, title), unit)
		axis = append(axis, gap(i), p.sgr(faint, p.axisOf(f.begins, labels, f.total, room)))
		total = append(total, gap(i), bar, rate)
	}
	p.line(strings.TrimRight(strings.Join(heads, ""), " "))
	for i := range f.directions[0].rows {
		p.class(f, i, much)
	}
	p.line(strings.TrimRight(strings.Join(axis, ""), " "))
	if much >= values {
		p.line(total...)
	}
}

// axisOf names the steps below a plot, each where it begins.
func (p *painter) axisOf(begins []time.Duration, labels []string, total time.Duration, width int) string {
	cells := []rune(strings.Repeat(" ", width))
	for i, begin := range begins {
		at := int(float64(begin) / float64(total) * float64(p.bar))
		label := []rune(p.axisMark + labels[i])
		copy(cells[max(min(at, width-len(label)), 0):], label)
	}
	return string(cells)
}

func gap(i int) string { return strings.Repeat(" ", min(i, 1)*kernelGap) }

// class draws the lines of a class.
func (p *painter) class(f *kernelFrame, i int, much detail) {
	first := f.directions[0].rows[i].class
	color := classColor(i)
	names := []string{p.sgr(bold+";"+color, pad(first.Name, 1-kernelNameWidth)), p.sgr(faint, pad(matches[first.Name], 1-kernelNameWidth))}
	lines := []string{" " + names[0], " " + names[1]}
	note := pad("", -kernelNameWidth)
	if first.Mode == shaper.Leaky {
		note = " " + p.sgr(faint, pad("leaky", 1-kernelNameWidth))
	}
	for n, c := range f.directions {
		r := &c.rows[i]
		numbers := []string{pad(fmt.Sprintf("%.1f", r.rate/1e6), kernelValueWidth), p.sgr(faint, pad("of "+inMbit(r.total()), kernelValueWidth))}
		if much < values {
			numbers = []string{"", ""}
		}
		for k, l := range r.plot.draw(p.style, p.bar, kernelPlotHeight) {
			lines[k] += gap(n) + p.sgr(color, l) + numbers[k]
		}
		note += gap(n) + p.sgr(faint, pad(p.clip(r.reason(), p.bar+kernelValueWidth), -p.bar-kernelValueWidth))
	}
	if much == reasons {
		lines = append(lines, note)
	}
	for _, l := range lines {
		p.line(strings.TrimRight(l, " "))
	}
}
