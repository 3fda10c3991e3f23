package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"shaperd/shaper"
)

// A Report is what came of a demo. Rates are in bits per second, sizes in bytes.
type Report struct {
	Phases []phaseResult `json:"phases"`
	Bursts []burstResult `json:"bursts"`
}

type phaseResult struct {
	Phase   string        `json:"phase"`
	Seconds float64       `json:"seconds"` // measured
	Classes []classResult `json:"classes"`
}

type classResult struct {
	Class       string  `json:"class"`
	Connections int     `json:"connections"`
	Promised    float64 `json:"promised"`
	Measured    float64 `json:"measured"`
	Off         float64 `json:"off_percent"` // 0 for a class that sends nothing
	Reason      string  `json:"reason"`      // of the promise
	Fairness    float64 `json:"fairness"`    // Jain's index among the connections
}

type burstResult struct {
	Class      string      `json:"class"`
	Configured shaper.Size `json:"configured"`
	Measured   shaper.Size `json:"measured"`
	Reason     string      `json:"reason"` // of what is configured
	done       bool
}

// off is how far the burst is above what is configured, in percent.
func (b *burstResult) off() float64 { return percentOff(float64(b.Measured), float64(b.Configured)) }

// percentOff is how far measured is off, in percent of what was promised.
func percentOff(measured, promised float64) float64 { return 100 * (measured/promised - 1) }

// err names what was off by more than the tolerance. A burst is only wrong if
// it is too large: a busy machine makes it smaller.
func (r *Report) err() error {
	var wrong []string
	for _, p := range r.Phases {
		for _, c := range p.Classes {
			if math.Abs(c.Off) > Tolerance {
				wrong = append(wrong, fmt.Sprintf("%s by %+.1f %% in %q", c.Class, c.Off, p.Phase))
			}
		}
	}
	for _, b := range r.Bursts {
		if b.off() > Tolerance {
			wrong = append(wrong, fmt.Sprintf("the burst of %s by %+.1f %%", b.Class, b.off()))
		}
	}
	if wrong == nil {
		return nil
	}
	return &OffError{strings.Join(wrong, ", ")}
}

// writeJSON writes the report for programs.
func (r *Report) writeJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// print writes the report as a table.
func (r *Report) print(out io.Writer) {
	s, width := plain, maxWidth
	if f, ok := terminal(out); ok {
		s = styleOf(os.Getenv)
		width, _ = size(f)
	}
	io.WriteString(out, strings.Join(r.table(s, width), "\n")+"\n")
}

// table returns the report in lines of at most width.
func (r *Report) table(s style, width int) []string {
	t := table{style: s, width: width}
	for _, p := range r.Phases {
		t.head(p.Phase, "promised", "measured", "off", "fairness", "mbit, and why")
		for i, c := range p.Classes {
			off, fairness := "-", "-"
			if c.Promised > 0 {
				off, fairness = offText(c.Off), fmt.Sprintf("%.3f", c.Fairness)
			}
			t.row(i, c.Class, c.Promised/1e6, c.Measured/1e6, off, math.Abs(c.Off) > Tolerance, fairness, c.Reason)
		}
	}
	name, _ := about(len(r.Phases))
	t.head(name, "configured", "at once", "off", "", "kib, after a quiet time")
	for i, b := range r.Bursts {
		off := b.off()
		t.row(i, b.Class, kib(b.Configured), kib(b.Measured), offText(off), off > Tolerance, "", b.Reason)
	}
	t.lines = append(t.lines, "")
	if r.err() == nil {
		t.lines = append(t.lines, s.sgr(green, fmt.Sprintf("%s every class has what the policy promises, within %d %%", s.done, Tolerance)))
	}
	return t.lines
}

func offText(percent float64) string { return fmt.Sprintf("%+.2f %%", percent) }

// A table is a report's lines, with the columns name, promised, measured, off, fairness and why.
type table struct {
	style
	width int
	lines []string
}

func (t *table) head(name, promised, measured, off, fairness, why string) {
	columns := pad(promised, 10) + pad(measured, 11) + pad(off, 10) + pad(fairness, 10)
	t.add(t.sgr(bold, pad(name, -14)), t.sgr(faint, columns), why)
}

func (t *table) row(i int, name string, promised, measured float64, off string, wrong bool, fairness, why string) {
	code := green
	if wrong {
		code = bold + ";" + red
	}
	numbers := fmt.Sprintf("%10.1f%11.1f", promised, measured)
	t.add("  "+t.sgr(classColor(i), pad(name, -12)), numbers+t.sgr(code, pad(off, 10))+pad(fairness, 10), why)
}

// add ends a line with the reason, if there is room to tell it.
func (t *table) add(name, columns, why string) {
	line := name + columns
	if room := t.width - 14 - 41 - 2; why != "" && room >= 20 {
		line += "  " + t.sgr(faint, t.clip(why, room))
	}
	t.lines = append(t.lines, line)
}
