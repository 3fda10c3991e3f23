package demo

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// SharedTolerance is how far a relay may be off its share, in percent: a lease is
// somewhat more than what its holder uses, and others have so much less.
const SharedTolerance = 8

// A sharedReport is what came of the demo of shared classes. Rates are in bits
// per second, of payload, sizes in bytes.
type sharedReport struct {
	Rate  float64            `json:"rate"` // of all relays together
	Burst int64              `json:"burst"`
	Steps []sharedStepResult `json:"steps"`
}

type sharedStepResult struct {
	Step    string              `json:"step"`
	Seconds float64             `json:"seconds"` // in which shares were measured
	Relays  []sharedRelayResult `json:"relays"`
	Sum     float64             `json:"sum"`              // measured
	Most    int64               `json:"most_in_100ms"`    // bytes, of all relays, in any window of the step
	AtMost  int64               `json:"at_most_in_100ms"` // what the rate and the burst allow
}

type sharedRelayResult struct {
	Relay    string  `json:"relay"`
	Promised float64 `json:"promised"`
	Measured float64 `json:"measured"`
	Off      float64 `json:"off_percent"` // 0 for a relay whose clients want nothing
}

// atMost is how many bytes may pass in a window.
func (r *sharedReport) atMost() int64 {
	return int64(r.Rate/8*sharedWindow.Seconds()) + r.Burst
}

func (s *sharedStepResult) add(relay string, promised, measured float64) {
	r := sharedRelayResult{Relay: relay, Promised: promised, Measured: measured}
	if promised > 0 {
		r.Off = percentOff(measured, promised)
	}
	s.Relays = append(s.Relays, r)
	s.Sum += measured
}

// err names what was off by more than the tolerance, and what was above the rate.
func (r *sharedReport) err() error {
	var wrong []string
	for _, s := range r.Steps {
		for _, h := range s.Relays {
			if math.Abs(h.Off) > SharedTolerance {
				wrong = append(wrong, fmt.Sprintf("%s by %+.1f %% in %q", h.Relay, h.Off, s.Step))
			}
		}
	}
	for _, s := range r.Steps {
		if s.Most > s.AtMost {
			wrong = append(wrong, fmt.Sprintf("the sum by %d bytes above what may pass in %d ms in %q", s.Most-s.AtMost, sharedWindow.Milliseconds(), s.Step))
		}
	}
	return offBy(SharedTolerance, wrong)
}

// print writes the picture of all of it, and the report as a table.
func (d *sharedDemo) print(out io.Writer) error {
	s, width := outputStyle(out)
	p := painter{style: s}
	p.shared(d.frame(d.total), min(max(width, minWidth), maxWidth), leastPlotHeight+1)
	lines := append(append(p.lines[:len(p.lines)-1], ""), d.report.table(s)...) // without how it is divided now
	return writeLines(out, lines)
}

// table returns the report in lines of at most 80.
func (r *sharedReport) table(s style) (lines []string) {
	add := func(parts ...string) { lines = append(lines, strings.TrimRight(strings.Join(parts, ""), " ")) }
	heads := []string{pad("", -15)}
	for i, h := range r.Steps[0].Relays {
		heads = append(heads, s.sgr(classColor(i), pad(h.Relay, 13)))
	}
	add(append(heads, s.sgr(faint, pad("sum", 8)+pad("most in 100 ms", 18)))...)
	ok, over := true, false
	for _, step := range r.Steps {
		cells := []string{s.sgr(bold, pad(step.Step, -15))}
		for _, h := range step.Relays {
			off := math.Abs(h.Off) > SharedTolerance
			ok = ok && !off
			cells = append(cells, s.judged(off, pad(fmt.Sprintf("%.1f of %s", h.Measured/1e6, inMbit(h.Promised)), 13)))
		}
		above := step.Most > step.AtMost
		over = over || above
		most := fmt.Sprintf("%.0f of %.0f kB", float64(step.Most)/1e3, float64(step.AtMost)/1e3)
		add(append(cells, pad(fmt.Sprintf("%.1f", step.Sum/1e6), 8), s.judged(above, pad(most, 18)))...)
	}
	add()
	if ok {
		add(s.sgr(green, fmt.Sprintf("%s each relay has what its clients want, or its fair part of the rate, within %d %%", s.done, SharedTolerance)))
	} else {
		add(tryAgain)
	}
	if !over {
		add(s.sgr(green, fmt.Sprintf("%s all together never had more than %s mbit and the burst, with and without Redis", s.done, inMbit(r.Rate))))
	}
	for _, l := range wrap("Shares in mbit: measured by the receivers, in payload, of what is promised. Most in 100 ms: of any window of the step, beside what the rate and the burst allow.", 80) {
		add(s.sgr(faint, l))
	}
	return lines
}
