package top

import (
	"cmp"
	"slices"
	"strings"

	"shaperd/internal/admin"
)

// An order is how the classes of a link are sorted. Links stay where they are:
// their place is how one finds them.
type order int

const (
	byPolicy order = iota
	byRate
	byDrops
	byWaiting
	orders
)

func (o order) String() string {
	return [...]string{"policy order", "rate now", "drops", "waiting"}[o]
}

// compare puts what is most first.
func (o order) compare(a, b *admin.Class) int {
	switch o {
	case byRate:
		return cmp.Compare(b.Achieved, a.Achieved)
	case byDrops:
		return cmp.Compare(b.Dropped, a.Dropped)
	case byWaiting:
		return cmp.Or(cmp.Compare(b.Backlogged, a.Backlogged), cmp.Compare(b.Backlog, a.Backlog))
	}
	return 0
}

// A row is a link, or a class on it.
type row struct {
	key
	link  *admin.Link
	class *admin.Class // nil for the link itself
	share *admin.Share // nil unless the class is shared
}

// rows are what the filter leaves, in order: each link before its classes. A
// filter that fits a link's name leaves all its classes.
func (m *Model) rows() (all []row) {
	if m.status == nil {
		return nil
	}
	wanted := strings.ToLower(m.filter)
	for i := range m.status.Links {
		l := &m.status.Links[i]
		whole := strings.Contains(strings.ToLower(l.Name), wanted)
		var classes []*admin.Class
		for n := range l.Classes {
			if c := &l.Classes[n]; whole || strings.Contains(strings.ToLower(c.Name), wanted) {
				classes = append(classes, c)
			}
		}
		if !whole && len(classes) == 0 {
			continue
		}
		slices.SortStableFunc(classes, m.order.compare)
		all = append(all, row{key{l.Name, ""}, l, nil, nil})
		for _, c := range classes {
			all = append(all, row{key{l.Name, c.Name}, l, c, m.status.Shared.Of(l.Name, c.Name)})
		}
	}
	return all
}

// selected is which of the rows is selected: the one that was, wherever it is
// now; else the one in its place. At first it is the first class.
func (m *Model) selected(rows []row) int {
	for i := range rows {
		if rows[i].key == m.cursor || m.cursor == (key{}) && rows[i].class != nil {
			return i
		}
	}
	return min(m.place, len(rows)-1)
}

// blank is the line between two links.
const blank = -1

// body are the lines that show rows, by their number. Where all fit, links are
// set apart.
func (m *Model) body(rows []row) (lines []int) {
	links := 0
	for i := range rows {
		if rows[i].class == nil {
			links++
		}
	}
	apart := len(rows)+links-1 <= m.bodyHeight()
	for i := range rows {
		if apart && i > 0 && rows[i].class == nil {
			lines = append(lines, blank)
		}
		lines = append(lines, i)
	}
	return lines
}

// scaleOf is the rate that fills a row's bar: its ceil or the link's rate, and
// where there is no limit the highest rate of the link's last minute.
func (m *Model) scaleOf(r *row) float64 {
	switch {
	case r.class != nil && r.class.Ceil > 0:
		return float64(r.class.Ceil)
	case r.link.Rate > 0:
		return float64(r.link.Rate)
	}
	if t := m.tracks[key{r.link.Name, ""}]; t != nil {
		return t.peak()
	}
	return 0
}
