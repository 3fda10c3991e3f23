package demo

import (
	"fmt"
	"strings"
	"time"
)

// A sharedFrame is what is to be seen of the demo of shared classes at one moment.
type sharedFrame struct {
	elapsed, total time.Duration
	steps          []sharedStep
	step           int
	begins         []time.Duration // of the steps
	rate           float64         // of all together, in bits per second
	rows           []sharedRow     // of each relay, then their sum
}

// A sharedRow is a relay, or all of them. Rates are in bits per second.
type sharedRow struct {
	name, note     string
	rate, promised float64 // rate is over the last second
	samples        []sample
}

const (
	sharedNameWidth = 11
	leastPlotHeight = 2
	mostPlotHeight  = 6
)

// frame is what is to be seen now.
func (d *sharedDemo) frame(now time.Duration) *sharedFrame {
	f := &sharedFrame{elapsed: now, total: d.total, steps: d.steps, step: d.step, begins: d.begins, rate: float64(d.class.Budget)}
	sum := sharedRow{name: "sum", note: "at most"}
	for i, h := range d.hosts {
		r := sharedRow{h.name, inWords(d.steps[d.step].wants[i]), lately(h.samples, now), d.promised[i], h.samples}
		f.rows = append(f.rows, r)
		sum.rate += r.rate
		for n, s := range h.samples {
			if n == len(sum.samples) {
				sum.samples = append(sum.samples, sample{at: s.at})
			}
			sum.samples[n].rate += s.rate
		}
	}
	sum.promised = f.rate
	f.rows = append(f.rows, sum)
	return f
}

// inWords says what a relay's clients want.
func inWords(wants float64) string {
	switch wants {
	case 0:
		return "is quiet"
	case all:
		return "wants all"
	}
	return "wants " + inMbit(wants)
}

func (f *sharedFrame) text() (about string, lines []string) {
	var cells []string
	for _, r := range f.rows {
		cells = append(cells, fmt.Sprintf("%s %.1f of %s", r.name, r.rate/1e6, inMbit(r.promised)))
	}
	line := fmt.Sprintf("%4.0f s  %s mbit", f.elapsed.Truncate(time.Second).Seconds(), strings.Join(cells, ", "))
	return f.steps[f.step].name + ": " + f.steps[f.step].text, []string{line}
}

// render draws the frame in lines of at most width. If there are more lines than
// height, empty ones are left out, then the last.
func (f *sharedFrame) render(s style, width, height int) []string {
	width = min(max(width, minWidth), maxWidth)
	p := painter{style: s}
	const name = "shaperd demo --shared"
	p.line(" ", p.sgr(bold, name), p.clip(fmt.Sprintf(": three relays, each a daemon of its own, share %s mbit", inMbit(f.rate)), width-1-len(name)))
	p.line()
	var names []string
	for _, k := range f.steps {
		names = append(names, k.name)
	}
	p.steps(names, f.step, f.elapsed, f.total, width)
	for _, l := range wrap(f.steps[f.step].text, width-5) {
		p.line("   ", l)
	}
	p.line()
	const others = 5 // lines: the head, the axis, the division, an empty one, the legend
	p.shared(f, width, (height-len(p.lines)-others)/len(f.rows))
	p.line()
	p.line(" ", s.sgr(faint, p.clip("each relay's rate over time, and the sum; 7/8 of the height are all of the rate", width-1)))
	return p.fit(height)
}

// shared draws the plots, all on one scale, and how the rate is divided now.
func (p *painter) shared(f *sharedFrame, width, height int) {
	p.bar = width - sharedNameWidth - kernelValueWidth
	height = min(max(height, leastPlotHeight), mostPlotHeight)
	p.line(strings.Repeat(" ", width-kernelValueWidth), p.sgr(faint, pad("mbit", kernelValueWidth)))
	var rates []float64
	for i, r := range f.rows {
		color := classColor(i)
		plot := plot{f.rate * kernelHeadroom, f.total, r.samples}
		for k, l := range plot.draw(p.style, p.bar, height) {
			name, value := "", ""
			switch k {
			case 0:
				name, value = p.sgr(bold+";"+color, pad(r.name, 1-sharedNameWidth)), pad(fmt.Sprintf("%.1f", r.rate/1e6), kernelValueWidth)
			case 1:
				name, value = p.sgr(faint, pad(r.note, 1-sharedNameWidth)), p.sgr(faint, pad("of "+inMbit(r.promised), kernelValueWidth))
			default:
				name = strings.Repeat(" ", sharedNameWidth-1)
			}
			p.line(strings.TrimRight(" "+name+p.sgr(color, l)+value, " "))
		}
		if i < len(f.rows)-1 {
			rates = append(rates, r.rate)
		}
	}
	var labels []string
	for _, k := range f.steps {
		labels = append(labels, k.label)
	}
	p.line(strings.Repeat(" ", sharedNameWidth), p.sgr(faint, strings.TrimRight(p.axisOf(f.begins, labels, f.total, p.bar+kernelValueWidth), " ")))
	bar, sum := p.division(f.rate, rates)
	p.line(" ", p.sgr(bold, pad("now", 1-sharedNameWidth)), bar, pad(fmt.Sprintf("%.1f", sum/1e6), kernelValueWidth))
}
