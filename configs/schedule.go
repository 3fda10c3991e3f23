package configs

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // for hosts without it
)

// minutesOfDay is what 24:00 is, in minutes.
const minutesOfDay = 24 * 60

// A window is a part of each week, by the clock on the wall.
type window struct {
	days     [7]bool // it begins on, by time.Weekday
	from, to int     // minutes of the day; to is on the day after when it is not later than from
}

// holds reports whether the wall clock shows a time within w.
func (w window) holds(day time.Weekday, minute int) bool {
	if w.from < w.to {
		return w.days[day] && w.from <= minute && minute < w.to
	}
	return w.days[day] && w.from <= minute || w.days[(day+6)%7] && minute < w.to
}

// weekly is when the windows of a policy begin and end. The zero value has none.
type weekly struct {
	zone    *time.Location
	windows []window
}

// wall is what the clock on the wall of the zone shows at t.
func (s *weekly) wall(t time.Time) (day time.Weekday, minute int) {
	t = t.In(s.zone)
	return t.Weekday(), t.Hour()*60 + t.Minute()
}

// state tells apart which windows hold at t.
func (s *weekly) state(t time.Time) string {
	if len(s.windows) == 0 {
		return ""
	}
	day, minute := s.wall(t)
	state := make([]byte, len(s.windows))
	for i, w := range s.windows {
		state[i] = '0'
		if w.holds(day, minute) {
			state[i] = '1'
		}
	}
	return string(state)
}

// next returns when after t another set of windows holds; the zero time for never.
// Between two changes of the zone's offset the clock on the wall goes evenly,
// so it steps from one begin or end to the next, and over each change.
func (s *weekly) next(t time.Time) time.Time {
	state, bounds := s.state(t), s.bounds()
	if len(bounds) == 0 {
		return time.Time{}
	}
	for end := t.AddDate(0, 0, 9); t.Before(end); {
		t = t.In(s.zone)
		_, minute := s.wall(t)
		i, found := slices.BinarySearch(bounds, minute)
		if found {
			i++
		}
		until := minutesOfDay
		if i < len(bounds) {
			until = bounds[i]
		}
		begun := time.Duration(t.Second())*time.Second + time.Duration(t.Nanosecond())
		step := t.Add(time.Duration(until-minute)*time.Minute - begun)
		if _, change := t.ZoneBounds(); !change.IsZero() && change.Before(step) {
			step = change
		}
		if t = step; s.state(t) != state {
			return t
		}
	}
	return time.Time{}
}

// bounds are the minutes of the day at which some window begins or ends, in order.
func (s *weekly) bounds() (all []int) {
	for _, w := range s.windows {
		all = append(all, w.from%minutesOfDay, w.to%minutesOfDay)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// weekdays in the order of time.Weekday.
var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// days is one day of the week, or a range such as fri-mon.
type days [7]bool

func (*days) format() format {
	const day = "(mon|tue|wed|thu|fri|sat|sun)"
	return format{what: "a day of the week or a range", example: "mon-fri", pattern: "^" + day + "(-" + day + ")?$"}
}

func (d *days) parse(text string) error {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	from, to := slices.Index(weekdays, first), slices.Index(weekdays, last)
	if from < 0 || to < 0 {
		return textErrorf("write mon, tue, wed, thu, fri, sat or sun, or a range such as mon-fri", "it is no day of the week")
	}
	for day := from; ; day = (day + 1) % 7 {
		if d[day] = true; day == to {
			return nil
		}
	}
}

// A timeOfDay is in minutes after midnight.
type timeOfDay int

func (*timeOfDay) format() format {
	return format{what: "a time of day", example: `"08:00"`, pattern: `^([01]?[0-9]|2[0-3]):[0-5][0-9]$|^24:00$`}
}

func (c *timeOfDay) parse(text string) error {
	if text == "24:00" {
		*c = minutesOfDay
		return nil
	}
	t, err := time.Parse("15:04", text)
	if err != nil {
		return textErrorf(`write hours and minutes in quotes, such as "08:00"`, "it is no time of day")
	}
	*c = timeOfDay(t.Hour()*60 + t.Minute())
	return nil
}

// String writes the time as the policy file does.
func (c timeOfDay) String() string { return fmt.Sprintf("%02d:%02d", c/60, c%60) }

type timeZone struct{ *time.Location }

func (*timeZone) format() format { return format{what: "a time zone", example: "Europe/Berlin"} }

func (z *timeZone) parse(text string) (err error) {
	if z.Location, err = time.LoadLocation(text); err != nil || text == "" {
		return textErrorf("write it as in the tz database, such as Europe/Berlin or UTC", "it is no time zone")
	}
	return nil
}

// hostZone is the host's time zone as it is now, by its name where it has one:
// time.Local stays what it was when the program began.
func hostZone() *time.Location {
	if os.Getenv("TZ") == "" {
		if target, err := os.Readlink("/etc/localtime"); err == nil {
			if _, name, ok := strings.Cut(target, "zoneinfo/"); ok {
				if zone, err := time.LoadLocation(name); err == nil {
					return zone
				}
			}
		}
	} else if zone, err := time.LoadLocation(strings.TrimPrefix(os.Getenv("TZ"), ":")); err == nil {
		return zone
	}
	return time.Local
}

// windowOf is the window of an entry of a schedule.
func windowOf(d *some[days], from, to *value[timeOfDay]) window {
	w := window{from: int(from.v), to: minutesOfDay}
	if to.given() {
		w.to = int(to.v)
	}
	for _, part := range d.values() {
		for day, on := range part {
			w.days[day] = w.days[day] || on
		}
	}
	if !d.given() {
		w.days = [7]bool{true, true, true, true, true, true, true}
	}
	return w
}
