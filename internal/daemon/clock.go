package daemon

import (
	"slices"
	"time"

	"shaperd/internal/admin"
)

// look is how often the clock is looked at while something depends on it: it may
// have been set, or the host may have slept.
const look = 10 * time.Second

// timed sets when the clock is to be looked at next, and publishes what is in
// force. It is called after each change of the policy, the overrides or the time.
func (d *daemon) timed() {
	d.state = d.file.State(time.Now())
	d.publish()
	d.alarm.Stop()
	if next := d.nextChange(); !next.IsZero() {
		d.alarm.Reset(min(max(time.Until(next.Round(0)), 0), look)) // by the wall clock
	}
}

// nextChange is when schedules or the end of an override change rates; zero for never.
func (d *daemon) nextChange() time.Time {
	next := d.file.Next(time.Now())
	for _, o := range d.overrides {
		if o.Until != nil && (next.IsZero() || o.Until.Before(next)) {
			next = *o.Until
		}
	}
	return next
}

// tick puts the rates of this time into force, if it has others than before.
func (d *daemon) tick() {
	now := time.Now()
	left := slices.DeleteFunc(slices.Clone(d.overrides), func(o admin.Override) bool { return over(o, now) })
	if len(left) == len(d.overrides) && d.file.State(now) == d.state {
		d.timed()
		return
	}
	changed, err := d.override(left)
	if err != nil { // it may fit later: what was set by hand may stand against the schedule
		for _, e := range Reasons(err) {
			d.Log.Error("change of rates by the clock", "error", e)
		}
		d.overrides = left
		d.timed()
		d.alarm.Reset(look)
		return
	}
	for _, c := range changed.Changes {
		d.Log.Info("rates change with the time", "link", c.Link, "class", c.Class, "rate", c.To.Rate, "ceil", c.To.Ceil)
	}
}

// over reports whether an override's time is over.
func over(o admin.Override, now time.Time) bool { return o.Until != nil && !now.Before(*o.Until) }
