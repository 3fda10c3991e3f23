package daemon

import (
	"slices"
	"strings"
	"time"

	"shaperd/internal/admin"
	"shaperd/shaper"
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
// What was set by hand must not stand in the way: of what does not fit any more
// the latest ends first.
func (d *daemon) tick() {
	now := time.Now()
	left := slices.DeleteFunc(slices.Clone(d.overrides), func(o admin.Override) bool { return over(o, now) })
	if len(left) == len(d.overrides) && d.file.State(now) == d.state {
		d.timed()
		return
	}
	for len(left) > 0 {
		_, err := d.file.At(now, asFile(left))
		if err == nil {
			break
		}
		last := left[len(left)-1]
		d.Log.Warn("what was set by hand ends: it does not fit any more", "class", last.Class, "link", last.Link, "error", oneLine(err))
		left = left[:len(left)-1]
	}
	changed, err := d.override(left)
	if err != nil { // the next look tries again
		d.Log.Error("change of rates by the clock", "error", oneLine(err))
		d.alarm.Reset(look)
		return
	}
	for _, c := range changed.Changes {
		d.Log.Info("rates change with the time", "link", c.Link, "class", c.Class, "rate", shaper.Rate(c.To.Rate), "ceil", shaper.Rate(c.To.Ceil))
	}
}

// oneLine joins the reasons of an error, for the log.
func oneLine(err error) string {
	var all []string
	for _, e := range Reasons(err) {
		all = append(all, e.Error())
	}
	return strings.Join(all, "; ")
}

// over reports whether an override's time is over.
func over(o admin.Override, now time.Time) bool { return o.Until != nil && !now.Before(*o.Until) }
