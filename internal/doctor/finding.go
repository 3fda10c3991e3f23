package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// A Verdict is how bad a finding is.
type Verdict uint8

const (
	// OK is as it should be.
	OK Verdict = iota
	// Info is worth knowing, and needs no cure.
	Info
	// Warning costs something, and shaping works all the same.
	Warning
	// Problem keeps the policy from being in force, or lets traffic pass by it.
	Problem
)

var verdicts = [...]string{"ok", "info", "warning", "problem"}

func (v Verdict) String() string { return verdicts[v] }

// MarshalText implements encoding.TextMarshaler.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// A Finding is what one check found about one thing.
type Finding struct {
	Group   string  `json:"group"`
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	Subject string  `json:"subject,omitempty"` // "eth0", "relay web"; empty is the host
	Found   string  `json:"found"`
	Cost    string  `json:"cost,omitempty"`
	Cure    string  `json:"cure,omitempty"`

	stops subjects // what a problem keeps from working, beside its subject
}

// subjects are all things of one sort.
type subjects uint8

const (
	none subjects = iota
	allInterfaces
	allRelays
)

func ok(format string, args ...any) Finding {
	return Finding{Verdict: OK, Found: fmt.Sprintf(format, args...)}
}

func info(found, cost, cure string) Finding {
	return Finding{Verdict: Info, Found: found, Cost: cost, Cure: cure}
}

func warning(found, cost, cure string) Finding {
	return Finding{Verdict: Warning, Found: found, Cost: cost, Cure: cure}
}

func problem(found, cost, cure string) Finding {
	return Finding{Verdict: Problem, Found: found, Cost: cost, Cure: cure}
}

// of says what the finding is about.
func (f Finding) of(subject string) Finding {
	f.Subject = subject
	return f
}

// stopping says what else does not work with such a problem.
func (f Finding) stopping(s subjects) Finding {
	f.stops = s
	return f
}

// A Report is all that was found.
type Report struct {
	Policy   string    `json:"policy"`
	System   string    `json:"system"`
	Can      []string  `json:"can"`               // interfaces, and relays as "relay web"
	Cannot   []string  `json:"cannot"`            // those with a problem
	Awaited  []string  `json:"awaited,omitempty"` // interfaces that do not exist now
	Problems int       `json:"problems"`
	Warnings int       `json:"warnings"`
	Findings []Finding `json:"findings"` // by group, the worst of each first
}

// Verdict is the report in one line.
func (r *Report) Verdict() string {
	var s string
	switch {
	case len(r.Can) > 0 && len(r.Cannot) > 0:
		s = "this host can " + deeds(r.Can) + ", but not " + deeds(r.Cannot)
	case len(r.Cannot) > 0:
		s = "this host cannot " + deeds(r.Cannot)
	case len(r.Can) > 0:
		s = "this host can " + deeds(r.Can)
	default:
		s = "this host has nothing to shape yet"
	}
	if len(r.Awaited) > 0 {
		s += ", and awaits " + join(r.Awaited)
	}
	return s + "; " + count(r.Problems, "problem") + ", " + count(r.Warnings, "warning")
}

// deeds says what is done with subjects: "shape eth0 and relay web".
func deeds(names []string) string {
	var shaped, relays []string
	for _, n := range names {
		if relay, ok := strings.CutPrefix(n, relayPrefix); ok {
			relays = append(relays, relay)
		} else {
			shaped = append(shaped, n)
		}
	}
	var out []string
	if len(shaped) > 0 {
		out = append(out, "shape "+join(shaped))
	}
	if len(relays) > 0 {
		out = append(out, "relay "+join(relays))
	}
	return strings.Join(out, " and ")
}

// join lists names as a sentence does.
func join(names []string) string {
	if n := len(names); n > 2 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, " and ")
}

func count(n int, what string) string {
	switch n {
	case 0:
		return "no " + what
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// judge adds the findings up.
func (r *Report) judge(f *Facts) {
	broken := func(subject string, sort subjects) bool {
		return slices.ContainsFunc(r.Findings, func(x Finding) bool {
			return x.Verdict == Problem && (x.Subject == subject || x.stops == sort)
		})
	}
	place := func(subject string, sort subjects) {
		if broken(subject, sort) {
			r.Cannot = append(r.Cannot, subject)
		} else {
			r.Can = append(r.Can, subject)
		}
	}
	r.Can, r.Cannot = []string{}, []string{}
	for _, l := range f.shaped() {
		place(l.info.Name, allInterfaces)
	}
	for i := range f.Policy.Relays {
		place(relayPrefix+f.Policy.Relays[i].Name, allRelays)
	}
	r.Awaited = f.awaited()
	for _, x := range r.Findings {
		switch x.Verdict {
		case Problem:
			r.Problems++
		case Warning:
			r.Warnings++
		}
	}
}
