package demo

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
)

// A report is what came of a demo. Rates are in bits per second, sizes in bytes.
type report struct {
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

func newClassResult(p *promise, connections int, measured, fairness float64) classResult {
	r := classResult{
		Class: p.class.Name, Connections: connections, Promised: p.total(), Measured: measured, Reason: p.reason(), Fairness: fairness,
	}
	if !p.quiet {
		r.Off = percentOff(measured, r.Promised)
	}
	return r
}

type burstResult struct {
	Class      string `json:"class"`
	Configured int64  `json:"configured"`
	Measured   int64  `json:"measured"`
	Reason     string `json:"reason"` // of what is configured
}

func (b *burstResult) off() float64 { return percentOff(float64(b.Measured), float64(b.Configured)) }

// percentOff is how far measured is off, in percent of what was promised.
func percentOff(measured, promised float64) float64 { return 100 * (measured/promised - 1) }

// offBy is an *OffError that names what was wrong; nil if nothing was.
func offBy(tolerance int, wrong []string) error {
	if wrong == nil {
		return nil
	}
	return &OffError{strings.Join(wrong, "; "), tolerance}
}

// err names what was off by more than the tolerance. A burst is only wrong if
// it is too large: a busy machine makes it smaller.
func (r *report) err() error {
	var wrong []string
	for _, p := range r.Phases {
		for _, c := range p.Classes {
			if math.Abs(c.Off) > Tolerance {
				wrong = append(wrong, fmt.Sprintf("%s by %+.1f %% in %q", c.Class, c.Off, p.Phase))
			}
		}
	}
	for _, b := range r.Bursts {
		if off := b.off(); off > Tolerance {
			wrong = append(wrong, fmt.Sprintf("the burst of %s by %+.1f %%", b.Class, off))
		}
	}
	return offBy(Tolerance, wrong)
}

// print writes the report as a table.
func (r *report) print(out io.Writer) error {
	s, width := outputStyle(out)
	return writeLines(out, r.table(s, width))
}

// tryAgain is said below rates that were off.
const tryAgain = "A busy machine makes rates fall short: try again when it is idle."

// outputStyle returns the style and the width for a report.
func outputStyle(out io.Writer) (s style, width int) {
	s = styleOf(os.Getenv)
	if f, ok := terminal(out); ok {
		width, _ = size(f)
		return s, width
	}
	s.color = false
	return s, maxWidth
}

// table returns the report in lines of at most width.
func (r *report) table(s style, width int) []string {
	t := table{style: s, width: width}
	for _, p := range r.Phases {
		t.head(p.Phase, "promised", "measured", "off", "fairness", "mbit, and why")
		for i, c := range p.Classes {
			off, fairness := "-", "-"
			if c.Promised > 0 {
				off, fairness = fmt.Sprintf("%+.2f %%", c.Off), fmt.Sprintf("%.3f", c.Fairness)
			}
			t.row(i, c.Class, c.Promised/1e6, c.Measured/1e6, off, math.Abs(c.Off) > Tolerance, fairness, c.Reason)
		}
	}
	name, _ := stepText(len(phases))
	t.head(name, "at most", "at once", "reached", "", "kib; delay makes it less")
	for i, b := range r.Bursts {
		off := b.off()
		t.row(i, b.Class, kib(b.Configured), kib(b.Measured), fmt.Sprintf("%.1f %%", 100+off), off > Tolerance, "", b.Reason)
	}
	verdict := s.sgr(green, fmt.Sprintf("%s every class has what the policy promises, within %d %%", s.done, Tolerance))
	if r.err() != nil { // which the caller prints
		verdict = tryAgain
	}
	t.lines = append(t.lines, "", verdict, s.sgr(faint, "Measured by the receivers, in payload. Fairness: Jain's index among connections."))
	return t.lines
}

// A table is a report's lines, with the columns name, promised, measured, off, fairness and why.
type table struct {
	style
	width int
	lines []string
}

const columnsWidth = 13 + 10 + 10 + 9 + 9

func (t *table) head(name, promised, measured, off, fairness, why string) {
	t.add(t.sgr(bold, pad(name, -13)), t.sgr(faint, pad(promised, 10)+pad(measured, 10)+pad(off, 9)+pad(fairness, 9)), why)
}

func (t *table) row(i int, name string, promised, measured float64, off string, wrong bool, fairness, why string) {
	numbers := fmt.Sprintf("%10.1f%10.1f", promised, measured) + t.judged(wrong, pad(off, 9)) + pad(fairness, 9)
	t.add("  "+t.sgr(classColor(i), pad(name, -11)), numbers, why)
}

// add ends a line with the reason, if there is room to tell it.
func (t *table) add(name, columns, why string) {
	if room := t.width - columnsWidth - 2; room >= 20 {
		columns += "  " + t.sgr(faint, t.clip(why, room))
	}
	t.lines = append(t.lines, name+strings.TrimRight(columns, " "))
}
