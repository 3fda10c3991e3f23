package main

import (
	"fmt"
	"io"
	"strings"

	"shaperd/configs"
	"shaperd/shaper"
)

// viewAdmission adds what programs can ask for, and what is shared with other hosts.
func (v *policyView) viewAdmission(p *configs.Policy) {
	v.Admission = []admittingView{}
	var shared []string
	for _, c := range p.Admission.Classes {
		if c.Shared {
			shared = append(shared, c.Name)
		}
		one := admittingView{Class: c.Name, Rate: int64(c.Rate), PerHour: c.PerHour, Burst: int64(c.Burst), AllHosts: c.Shared}
		if c.PerHour > 0 {
			one.Burst = c.Requests
		}
		v.Admission = append(v.Admission, one)
	}
	if p.Shared.Cluster != "" {
		v.Shared = &sharedView{p.Shared.Cluster, p.Shared.Redis.Addrs, p.Shared.OnOutage, shared}
	}
	if p.Admission.Listen.IsValid() {
		v.AdmissionListen = p.Admission.Listen.String()
	}
}

// printAdmission writes that for people: of classes of bytes only where the policy
// has an address to ask at, since all of them can be asked for.
func (v *policyView) printAdmission(w io.Writer, s style) {
	rows := [][]string{{"CLASS", "RATE", "BURST", "OF"}}
	for _, a := range v.Admission {
		of, rate, burst := "each host", rateOrNone(a.Rate), shaper.Size(a.Burst).String()
		switch {
		case a.PerHour > 0:
			rate, burst = perTime(a.PerHour), count(uint64(a.Burst))
		case v.AdmissionListen == "":
			continue
		case a.Rate == 0:
			rate, burst = "needs admission.rate", "-"
		}
		if a.AllHosts {
			of = "all hosts"
		}
		rows = append(rows, []string{a.Class, rate, burst, of})
	}
	if len(rows) > 1 {
		at := "on the control socket"
		if v.AdmissionListen != "" {
			at += " and on " + v.AdmissionListen
		}
		fmt.Fprintf(w, "\n%s for programs, %s\n\n", s.bold("admission"), at)
		table(w, s, "  ", rows)
	}
	if v.Shared != nil {
		fmt.Fprintf(w, "\n%s with cluster %s on %s: %s; when that is away: %s\n", s.bold("shared"), v.Shared.Cluster,
			strings.Join(v.Shared.Redis, ", "), strings.Join(v.Shared.Classes, ", "), v.Shared.OnOutage)
	}
}
