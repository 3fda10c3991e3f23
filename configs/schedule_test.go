package configs

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"shaperd/shaper"
)

func parsed(t *testing.T, text string) *Policy {
	t.Helper()
	p, err := Parse("policy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// office has a class and a link that change over the week.
const office = `
time_zone: Europe/Berlin
classes:
  - name: work
    match: [{port: 443}]
    rate: 2mbit
    ceil: 50%
    schedule:
      - {days: mon-fri, from: "08:00", to: "18:00", rate: 6mbit, ceil: 100%}
      - {days: sat, rate: 1mbit}
  - {name: rest, default: true, rate: 1mbit, ceil: 100%}
interfaces:
  - name: wan0
    egress: {rate: 10mbit, schedule: [{from: "22:00", to: "06:00", rate: 20mbit}]}
    ingress: 100mbit
`

func berlin(t *testing.T, text string) time.Time {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.ParseInLocation("2006-01-02 15:04:05", text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestScheduleHasItsRatesAtItsTimes(t *testing.T) {
	p := parsed(t, office)
	for _, tt := range []struct {
		at               string
		rate, ceil, link shaper.Rate // of work and of wan0 egress, in mbit
	}{
		{"2026-12-02 07:59:59", 2, 5, 10}, // a Wednesday
		{"2026-12-02 08:00:00", 6, 10, 10},
		{"2026-12-02 17:59:59", 6, 10, 10},
		{"2026-12-02 18:00:00", 2, 5, 10},
		{"2026-12-02 22:00:00", 2, 10, 20}, // half of the link is more then
		{"2026-12-03 05:59:59", 2, 10, 20},
		{"2026-12-03 06:00:00", 2, 5, 10},
		{"2026-12-05 12:00:00", 1, 5, 10}, // Saturday, the whole day
		{"2026-12-06 12:00:00", 2, 5, 10},
	} {
		now, err := p.At(berlin(t, tt.at), nil)
		if err != nil {
			t.Fatal(err)
		}
		l := now.Interfaces[0].Egress
		if c := l.Classes[0]; c.Rate != tt.rate*shaper.Mbit || c.Ceil != tt.ceil*shaper.Mbit || l.Rate != tt.link*shaper.Mbit {
			t.Errorf("%s: %v up to %v of %v, want %d up to %d of %d mbit", tt.at, c.Rate, c.Ceil, l.Rate, tt.rate, tt.ceil, tt.link)
		}
		if now.Rules.Default != "rest" || len(now.Marks) != 2 || len(now.Interfaces) != 1 {
			t.Errorf("%s: the rest of the policy is lost: %+v", tt.at, now)
		}
	}
}

func TestNextChangeIsFound(t *testing.T) {
	p := parsed(t, office)
	for _, tt := range []struct{ at, next string }{
		{"2026-12-02 07:00:00", "2026-12-02 08:00:00"},
		{"2026-12-02 08:00:00", "2026-12-02 18:00:00"},
		{"2026-12-02 21:59:59", "2026-12-02 22:00:00"},
		{"2026-12-05 06:00:00", "2026-12-05 22:00:00"},
		{"2026-12-05 23:00:00", "2026-12-06 00:00:00"}, // Saturday ends
		{"2026-03-29 00:30:00", "2026-03-29 06:00:00"}, // clocks go forward at 02:00
		{"2026-10-25 00:30:00", "2026-10-25 06:00:00"}, // clocks go back at 03:00
	} {
		if got, want := p.Next(berlin(t, tt.at)), berlin(t, tt.next); !got.Equal(want) {
			t.Errorf("after %s: %v, want %v", tt.at, got, want)
		}
	}
	if got := parsed(t, "relays: [{name: a, kind: socks5, listen: 127.0.0.1:1}]").Next(time.Now()); !got.IsZero() {
		t.Errorf("without a schedule the next change is at %v", got)
	}
}

// What the clock on the wall never shows begins when it has jumped over it;
// what it shows twice holds twice.
func TestScheduleFollowsTheWallClockOverItsJumps(t *testing.T) {
	p := parsed(t, `
time_zone: Europe/Berlin
relays:
  - {name: a, kind: socks5, listen: 127.0.0.1:1, upload: {rate: 1mbit, schedule: [{from: "02:30", to: "03:30", rate: 2mbit}]}}
`)
	for _, tt := range []struct {
		from string
		want []string // of the changes after it, in UTC
	}{
		{"2026-03-29 00:00:00", []string{"01:00", "01:30"}},                   // 02:00 CET becomes 03:00 CEST
		{"2026-10-25 00:00:00", []string{"00:30", "01:00", "01:30", "02:30"}}, // 03:00 CEST becomes 02:00 CET
	} {
		at := berlin(t, tt.from)
		for i, want := range tt.want {
			if at = p.Next(at); at.UTC().Format("15:04") != want {
				t.Errorf("after %s, change %d: %v, want %s UTC", tt.from, i, at.UTC(), want)
			}
		}
	}
}

// Next agrees with going through the time minute by minute.
func TestNextChangeIsTheFirst(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	zones := []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"}
	for range 40 {
		zone, err := time.LoadLocation(zones[random.IntN(len(zones))])
		if err != nil {
			t.Fatal(err)
		}
		s := weekly{zone: zone}
		for range 1 + random.IntN(3) {
			w := window{from: random.IntN(minutesOfDay), to: 1 + random.IntN(minutesOfDay)}
			for day := range w.days {
				w.days[day] = random.IntN(2) == 0
			}
			s.windows = append(s.windows, w)
		}
		at := time.Date(2026, time.Month(1+random.IntN(12)), 1+random.IntN(28), random.IntN(24), random.IntN(60), random.IntN(60), 0, zone)
		want := time.Time{}
		for minute := at.Truncate(time.Minute).Add(time.Minute); minute.Before(at.AddDate(0, 0, 9)); minute = minute.Add(time.Minute) {
			if s.state(minute) != s.state(at) {
				want = minute
				break
			}
		}
		if got := s.next(at); !got.Equal(want) {
			t.Fatalf("after %v of %+v: %v, want %v", at, s.windows, got, want)
		}
	}
}

func TestOverridesReplaceWhatTheFileSays(t *testing.T) {
	p := parsed(t, office)
	night := berlin(t, "2026-12-02 23:00:00")
	now, err := p.At(night, []Override{
		{Class: "work", Rate: "3mbit"},
		{Class: "work", Link: "wan0 ingress", Ceil: "80%", Burst: "32kb"},
		{Link: "wan0 egress", Rate: "12mbit"},
	})
	if err != nil {
		t.Fatal(err)
	}
	out, in := now.Interfaces[0].Egress, now.Interfaces[0].Ingress
	if c := out.Classes[0]; out.Rate != 12*shaper.Mbit || c.Rate != 3*shaper.Mbit || c.Ceil != 6*shaper.Mbit || c.Burst != 0 {
		t.Errorf("egress is %+v", out)
	}
	if c := in.Classes[0]; in.Rate != 100*shaper.Mbit || c.Rate != 3*shaper.Mbit || c.Ceil != 80*shaper.Mbit || c.Burst != 32*shaper.KiB {
		t.Errorf("ingress is %+v", in)
	}
	if again, err := p.At(night, nil); err != nil || again.Interfaces[0].Egress.Classes[0].Rate != 2*shaper.Mbit {
		t.Errorf("the policy itself has changed: %+v, %v", again, err)
	}
}

func TestOverridesThatDoNotFitSayWhy(t *testing.T) {
	p := parsed(t, office)
	unlimited := parsed(t, "classes: [{name: a, default: true, rate: 1mbit}]\nrelays: [{name: r, kind: socks5, listen: 127.0.0.1:1}]")
	cluster := parsed(t, `
classes: [{name: all, default: true, rate: 3mbit, shared: true}, {name: api, unit: requests, rate: 5/s}]
relays: [{name: r, kind: socks5, listen: 127.0.0.1:1, upload: 9mbit, download: 9mbit}]
shared: {redis: "redis://10.0.0.9", cluster: edge}`)
	for _, tt := range []struct {
		p    *Policy
		o    Override
		want string
	}{
		{p, Override{Class: "wurk", Rate: "1mbit"}, `there is no class "wurk"; did you mean work?`},
		{p, Override{Class: "work", Link: "wan1 egress", Rate: "1mbit"}, `there is no link "wan1 egress"; did you mean wan0 egress?`},
		{p, Override{Class: "work", Link: "wan0", Rate: "1mbit"}, `there is no link "wan0"; did you mean wan0 egress or wan0 ingress?`},
		{p, Override{Class: "x", Rate: "1mbit"}, `there is no class "x": the policy has work, rest`},
		{p, Override{Class: "work", Rate: "5mbps"}, `rate "5mbps": `},
		{p, Override{Class: "work", Rate: "0bit"}, "nothing could ever be sent"},
		{p, Override{Class: "work", Burst: "12"}, `burst "12": it has no unit`},
		{p, Override{Class: "work", Burst: "0b"}, `burst "0b": it cannot hold a full packet`},
		{p, Override{Rate: "1mbit"}, "neither a class nor a link"},
		{p, Override{Link: "wan0 egress", Ceil: "1mbit"}, "has a rate, and neither ceil nor burst"},
		{p, Override{Link: "wan0 egress", Rate: "50%"}, "cannot be a percentage"},
		{p, Override{Class: "work", Rate: "30mbit", Ceil: "30mbit"}, "the classes are guaranteed 31mbit on wan0 egress, which has 10mbit: work 30mbit, rest 1mbit; " +
			`lower some of them (shaperd set CLASS --rate …), or raise the link's rate (shaperd set --link "wan0 egress" --rate …)`},
		{p, Override{Class: "work", Rate: "9mbit"}, `class "work" is guaranteed 9mbit, more than its ceil of 50% (5mbit of wan0 egress); give a higher ceil (--ceil …), or a lower rate`},
		{p, Override{Link: "wan0 egress", Rate: "1mbit"}, "the classes are guaranteed 3mbit on wan0 egress, which has 1mbit"},
		{cluster, Override{Class: "all", Rate: "50%"}, "whose links may differ: write a rate"},
		{cluster, Override{Class: "all", Ceil: "1mbit"}, "has no ceil: set its rate"},
		{cluster, Override{Class: "all", Link: "relay r upload", Rate: "1mbit"}, "leave out the link"},
		{cluster, Override{Class: "all", Rate: "100/s"}, "counts bytes: write a rate such as 20mbit"},
		{cluster, Override{Class: "api", Rate: "1mbit"}, "counts requests: write a rate such as 100/s"},
		{cluster, Override{Class: "api", Burst: "64kb"}, "counts requests: write its burst as a number"},
		{cluster, Override{Class: "api", Link: "relay r upload", Rate: "1/s"}, "is on no link"},
		{unlimited, Override{Class: "a", Rate: "50%"}, "has no rate that could be meant by a percentage"},
	} {
		_, err := tt.p.At(berlin(t, "2026-12-06 12:00:00"), []Override{tt.o})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.o, err, tt.want)
		} else if text := err.Error(); strings.Contains(text, "policy.yaml") || strings.Contains(text, "line ") {
			t.Errorf("%+v: %v names the file, which is in order", tt.o, err)
		}
	}
}

func TestOverridesOfNestedClassesSayWhatToSetInstead(t *testing.T) {
	p := parsed(t, `
classes:
  - {name: staff, rate: 4mbit, ceil: 6mbit, classes: [{name: calls, match: {dport: 1}, rate: 1mbit}, {name: desks, match: {dport: 2}, rate: 2mbit}]}
  - {name: rest, default: true, rate: 1mbit}
interfaces: [{name: wan0, egress: 10mbit}]`)
	for _, tt := range []struct {
		o    Override
		want string
	}{
		{Override{Class: "calls", Rate: "3mbit"}, `the classes in "staff" are guaranteed 5mbit, more than its own 4mbit: calls 3mbit, desks 2mbit; ` +
			"lower some of them (shaperd set CLASS --rate …), or raise that of staff (shaperd set staff --rate …)"},
		{Override{Class: "calls", Ceil: "7mbit"}, `class "calls" has a ceil of 7mbit, more than the 6mbit of the class "staff" that it is in; ` +
			"lower it, or raise that of staff (shaperd set staff --ceil …)"},
	} {
		_, err := p.At(berlin(t, "2026-12-06 12:00:00"), []Override{tt.o})
		if err == nil || err.Error() != tt.want {
			t.Errorf("%+v: %v, want %q", tt.o, err, tt.want)
		}
	}
}

// A schedule that does not fit at some time of the week is an error at once.
func TestEveryTimeOfTheWeekIsChecked(t *testing.T) {
	_, err := Parse("policy.yaml", []byte(strings.Replace(office, "rate: 6mbit, ceil: 100%", "rate: 6mbit", 1)))
	var all Errors
	if !errors.As(err, &all) {
		t.Fatalf("got %v, want Errors", err)
	}
	if got := all[0].Error(); !strings.Contains(got, `work" is guaranteed 6mbit, more`) || !strings.Contains(got, "(mon at 08:00)") {
		t.Errorf("got %s", got)
	}
}
