package top

import (
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	"shaperd/internal/figures"
)

// frame is all that is on the terminal, each line at most as wide as it.
func (m *Model) frame() string {
	if m.width < 1 || m.height < 1 {
		return ""
	}
	lines := m.header()
	height := m.bodyHeight()
	var body []string
	place := ""
	switch {
	case m.help:
		body, height = m.helpLines(), m.height
	case m.status == nil:
	case m.list != nil:
		lines = append(lines, m.listHead()...)
		body = m.listBody(height)
		place = m.placeOf(m.list.scroll, len(body), len(m.list.sessions))
	default:
		rows := m.rows()
		widths := m.fit(rows)
		all := m.body(rows)
		shown := all[min(m.scroll, len(all)):min(m.scroll+height, len(all))]
		lines = append(lines, "", m.titles(widths))
		for _, n := range shown {
			body = append(body, m.rowLine(rows, n, widths))
		}
		if len(rows) == 0 {
			body = []string{m.line(m.width, false, span{"  " + m.emptiness(), faint})}
		}
		place = m.placeOf(m.scroll, len(shown), len(all))
	}
	lines = append(lines, body[:min(len(body), height)]...)
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	lines = lines[:max(min(len(lines), m.height-1), 0)]
	if m.detailed() {
		lines[len(lines)-1] = m.details()
	}
	lines = append(lines, m.footer(place))
	return strings.Join(lines, "\n")
}

// bodyHeight is how many lines are left for rows: without the header, the titles
// and the keys.
func (m *Model) bodyHeight() int {
	titles := 2
	if m.list != nil {
		titles = 3 // with its heading
	}
	if m.detailed() {
		titles++
	}
	return max(m.height-len(m.header())-titles-1, 1)
}

// roomy is the height from which on there is a line for the details.
const roomy = 16

// detailed reports whether the row that is selected has a line of its own.
func (m *Model) detailed() bool {
	return m.height >= roomy && m.list == nil && !m.help && m.status != nil
}

// details are what the policy gives the row that is selected: what its bar is
// measured by, in numbers.
func (m *Model) details() string {
	rows := m.rows()
	if len(rows) == 0 {
		return ""
	}
	r := &rows[m.selected(rows)]
	titles, rate, ceil := [2]string{"  rate ", "  ceil "}, configured(r.link.Rate), ""
	if r.link.Rate == 0 {
		rate = "without a limit"
	}
	name := r.key.link
	if c := r.class; c != nil {
		name = r.key.class + " on " + r.key.link
		rate = configured(c.Rate) + " " + string(m.mark)
		switch {
		case r.share != nil:
			titles = [2]string{"  share ", "  of "}
			rate, ceil = figures.Bits(float64(r.share.Part(c)))+" "+string(m.mark), configured(r.share.Budget)+" for all hosts"
		case c.Ceil > 0:
			ceil = configured(c.Ceil)
		case r.link.Rate > 0:
			ceil = configured(r.link.Rate) + ", the link's rate"
		default:
			ceil = "none: full is the peak"
		}
	}
	spans := []span{{name, strong}, {titles[0], faint}, {rate, plain}}
	if ceil != "" {
		spans = append(spans, span{titles[1], faint}, span{ceil, plain})
	}
	if r.class != nil && r.class.Burst > 0 {
		spans = append(spans, span{"  burst ", faint}, span{figures.Bytes(uint64(r.class.Burst)), plain})
	}
	return m.line(m.width, false, spans...)
}

// emptiness says why there is no row.
func (m *Model) emptiness() string {
	if m.filter != "" {
		return "no link or class has " + strconv.Quote(m.filter) + " in its name"
	}
	return "the policy has no links"
}

// titles are the columns' titles. That of the bar is its scale.
func (m *Model) titles(widths [len(columns)]int) string {
	between := strings.Repeat(" ", gap)
	var text strings.Builder
	text.WriteString(between)
	for i, w := range widths {
		switch {
		case w == 0:
			continue
		case i == colBar:
			text.WriteString("0 " + strings.Repeat(string(m.empty), w-len("0  ceil")) + " ceil")
		default:
			text.WriteString(m.pad(columns[i].title, w, columns[i].right))
		}
		text.WriteString(between)
	}
	return m.line(m.width, false, span{strings.TrimRight(text.String(), " "), faint})
}

