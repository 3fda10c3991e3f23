package main

import (
	"fmt"
	"io"
	"time"

	"shaperd/configs"
	"shaperd/internal/admin"
)

// A scheduleView says when the rates that are shown are in force, and what
// schedules change next. It is empty for a policy without schedules.
type scheduleView struct {
	At       time.Time       `json:"at,omitzero"`
	TimeZone string          `json:"time_zone,omitempty"`
	Next     *admin.Upcoming `json:"next,omitempty"`
}

// A moment is a time with the policy as it is from then on.
type moment struct {
	at     time.Time
	policy *configs.Policy
}

// week returns the policy at now, and then in each other state that schedules
// give it in the week from now on.
func week(file *configs.Policy, now time.Time) (all []moment, err error) {
	seen := map[string]bool{}
	for at := now; !at.IsZero() && at.Before(now.AddDate(0, 0, 8)); at = file.Next(at) {
		state := file.State(at)
		if seen[state] {
			continue
		}
		seen[state] = true
		p, err := file.At(at, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, moment{at.In(file.Zone()), p})
	}
	return all, nil
}

// viewSchedule makes the view for the moments of a week; changes are those of
// what is shown.
func viewSchedule(week []moment, changes func(before, after *configs.Policy) []admin.RateChange) (v scheduleView) {
	now := week[0]
	if now.policy.State(now.at) == "" {
		return v
	}
	v.At, v.TimeZone = now.at.Truncate(time.Second), now.policy.Zone().String()
	for _, m := range week[1:] {
		if found := changes(now.policy, m.policy); len(found) > 0 {
			v.Next = &admin.Upcoming{At: m.at, Changes: found}
			break
		}
	}
	return v
}

// clock is how a time of the week is written.
const clock = "Mon 15:04"

// printAt writes of which time the rates are that follow.
func (v *scheduleView) printAt(w io.Writer) {
	if !v.At.IsZero() {
		fmt.Fprintf(w, "rates as of %s (%s): there is a schedule\n", v.At.Format(clock), v.TimeZone)
	}
}

// printNext writes what changes next.
func (v *scheduleView) printNext(w io.Writer, s style) {
	switch {
	case v.At.IsZero():
	case v.Next == nil:
		fmt.Fprintln(w, "\nnext change: the schedule has none")
	default:
		fmt.Fprintf(w, "\nnext change: %s (%s)\n", v.Next.At.Format(clock), v.TimeZone)
		table(w, s, "  ", append([][]string{{"LINK", "CLASS", "NOW", "THEN"}}, changeRows(v.Next.Changes)...))
	}
}
