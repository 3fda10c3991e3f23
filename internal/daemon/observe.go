package daemon

import (
	"time"

	"shaperd/conn"
	"shaperd/internal/lease"
	"shaperd/shaper"
)

// A source is what sends for a shared class: the kernel, which is nil, or a relay's
// loop. Of two relays of a name, one of which drains, each has its part of the share.
type source struct {
	lease.Holder
	relay *conn.Relay
}

// A sighting is what a shared class had sent when it was last looked at.
type sighting struct {
	bytes   uint64
	at      time.Time
	waiting bool
}

// observe returns what the shared classes have sent so far, for s's own
// goroutine. What waits, waits for the share only if that is used up, or nearly
// and at two looks: a sender with a steady rate has something waiting now and then.
func (d *daemon) observe(s *sharing) map[lease.Holder]lease.Usage {
	d.complain(s)
	const nearly, all = 0.8, 0.97 // of the share: less is used when something else is in the way
	sum, seen := map[lease.Holder]lease.Usage{}, map[source]sighting{}
	needs := map[lease.Holder]map[source]need{}
	held, v := s.held.Load(), d.view.Load()
	if held == nil {
		return sum
	}
	note := func(relay *conn.Relay, class, link string, rate shaper.Rate, bytes uint64, waiting bool) {
		from := source{holderOf(class, link), relay}
		if !(*held)[from.Holder] {
			return
		}
		now := sighting{bytes, time.Now(), waiting}
		before, known := s.seen[from]
		seen[from] = now
		n := need{has: float64(rate), waiting: waiting}
		if dt := now.at.Sub(before.at).Seconds(); known && bytes >= before.bytes && dt > 0 {
			used, could := float64(bytes-before.bytes)*8, float64(rate)*dt
			n.used = used / dt
			n.waiting = waiting && (used >= all*could || used >= nearly*could && before.waiting)
		}
		if needs[from.Holder] == nil {
			needs[from.Holder] = map[source]need{}
		}
		needs[from.Holder][from] = n
		u := sum[from.Holder]
		sum[from.Holder] = lease.Usage{Bytes: u.Bytes + bytes, Waiting: u.Waiting || n.waiting}
	}
	for _, r := range v.loops {
		st := r.Stats()
		for _, l := range []*shaper.LinkStats{&st.Upload, &st.Download} {
			for i := range l.Classes {
				c := &l.Classes[i]
				note(r.Relay, c.Name, l.Name, c.Rate, c.Bytes, c.Backlogged > 0)
			}
		}
	}
	if k := d.shaping.Load(); k != nil && len(*held) > 0 {
		st, err := k.Stats()
		if err != nil {
			d.readErrors.Add(1)
		}
		for i := range st.Links {
			for j := range st.Links[i].Classes {
				c := &st.Links[i].Classes[j]
				note(nil, c.Name, st.Links[i].Name, c.Rate, c.Bytes, c.BacklogBytes > 0)
			}
		}
	}
	s.seen = seen
	parts := division{}
	for _, n := range needs {
		parts.divide(n)
	}
	if err := d.redivide(parts, v); err != nil && d.tasks.ctx.Err() == nil {
		d.Log.Error("parts of shared classes", "error", err)
	}
	return sum
}
