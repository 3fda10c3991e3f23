package top

import (
	"math"
	"time"

	"shaperd/internal/admin"
)

// minute is how many seconds are remembered.
const minute = 60

// A history is the rates of the last minute, second by second; NaN where nobody
// asked. The zero value is empty.
type history struct {
	end   int64 // the newest second, of Unix time; 0 is none
	rates [minute]float64
}

// add notes that the rate was found at a time, and has held for as long before.
func (h *history) add(at time.Time, rate float64, held time.Duration) {
	now := at.Unix()
	if h.end == 0 || now < h.end { // new, or the clock was set back
		h.end, held = now-minute, 0
	}
	since := now - int64(held/time.Second)
	for s := max(h.end+1, now-minute+1); s <= now; s++ {
		v := math.NaN()
		if s >= since {
			v = rate
		}
		h.rates[s%minute] = v
	}
	h.rates[now%minute] = rate
	h.end = now
}

// cells are the peaks of as many equal parts of the minute. The parts begin at
// multiples of their length, so that a peak stays in its cell until all move on:
// less to draw.
func (h *history) cells(n int) []float64 {
	each := int64((minute + n - 1) / n)
	last := h.end / each
	peaks := make([]float64, n)
	for i := range peaks {
		peaks[i] = math.NaN()
		first := (last - int64(n-1-i)) * each
		for s := max(first, h.end-minute+1); h.end > 0 && s < first+each && s <= h.end; s++ {
			if v := h.rates[s%minute]; !(v <= peaks[i]) && !math.IsNaN(v) {
				peaks[i] = v
			}
		}
	}
	return peaks
}

// peak is the highest rate of the minute.
func (h *history) peak() (most float64) {
	for _, v := range h.rates {
		if v > most { // NaN is not
			most = v
		}
	}
	return most
}

// A track is what is remembered of a class or a link.
type track struct {
	history
	last     *admin.Class  // at the answer before; nil is none
	borrowed float64       // share of what was sent since; NaN is unknown or nothing
	wait     time.Duration // mean since; -1 is unknown
	drops    uint64        // since
}

// note compares a class with how it was at the answer before.
func (t *track) note(c *admin.Class) {
	before := t.last
	t.last = c
	t.borrowed, t.wait, t.drops = math.NaN(), -1, 0
	if before == nil || c.Sent < before.Sent || c.Waits < before.Waits || c.Dropped < before.Dropped || c.Borrowed < before.Borrowed {
		return // the first, or of a daemon that began anew
	}
	sent := c.Sent - before.Sent
	if c.Packets > 0 { // the kernel counts packets that borrowed
		sent = c.Packets - min(before.Packets, c.Packets)
	}
	if sent > 0 {
		t.borrowed = min(float64(c.Borrowed-before.Borrowed)/float64(sent), 1)
	}
	if waits := c.Waits - before.Waits; waits > 0 {
		t.wait = time.Duration(max(c.WaitSeconds-before.WaitSeconds, 0) / float64(waits) * float64(time.Second))
	}
	t.drops = c.Dropped - before.Dropped
}

// A key names a class on a link, or a link where class is "".
type key struct{ link, class string }

// remember notes all that a status says.
func (m *Model) remember(s *admin.Status, at time.Time) {
	held := m.Interval + time.Second // an answer may come a little late
	seen := make(map[key]*track, len(m.tracks))
	of := func(k key) *track {
		t := m.tracks[k]
		if t == nil {
			t = &track{borrowed: math.NaN(), wait: -1}
		}
		seen[k] = t
		return t
	}
	for i := range s.Links {
		l := &s.Links[i]
		of(key{l.Name, ""}).add(at, l.Achieved, held)
		for n := range l.Classes {
			c := &l.Classes[n]
			t := of(key{l.Name, c.Name})
			t.add(at, c.Achieved, held)
			t.note(c)
		}
	}
	m.tracks = seen // what is gone is forgotten
}
