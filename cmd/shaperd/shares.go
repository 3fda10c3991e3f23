package main

import (
	"fmt"
	"io"

	"shaperd/internal/admin"
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
	table(w, style, "  ", rows)
}
