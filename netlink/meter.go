package netlink

import (
	"time"

	"shaperd/shaper"
)

// meters turn what the kernel counts, at the times somebody looks, into 64-bit
// counters and rates.
type meters map[meterKey]*meter

type meterKey struct {
	index  int
	handle Handle
}

// A meter is what is remembered of one qdisc or class.
type meter struct {
	seen  counters  // at the last look
	wraps [5]uint64 // what the 32-bit counters have lost
	since time.Time // when the rate was last taken
	bytes uint64    // then
	rate  float64   // bits per second
}

const meterTime = time.Second

// look takes the counters at the time. A kernel object that was made anew begins again at 0.
func (m *meter) look(c counters, now time.Time) {
	if c.bytes < m.seen.bytes || c.packets < m.seen.packets {
		*m = meter{}
	}
	for i, pair := range [...][2]uint32{
		{m.seen.drops, c.drops}, {m.seen.overlimits, c.overlimits}, {m.seen.lent, c.lent}, {m.seen.borrowed, c.borrowed},
	} {
		if pair[1] < pair[0] {
			m.wraps[i] += 1 << 32
		}
	}
	m.seen = c
	if m.since.IsZero() {
		m.since, m.bytes = now, c.bytes
	} else if passed := now.Sub(m.since); passed >= meterTime {
		m.rate = float64(c.bytes-m.bytes) * 8 / passed.Seconds()
		m.since, m.bytes = now, c.bytes
	}
}

func (m *meter) drops() uint64      { return m.wraps[0] + uint64(m.seen.drops) }
func (m *meter) overlimits() uint64 { return m.wraps[1] + uint64(m.seen.overlimits) }
func (m *meter) lent() uint64       { return m.wraps[2] + uint64(m.seen.lent) }
func (m *meter) borrowed() uint64   { return m.wraps[3] + uint64(m.seen.borrowed) }

func (ms meters) at(index int, h Handle, has *state, now time.Time) *meter {
	k := meterKey{index, h}
	m := ms[k]
	if m == nil {
		m = &meter{}
		ms[k] = m
	}
	if c, ok := has.stats[h]; ok {
		m.look(c, now)
	}
	return m
}

// link is what is known of one link, planned as want, of which the kernel has has.
func (ms meters) link(name string, l *shaper.Link, want *tree, has *state, index int, now time.Time) LinkStats {
	out := LinkStats{Name: name, Rate: l.Rate}
	top := has.root()
	if top == nil {
		top = &qdisc{options: unknownOptions("")}
	}
	m := ms.at(index, top.handle, has, now)
	out.Bytes, out.Packets, out.Drops, out.Overlimits, out.Achieved = m.seen.bytes, m.seen.packets, m.drops(), m.overlimits(), m.rate
	switch o := top.options.(type) {
	case tbf:
		out.Applied = o.rate
		c := soleClass(l)
		out.Classes = []ClassStats{{
			Name: c.Name, Rate: c.Rate, Ceil: ceilOf(c, l.Rate), AppliedRate: o.rate, AppliedCeil: o.rate, Burst: o.burst, Achieved: m.rate,
			Bytes: out.Bytes, Packets: out.Packets, Drops: out.Drops, Overlimits: out.Overlimits,
			BacklogBytes: uint64(m.seen.backlog), Backlog: uint64(m.seen.queued), LentPackets: out.Packets,
		}}
		return out
	case htb:
		out.Unshaped = uint64(o.direct)
	}
	got, queues := map[Handle]*class{}, map[Handle]Handle{}
	for i := range has.classes {
		got[has.classes[i].handle] = &has.classes[i]
	}
	for i := range has.qdiscs {
		queues[has.qdiscs[i].parent] = has.qdiscs[i].handle
	}
	if c := got[classHandle(minorLink)]; c != nil {
		out.Applied = c.htb.rate
	}
	policy := map[string]*shaper.Class{}
	walk(l.Classes, func(c, _ *shaper.Class) { policy[c.Name] = c })
	bursts := want.bursts()
	for i := range want.classes {
		w := &want.classes[i]
		if w.inner {
			continue
		}
		m := ms.at(index, w.handle, has, now)
		q := ms.at(index, queues[w.handle], has, now)
		cs := ClassStats{
			Name: w.name, Rate: w.htb.rate, Ceil: w.htb.ceil, Burst: bursts[w.handle], Achieved: m.rate,
			Bytes: m.seen.bytes, Packets: m.seen.packets, Drops: q.drops(), Overlimits: m.overlimits() + q.overlimits(),
			BacklogBytes: uint64(q.seen.backlog), Backlog: uint64(q.seen.queued), LentPackets: m.lent(), BorrowedPackets: m.borrowed(),
		}
		if p := policy[w.name]; p != nil {
			cs.Rate, cs.Ceil = p.Rate, ceilOf(p, l.Rate)
		}
		if c := got[w.handle]; c != nil {
			cs.AppliedRate, cs.AppliedCeil = c.htb.rate, c.htb.ceil
			cs.TokensBytes, cs.CeilTokBytes = tokenBytes(m.seen.tokens, c.htb.rate), tokenBytes(m.seen.ceilTokens, c.htb.ceil)
		}
		out.Classes = append(out.Classes, cs)
	}
	return out
}

// tokenBytes turns a bucket's level from ticks to bytes.
func tokenBytes(t int32, r shaper.Rate) int64 {
	if t < 0 {
		return -int64(ticksToSize(uint32(-t), r))
	}
	return int64(ticksToSize(uint32(t), r))
}
