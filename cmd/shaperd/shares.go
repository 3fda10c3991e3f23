package main

import (
	"fmt"
	"io"

	"shaperd/internal/admin"
	"shaperd/shaper"
)

// printShares writes what this host has of the budgets that it shares.
func printShares(w io.Writer, s *admin.Shared) {
	style := styleOf(w)
	fmt.Fprintf(w, "\nshared with cluster %s, as host %s\n", style.bold(s.Cluster), s.Host)
	if s.Problem != "" {
		fmt.Fprintf(w, "  %s %s: on_outage is %s\n", style.yellow("warning"), s.Problem, s.OnOutage)
	}
	rows := [][]string{{"CLASS", "LINK", "SHARE", "", "BUDGET", "STATE"}}
	for i := range s.Shares {
		one := &s.Shares[i]
		state := one.State
		if one.Disagreement {
			state += "; this host's policy has another rate than the cluster's newest"
		}
		rows = append(rows, []string{one.Class, one.Link, bits(float64(one.Rate)), bar(float64(one.Rate), one.Budget, 10), rateOrNone(one.Budget), state})
	}
	if len(rows) > 1 {
		table(w, style, "  ", rows)
	}
}

// printAdmission writes what programs have asked for; nothing where nobody does.
func printAdmission(w io.Writer, all []admin.Admission) {
	rows := [][]string{{"ADMISSION", "RATE", "BURST", "OF", "GRANTED", "REFUSED", "WAITING", "KEYS"}}
	for i := range all {
		a := &all[i]
		if a.Unit == "bytes" && a.Granted+a.Refused == 0 {
			continue
		}
		of := "this host"
		if a.Shared {
			of = "all hosts"
		}
		rate, burst := rateOrNone(a.Rate), shaper.Size(a.Burst).String()
		if a.Unit == "requests" {
			rate, burst = perTime(a.PerHour), count(uint64(a.Burst))
		}
		rows = append(rows, []string{a.Class, rate, burst, of, count(a.Granted), count(a.Refused), count(uint64(a.Waiting)), count(uint64(a.Keys))})
	}
	if len(rows) > 1 {
		fmt.Fprintln(w)
		table(w, styleOf(w), "", rows)
	}
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
