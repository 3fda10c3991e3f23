package demo

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// A kernelReport is what came of the kernel's demo. Rates are in bits per
// second, as the kernel counts: with the headers of Ethernet, IP and TCP.
type kernelReport struct {
	Phases []kernelPhaseResult `json:"phases"`
	Repair repairResult        `json:"repair"`
}

type kernelPhaseResult struct {
	Phase      string            `json:"phase"`
	Seconds    float64           `json:"seconds"` // measured
	Directions []directionResult `json:"directions"`
}

type directionResult struct {
	Direction string              `json:"direction"`
	Classes   []kernelClassResult `json:"classes"`
}

type kernelClassResult struct {
	Class    string  `json:"class"`
	Promised float64 `json:"promised"`
	Measured float64 `json:"measured"`
	Off      float64 `json:"off_percent"` // 0 for a class that sends nothing
	Reason   string  `json:"reason"`      // of the promise
}

type repairResult struct {
	Command string  `json:"command"` // what deleted something
	Seconds float64 `json:"seconds"` // from before the command to the daemon's word that all is back
}

// err names what was off by more than the tolerance.
func (r *kernelReport) err() error {
	var wrong []string
	for _, p := range r.Phases {
		for _, d := range p.Directions {
			for _, c := range d.Classes {
				if math.Abs(c.Off) > Tolerance {
					wrong = append(wrong, fmt.Sprintf("%s by %+.1f %% in %q, %s", c.Class, c.Off, p.Phase, d.Direction))
				}
			}
		}
	}
	return offBy(Tolerance, wrong)
}

// print writes the picture of all of it, and the report as a table.
func (d *kernelDemo) print(out io.Writer) error {
	s, width := outputStyle(out)
	p := painter{style: s}
	p.plots(d.frame(d.total), min(max(width, minWidth), maxWidth), picture)
	return writeLines(out, append(append(p.lines, ""), d.report.table(s)...))
}

// table returns the report in lines of at most 80.
func (r *kernelReport) table(s style) (lines []string) {
	add := func(parts ...string) { lines = append(lines, strings.TrimRight(strings.Join(parts, ""), " ")) }
	for n, p := range r.Phases {
		heads := []string{s.sgr(bold, pad(p.Phase, -15))}
		for _, dir := range p.Directions {
			heads = append(heads, s.sgr(faint, pad(dir.Direction, 11)+pad("measured", 11)+pad("off", 10)))
		}
		add(heads...)
		for i, first := range p.Directions[0].Classes {
			cells := []string{"  ", s.sgr(classColor(i), pad(first.Class, -13))}
			for _, dir := range p.Directions {
				c := dir.Classes[i]
				off := "-"
				if c.Promised > 0 {
					off = fmt.Sprintf("%+.2f %%", c.Off)
				}
				cells = append(cells, fmt.Sprintf("%11.1f%11.1f", c.Promised/1e6, c.Measured/1e6), s.judged(math.Abs(c.Off) > Tolerance, pad(off, 10)))
			}
			add(cells...)
		}
		if n < len(r.Phases)-1 {
			add()
		}
	}
	add()
	verdict := s.sgr(green, fmt.Sprintf("%s every class has what the policy promises, both ways, within %d %%", s.done, Tolerance))
	if r.err() != nil { // which the caller prints
		verdict = tryAgain
	}
	add(verdict)
	took := time.Duration(r.Repair.Seconds * float64(time.Second))
	add(s.sgr(green, fmt.Sprintf("%s %d ms after %q the daemon had put all of it back", s.done, took.Milliseconds(), r.Repair.Command)))
	for _, l := range wrap("In mbit, by the packets that reach the hosts, as the kernel counts: with the headers of Ethernet, IP and TCP. Half of the connections are IPv6.", 80) {
		add(s.sgr(faint, l))
	}
	return lines
}
