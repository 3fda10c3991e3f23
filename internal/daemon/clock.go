package daemon

import (
	"fmt"
	"log/slog"
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
	var left, ended []admin.Override
	for _, o := range d.overrides {
		if over(o, now) {
			ended = append(ended, o)
		} else {
			left = append(left, o)
		}
	}
	scheduled := d.file.State(now) != d.state
	if len(ended) == 0 && !scheduled {
		d.timed()
		return
	}
	for len(left) > 0 {
		_, err := d.file.At(now, asFile(left))
		if err == nil {
			break
		}
		last := left[len(left)-1]
		d.Log.Warn("set by hand: it ends, since it does not fit any more", "set", last, "error", oneLine(err))
		left = left[:len(left)-1]
	}
	changed, err := d.override(left)
	if err != nil { // the next look tries again
		d.Log.Error("change of rates by the clock", "error", oneLine(err))
		d.alarm.Reset(look)
		return
	}
	for _, o := range ended {
		d.Log.Info("set by hand: its time is over", "set", o)
	}
	if scheduled {
		d.Log.Info("schedule: other rates at this time")
	}
	for _, c := range changed.Changes {
		place := []any{"link", c.Link}
		if c.Class != "" {
			place = append(place, "class", c.Class)
		}
		d.Log.Info("in force now", slices.Concat(place, ratesOf(c.To), []any{slog.Group("before", ratesOf(c.From)...)})...)
	}
}

// ratesOf makes fields of the rates of a class or a link.
func ratesOf(r admin.Rates) []any {
	all := []any{"rate", shaper.Rate(r.Rate)}
	if r.Ceil > 0 {
		all = append(all, "ceil", shaper.Rate(r.Ceil))
	}
	if r.Burst > 0 {
		all = append(all, "burst", shaper.Size(r.Burst))
	}
	return all
}

// oneLine joins the reasons of an error, for the log.
func oneLine(err error) string {
	const most = 10 // a line that nobody reads is of no use
	var all []string
	for _, e := range Reasons(err) {
		all = append(all, e.Error())
	}
	if more := len(all) - most; more > 0 {
		all = append(all[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, "; ")
}

// over reports whether an override's time is over.
func over(o admin.Override, now time.Time) bool { return o.Until != nil && !now.Before(*o.Until) }
