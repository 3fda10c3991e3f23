package main

import (
	"fmt"
	"io"
	"slices"

	"shaperd/internal/admin"
	"shaperd/shaper"
)

// printShares writes what this host has of the budgets that it shares.
func printShares(w io.Writer, s *admin.Shared) {
	style := styleOf(w)
	fmt.Fprintf(w, "\nshared with cluster %s, as host %s\n", style.bold(s.Cluster), s.Host)
	page := findingPrinter{w: w, style: style, width: widthOf(w)}
	warn := func(text string) { page.wrap("  "+style.yellow("warning")+" ", "          ", text, "") }
	if s.Problem != "" {
		warn(s.Problem)
		warn("until it answers, on_outage counts: " + s.OnOutage)
	}
	rows := [][]string{{"CLASS", "LINK", "SHARE", "", "BUDGET", "HOLDERS", "STATE"}}
	for i := range s.Shares {
		one := &s.Shares[i]
		rows = append(rows, []string{
			one.Class, one.Link, bits(float64(one.Rate)), bar(float64(one.Rate), one.Budget, 10), rateOrNone(one.Budget), countOrNone(one.Holders), one.State,
		})
		if one.Disagreement {
			warn(fmt.Sprintf("class %s on %s: another host's rate is newer, and counts: give all hosts the same policy, or end what was set by hand there", one.Class, one.Link))
		}
	}
	if len(rows) > 1 {
		table(w, style, "  ", rows)
	}
}

// printAdmission writes what programs have taken; nothing where nobody does.
func printAdmission(w io.Writer, all []admin.Admission, shared *admin.Shared) {
	rows := [][]string{{"CLASS", "RATE", "BURST", "OF", "GRANTED", "REFUSED", "TOO LARGE", "OUTAGE", "WAITING", "KEYS"}}
	const seldom = 6 // from here on a column is there only if it says something
	for i := range all {
		a := &all[i]
		if a.Unit == "bytes" && a.Granted+a.Refused+a.TooLarge+a.Outage == 0 {
			continue
		}
		rate, burst := rateOrNone(a.Rate), shaper.Size(a.Burst).String()
		if a.Unit == "requests" {
			rate, burst = perTime(a.PerHour), count(uint64(a.Burst))
		}
		rows = append(rows, []string{
			a.Class, rate, burst, bucketOf(a, shared), count(a.Granted), count(a.Refused),
			count(a.TooLarge), count(a.Outage), count(uint64(a.Waiting)), count(uint64(a.Keys)),
		})
	}
	if len(rows) == 1 {
		return
	}
	for column := len(rows[0]) - 1; column >= seldom; column-- {
		if !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[column] != "0" }) {
			for i := range rows {
				rows[i] = slices.Delete(rows[i], column, column+1)
			}
		}
	}
	style := styleOf(w)
	fmt.Fprintf(w, "\n%s for programs, counted in takes\n", style.bold("admission"))
	table(w, style, "  ", rows)
}

// bucketOf says who takes from the bucket of a class.
func bucketOf(a *admin.Admission, shared *admin.Shared) string {
	switch {
	case !a.Shared:
		return "this host"
	case shared == nil || shared.Problem == "":
		return "all hosts"
	case shared.OnOutage == "closed":
		return "nobody now"
	}
	return "this host now" // one of its own, while the Redis is away
}

// countOrNone writes how many; 0 is none.
func countOrNone(n int) string {
	if n == 0 {
		return "-"
	}
	return count(uint64(n))
}

// perTime writes a rate of requests as the policy does.
func perTime(hourly int64) string {
	switch {
	case hourly%3600 == 0:
		return fmt.Sprintf("%d/s", hourly/3600)
	case hourly%60 == 0:
		return fmt.Sprintf("%d/m", hourly/60)
	}
	return fmt.Sprintf("%d/h", hourly)
}