// rowLine draws a row.
func (m *Model) rowLine(rows []row, n int, widths [len(columns)]int) string {
	if n == blank {
		return ""
	}
	r := &rows[n]
	selected := r.key == m.cursor
	spans := []span{{"  ", plain}}
	if selected {
		spans[0].text = m.pointer
	}
	if r.class == nil {
		return m.line(m.width, selected, append(spans, m.linkSpans(r, widths)...)...)
	}
	t := m.tracks[r.key]
	for i, w := range widths {
		if w == 0 {
			continue
		}
		c := &columns[i]
		cell := c.cell(m, r, t, w)
		if len(cell) == 1 {
			cell[0].text = m.pad(cell[0].text, w, c.right)
		}
		spans = append(append(spans, cell...), span{strings.Repeat(" ", gap), plain})
	}
	return m.line(m.width, selected, trimmed(spans)...)
}

// linkSpans are a link's name and rate, its last minute, and what is wrong with it.
func (m *Model) linkSpans(r *row, widths [len(columns)]int) []span {
	l := r.link
	rate := " without a limit"
	if l.Rate > 0 {
		rate = " of " + configured(l.Rate)
	}
	spans := []span{{l.Name, strong}, {"  " + figures.Bits(l.Achieved) + rate, plain}}
	// Bar and minute stand below those of the classes, where the text leaves room.
	at := 0
	for i, w := range widths {
		if room := at - widthOf(spans); room > 0 && w > 0 && (i == colBar || i == colMinute) {
			spans = append(spans, span{strings.Repeat(" ", room), plain})
			if i == colBar {
				spans = append(spans, m.bar(l.Achieved, 0, m.scaleOf(r), w)...)
			} else {
				spans = append(spans, span{m.minute(&m.tracks[r.key].history, m.scaleOf(r), w), plain})
			}
		}
		if w > 0 {
			at += w + gap
		}
	}
	if l.Applied != nil && *l.Applied != l.Rate {
		spans = append(spans, span{"  the kernel has " + figures.Bits(float64(*l.Applied)), warn})
	}
	if l.Unshaped > 0 {
		spans = append(spans, span{"  " + figures.Count(l.Unshaped) + " packets unshaped", warn})
	}
	return trimmed(spans)
}

// trimmed is without blanks at the end.
func trimmed(spans []span) []span {
	for len(spans) > 0 {
		last := &spans[len(spans)-1]
		if last.text = strings.TrimRight(last.text, " "); last.text != "" {
			break
		}
		spans = spans[:len(spans)-1]
	}
	return spans
}

// placeOf says which part of the lines is shown, if not all are.
func (m *Model) placeOf(from, shown, all int) string {
	if shown >= all {
		return ""
	}
	return strconv.Itoa(from+1) + "-" + strconv.Itoa(from+shown) + " of " + strconv.Itoa(all)
}

// footer has the keys that do something now.
func (m *Model) footer(place string) string {
	if m.typing {
		return m.line(m.width, false, span{"filter: ", strong}, span{m.filter + "_", plain}, span{"   enter keep  esc clear", faint})
	}
	keys := [][2]string{{m.updown, "select"}, {"enter", "sessions"}, {"s", "sort"}, {"/", "filter"}, {"p", "pause"}, {"?", "help"}, {"q", "quit"}}
	switch {
	case m.help:
		keys = [][2]string{{"any key", "back"}, {"q", "quit"}}
	case m.list != nil:
		keys = [][2]string{{"esc", "back"}, {m.updown, "scroll"}, {"p", "pause"}, {"?", "help"}, {"q", "quit"}}
	}
	if m.paused {
		for i := range keys {
			if keys[i][0] == "p" {
				keys[i][1] = "go on"
			}
		}
	}
	var spans []span
	for _, k := range keys {
		both := []span{{k[0], strong}, {" " + k[1] + "   ", faint}}
		if widthOf(spans)+widthOf(both) > m.width+3 { // a whole key or none
			break
		}
		spans = append(spans, both...)
	}
	if room := m.width - lipgloss.Width(place); place != "" && widthOf(spans) > room {
		spans = spans[:max(len(spans)-2, 0)]
	}
	return m.spread(m.width, trimmed(spans), place)
}
