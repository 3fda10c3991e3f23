package top

import "strings"

// helpLines explain the keys and the figures. They fit 80x24.
func (m *Model) helpLines() (lines []string) {
	const text = `

KEYS
  up down j k   select; page up and down, home, end
  enter         the sessions of a relay's class; esc goes back
  s             sort classes: policy order, rate now, drops, waiting
  /             only links and classes with a text in their name; esc: all
  p space       pause: what is shown stays
  q ctrl+c      quit

FIGURES
  NOW           a mean: relay over about 5 seconds, kernel over one or more
  0 ... ceil    a bar of NOW. Full is the class's ceil, or else the link's rate;
                % is the guaranteed rate: what is right of it is borrowed. The
                numbers of the class that is selected are above the keys
  MINUTE        the last minute on the same scale, peaks, since this view began
  BORROW        share of what was just sent that was above the guaranteed rate
  WAITING       relay: sessions that wait for their turn / all; kernel: bytes
  DELAY         how long a turn was just waited for, on average
  DROPS         packets that the kernel dropped`
	for line := range strings.Lines(text[1:]) {
		kind := plain
		if !strings.HasPrefix(line, " ") {
			kind = strong
		}
		line = strings.Replace(strings.TrimRight(line, "\n"), "%", string(m.mark), 1)
		lines = append(lines, m.line(m.width, false, span{line, kind}))
	}
	return lines
}
