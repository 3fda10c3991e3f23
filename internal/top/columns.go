package top

import (
	"math"
	"strconv"
	"time"

	"shaperd/internal/figures"
	"shaperd/shaper"
)

// A column is one figure of every class.
type column struct {
	title string
	width int
	rank  int  // the highest go first where the terminal is narrow
	right bool // set at the right
	cell  func(m *Model, r *row, t *track, width int) []span
}

const (
	gap    = 2    // between two columns, and before the first, where the cursor is
	indent = "  " // of classes below their link
)

// Their order on a line.
const (
	colName = iota
	colRate
	colCeil
	colNow
	colBar
	colMinute
	colBorrowed
	colWaiting
	colDelay
	colDrops
)

// columns are all there are. Widths are the least; fit gives more.
var columns = [...]column{
	colName: {title: indent + "CLASS", width: 10, cell: func(_ *Model, r *row, _ *track, _ int) []span {
		return []span{{indent + r.class.Name, plain}}
	}},
	colRate: {title: "RATE", width: 9, rank: 8, right: true, cell: func(_ *Model, r *row, _ *track, _ int) []span {
		if r.share != nil {
			return []span{{figures.Bits(float64(r.share.Part(r.class))), plain}}
		}
		return []span{{configured(r.class.Rate), plain}}
	}},
	colCeil: {title: "CEIL", width: 9, rank: 9, right: true, cell: func(_ *Model, r *row, _ *track, _ int) []span {
		if r.share != nil { // beside RATE it says of what that is a share
			return []span{{"of " + configured(r.share.Budget), plain}}
		}
		return []span{{configured(r.class.Ceil), plain}}
	}},
	colNow: {title: "NOW", width: 8, right: true, cell: func(_ *Model, r *row, _ *track, _ int) []span {
		return []span{{figures.Bits(r.class.Achieved), quiet(r.class.Achieved == 0, plain)}}
	}},
	colBar: {title: "", width: 10, rank: 1, cell: func(m *Model, r *row, _ *track, width int) []span {
		return m.bar(r.class.Achieved, float64(r.class.Rate), m.scaleOf(r), width)
	}},
	colMinute: {title: "MINUTE", width: 10, rank: 3, cell: func(m *Model, r *row, t *track, width int) []span {
		return []span{{m.minute(&t.history, m.scaleOf(r), width), plain}}
	}},
	colBorrowed: {title: "BORROW", width: 6, rank: 4, right: true, cell: func(_ *Model, _ *row, t *track, _ int) []span {
		if math.IsNaN(t.borrowed) || t.borrowed == 0 {
			return []span{{"-", faint}}
		}
		return []span{{strconv.Itoa(int(t.borrowed*100+0.5)) + "%", borrowed}}
	}},
	colWaiting: {title: "WAITING", width: 8, rank: 2, right: true, cell: func(_ *Model, r *row, _ *track, _ int) []span {
		if r.link.Datapath == "relay" {
			if r.class.Sessions == 0 {
				return []span{{"-", faint}}
			}
			return []span{{strconv.Itoa(r.class.Backlogged) + "/" + strconv.Itoa(r.class.Sessions), plain}}
		}
		return []span{{figures.Bytes(r.class.Backlog), quiet(r.class.Backlog == 0, plain)}}
	}},
	colDelay: {title: "DELAY", width: 6, rank: 6, right: true, cell: func(_ *Model, _ *row, t *track, _ int) []span {
		if t.wait < 0 {
			return []span{{"-", faint}}
		}
		return []span{{milliseconds(t.wait), plain}}
	}},
	colDrops: {title: "DROPS", width: 6, rank: 5, right: true, cell: func(_ *Model, r *row, t *track, _ int) []span {
		switch {
		case r.link.Datapath == "relay":
			return []span{{"-", faint}}
		case t.drops > 0:
			return []span{{figures.Count(r.class.Dropped), warn}}
		}
		return []span{{figures.Count(r.class.Dropped), quiet(r.class.Dropped == 0, plain)}}
	}},
}

// quiet sets nothing back, so that what is something is seen.
func quiet(nothing bool, otherwise kind) kind {
	if nothing {
		return faint
	}
	return otherwise
}

// configured writes a rate as exactly as the policy does; 0 is none.
func configured(n int64) string {
	if n == 0 {
		return "-"
	}
	return shaper.Rate(n).String()
}

// milliseconds writes how long a turn was waited for.
func milliseconds(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return strconv.FormatFloat(d.Seconds()*1e3, 'f', 1, 64) + "ms"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
}

// widest is how wide a column gets where there is room.
const (
	widestName   = 28
	usefulBar    = 18 // then the minute gets more
	usefulMinute = 20 // of 3 seconds each
	widestBar    = 40
)

// fit gives each column its width on a terminal; 0 is left out. What no class
// can have is left out first, then the highest rank.
func (m *Model) fit(rows []row) (widths [len(columns)]int) {
	longest, relay, kernel := 0, false, false
	for i := range rows {
		if rows[i].class != nil {
			longest = max(longest, len(indent)+len(rows[i].class.Name))
			relay = relay || rows[i].link.Datapath == "relay"
			kernel = kernel || rows[i].link.Datapath != "relay"
		}
	}
	total, worst := 0, 0
	for i := range columns {
		widths[i] = columns[i].width
	}
	widths[colName] = min(max(longest, widths[colName]), widestName)
	if kernel && !relay {
		widths[colDelay] = 0
	}
	if relay && !kernel {
		widths[colDrops] = 0
	}
	for i := range widths {
		if widths[i] > 0 {
			total += widths[i] + gap
			worst = max(worst, columns[i].rank)
		}
	}
	for ; total > m.width && worst > 0; worst-- {
		for i := range columns {
			if columns[i].rank == worst && widths[i] > 0 {
				total -= widths[i] + gap
				widths[i] = 0
			}
		}
	}
	left := m.width - total
	grow := func(column, most int) {
		if widths[column] > 0 {
			by := min(max(most-widths[column], 0), max(left, 0))
			widths[column] += by
			left -= by
		}
	}
	grow(colBar, usefulBar)
	grow(colMinute, usefulMinute)
	grow(colBar, widestBar)
	grow(colMinute, minute)
	return widths
}
