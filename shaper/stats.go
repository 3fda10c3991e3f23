package shaper

import (
	"math"
	"time"
)

// LinkStats is a snapshot of one link's tree.
type LinkStats struct {
	Name     string
	Rate     Rate    // configured; 0 is unlimited
	Achieved float64 // lately, bits per second
	Bytes    uint64  // sent since the tree was made
	Classes  []ClassStats
}

// ClassStats is a snapshot of one leaf class.
type ClassStats struct {
	Name       string
	Rate, Ceil Rate // configured
	Burst      Size // in force, derived where it was not configured
	Mode       Mode
	Achieved   float64 // bits per second, lately
	Bytes      uint64  // sent
	Borrowed   uint64  // of these, sent above the class's own rate
	Chunks     uint64  // grants used
	Queues     int     // attached
	Backlogged int     // of these, with something to send
	Wait       WaitHistogram
}

// WaitBounds are the upper bounds of the WaitHistogram's buckets; one more bucket takes the rest.
var WaitBounds = [...]time.Duration{
	100 * time.Microsecond, 300 * time.Microsecond, time.Millisecond, 3 * time.Millisecond,
	10 * time.Millisecond, 30 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond,
	time.Second, 3 * time.Second, 10 * time.Second,
}

// WaitHistogram counts grants by the time from being ready to send to sending.
type WaitHistogram struct {
	Counts [len(WaitBounds) + 1]uint64 // not cumulative
	Sum    time.Duration
}

// counters are a leaf's, kept by the tree's owner.
type counters struct {
	bytes, borrowed, chunks uint64
	wait                    WaitHistogram
	achieved                meter
}

// turn counts one turn of n bytes that had been waited for.
func (c *counters) turn(n int64, waited time.Duration, borrowed bool, now time.Duration) {
	if n == 0 {
		return
	}
	c.bytes += uint64(n)
	c.chunks++
	if borrowed {
		c.borrowed += uint64(n)
	}
	c.wait.add(waited)
	c.achieved.add(n, now)
}

func (h *WaitHistogram) add(d time.Duration) {
	i := 0
	for i < len(WaitBounds) && d > WaitBounds[i] {
		i++
	}
	h.Counts[i]++
	h.Sum += d
}

const (
	meterTime = 5 * time.Second        // the time constant of the decay
	meterFold = 100 * time.Millisecond // how long bytes are gathered before they are folded in
)

// A meter estimates a rate, with an exponentially decaying memory.
type meter struct {
	rate     float64 // bytes per second
	gathered int64
	since    time.Duration
}

func (m *meter) add(n int64, now time.Duration) {
	m.gathered += n
	if now-m.since >= meterFold {
		m.fold(now)
	}
}

func (m *meter) fold(now time.Duration) {
	dt := (now - m.since).Seconds()
	if dt <= 0 {
		return
	}
	keep := math.Exp(-dt / meterTime.Seconds())
	m.rate = m.rate*keep + float64(m.gathered)/dt*(1-keep)
	m.gathered, m.since = 0, now
}

// bits returns the estimate in bits per second.
func (m meter) bits(now time.Duration) float64 {
	m.fold(now)
	return m.rate * 8
}

// Stats returns a snapshot of the tree.
func (t *Tree) Stats(now time.Duration) LinkStats {
	st := LinkStats{Name: t.name, Rate: t.root.ceil.rate}
	for _, c := range t.leaves {
		cs := ClassStats{
			Name: c.name, Rate: c.rate.rate, Ceil: c.ceil.rate, Burst: Size(c.ceil.burst), Mode: c.mode,
			Achieved: c.stats.achieved.bits(now), Bytes: c.stats.bytes, Borrowed: c.stats.borrowed, Chunks: c.stats.chunks,
			Queues: c.queues, Backlogged: c.backlogged, Wait: c.stats.wait,
		}
		st.Achieved += cs.Achieved
		st.Classes = append(st.Classes, cs)
	}
	st.Bytes = t.root.stats.bytes
	return st
}
