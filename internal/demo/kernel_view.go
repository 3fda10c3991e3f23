package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// A kernelFrame is what is to be seen of the kernel's demo at one moment.
type kernelFrame struct {
	elapsed, total time.Duration
	steps          []string
	step           int
	about          string
	rows           []kernelRow
	link           float64 // bits per second
}

type kernelRow struct {
	promise
	samples []float64
}

// now is the row's rate over the last second.
func (r *kernelRow) now() (rate float64) {
	last := r.samples[max(0, len(r.samples)-int(time.Second/sampleTime)):]
	for _, v := range last {
		rate += v / float64(len(last))
	}
	return rate
}

func (d *kernelDemo) frame(dir *direction) *kernelFrame {
	f := &kernelFrame{
		elapsed: time.Since(d.base), step: d.step, about: dir.about, link: float64(dir.link.Rate),
		total: time.Duration(len(d.directions)) * (d.settle + d.measure),
	}
	for _, dir := range d.directions {
		f.steps = append(f.steps, dir.name)
	}
	f.steps = append(f.steps, "repair")
	if d.step == len(d.directions) {
		f.about = "The router's root qdisc is deleted behind the daemon's back."
	}
	for i, fl := range dir.flows {
		f.rows = append(f.rows, kernelRow{dir.promised[i], fl.samples})
	}
	return f
}

// sparkline draws rates over time, the last ones that there is room for. A rate
// as promised fills seven eighths of the line's height.
func (s style) sparkline(samples []float64, promised float64, width int) string {
	levels := []rune("▁▂▃▄▅▆▇█")
	if s.glyphs == ascii {
		levels = []rune("_.,-=+*#")
	}
	var b strings.Builder
	for _, v := range samples[max(0, len(samples)-width):] {
		level := int(v/promised*float64(len(levels)-1) + 0.5)
		b.WriteRune(levels[min(max(level-1, 0), len(levels)-1)])
	}
	return b.String()
}

// render draws the frame in lines of at most width.
func (f *kernelFrame) render(s style, width, height int) []string {
	width = min(max(width, minWidth), maxWidth)
	p := painter{style: s, bar: width - nameWidth - valueWidth}
	p.line(" ", p.sgr(bold, "shaperd demo --kernel"), ": a router shapes between client and server")
	p.line()
	p.steps(f.steps, f.step, f.elapsed, f.total, width)
	for _, l := range wrap(f.about, width-5) {
		p.line("   ", l)
	}
	p.line()
	sum := 0.0
	for i := range f.rows {
		r := &f.rows[i]
		p.row(i, r.class.Name, p.sgr(classColor(i), pad(p.sparkline(r.samples, r.total(), p.bar), -p.bar)),
			fmt.Sprintf("%.1f of %.1f mbit", r.now()/1e6, r.total()/1e6))
		note := fmt.Sprintf("%s; priority %d", r.reason(), r.class.Priority)
		if r.class.Mode.String() == "leaky" {
			note += ", leaky"
		}
		p.note(note)
		sum += r.now()
	}
	p.row(-1, "link", p.meter(f.link, 0, segment{sum, p.own, bold}), fmt.Sprintf("%.1f of %.1f mbit", sum/1e6, f.link/1e6))
	p.line()
	p.legend("time goes to the right; a line at ▇ is what the policy promises")
	return p.lines[:min(len(p.lines), max(height, 1))]
}

// kernelView returns how frames are shown on out, and how to end that.
func kernelView(out io.Writer) (draw func(*kernelFrame), closeView func()) {
	if f, ok := terminal(out); ok {
		s := newScreen(f)
		return func(k *kernelFrame) { s.show(k.render) }, s.close
	}
	said, next := -1, time.Second
	return func(k *kernelFrame) {
		if k.step != said {
			said = k.step
			fmt.Fprintln(out, strings.Join(wrap(k.steps[k.step]+": "+k.about, 80), "\n"))
		}
		if k.elapsed < next || k.step == len(k.steps)-1 {
			return
		}
		next = k.elapsed.Truncate(time.Second) + time.Second
		cells := make([]string, 0, len(k.rows))
		for i := range k.rows {
			cells = append(cells, fmt.Sprintf("%s %.1f of %s", k.rows[i].class.Name, k.rows[i].now()/1e6, inMbit(k.rows[i].total())))
		}
		fmt.Fprintf(out, "%4.0f s  %s mbit\n", k.elapsed.Truncate(time.Second).Seconds(), strings.Join(cells, ", "))
	}, func() {}
}
