package top

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"shaperd/internal/admin"
)

// sessionsOf are some sessions of a class, n seconds after the daemon began.
func sessionsOf(class string, n int) *admin.Sessions {
	s := &admin.Sessions{Total: 140}
	for i := range 30 {
		moved := uint64(30-i) * 10_000 * uint64(n)
		s.Sessions = append(s.Sessions, admin.Session{
			Relay: "proxy", Class: class, Client: fmt.Sprintf("192.0.2.%d:%d", i+1, 40000+i), Upstream: "198.51.100.9:443", State: "open",
			AgeSeconds: float64(100 + n), Upload: moved / 100, Download: moved, Waiting: i%3 == 0,
		})
	}
	return s
}

// sharing is the office, which has the floor of a budget that it shares.
func sharing(n int) *admin.Status {
	s := office(n)
	c := &s.Links[0].Classes[0]
	c.Name, c.Rate, c.Ceil, c.Achieved = "mirror", 300e3, 300e3, 0
	s.Shared = &admin.Shared{Cluster: "edge", Host: "r1", Shares: []admin.Share{{Class: "mirror", Link: "eth0 egress", Rate: 300e3, Budget: 30e6, State: "leased"}}}
	return s
}

func TestFrames(t *testing.T) {
	bulk := admin.Query{Relay: "proxy", Class: "bulk", Limit: mostSessions}
	share := func(m *Model) {
		m.Update(answer{at: began.Add(61 * time.Second), status: sharing(61)})
		press(m, "home", "down")
	}
	for _, tt := range []struct {
		name          string
		width, height int
		options       Options
		act           func(*Model)
	}{
		{"80x24", 80, 24, Options{}, nil},
		{"120x40", 120, 40, Options{}, nil},
		{"200x50", 200, 50, Options{}, nil},
		{"60x12", 60, 12, Options{}, func(m *Model) { press(m, "end") }},
		{"40x10", 40, 10, Options{}, nil},
		{"ascii-80x24", 80, 24, Options{ASCII: true}, func(m *Model) { press(m, "s", "p") }},
		{"help-80x24", 80, 24, Options{}, func(m *Model) { press(m, "?") }},
		{"filter-80x24", 80, 24, Options{}, func(m *Model) { press(m, "/", "W", "e", "b") }},
		{"nothing-80x24", 80, 24, Options{}, func(m *Model) { press(m, "/", "z", "z", "enter") }},
		{"kernel-80x24", 80, 24, Options{}, func(m *Model) { press(m, "enter") }},
		{"sessions-80x24", 80, 24, Options{}, func(m *Model) {
			press(m, "end", "enter")
			m.Update(listed{at: began.Add(60 * time.Second), query: bulk, sessions: sessionsOf("bulk", 60)})
			m.Update(answer{at: began.Add(62 * time.Second), status: office(62), query: bulk, sessions: sessionsOf("bulk", 62)})
			press(m, "down", "down")
		}},
		{"shared-80x24", 80, 24, Options{}, share},
		{"shared-120x40", 120, 40, Options{}, share},
		{"away-80x24", 80, 24, Options{}, func(m *Model) {
			m.Update(answer{at: began.Add(72 * time.Second), err: errors.New("control socket /run/shaperd/shaperd.sock: no daemon runs here (start one with …)")})
		}},
		{"warnings-80x24", 80, 24, Options{}, func(m *Model) {
			s := office(61)
			s.State = "draining"
			s.Reloads.LastError = []string{"shaperd.yaml:3:5: what is wrong\n  with an excerpt"}
			s.Interfaces = []admin.Interface{{Name: "eth1"}, {Name: "eth0", Present: true, Drift: true, Problem: "a qdisc is gone"}}
			s.Relays[0].State = "draining"
			applied := int64(90e6)
			s.Links[0].Applied = &applied
			far := began.Add(8 * 24 * time.Hour)
			s.Overrides[0].Until, s.Next.At = &far, far
			m.Update(answer{at: began.Add(61 * time.Second), status: s})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := watching(tt.options, tt.width, tt.height, 60)
			if tt.act != nil {
				tt.act(m)
			}
			golden(t, tt.name+".txt", plainFrame(m)+"\n")
		})
	}
}

func TestARedisThatIsAwayIsAWarning(t *testing.T) {
	s := sharing(61)
	s.Shared.Problem, s.Shared.OnOutage = "redis 10.0.0.9:6379: no answer (nothing within 100ms): see", "min"
	m := watching(Options{}, 120, 24, 60)
	m.Update(answer{at: began.Add(61 * time.Second), status: s})
	if got := plainFrame(m); !strings.Contains(got, "redis 10.0.0.9:6379: no answer (nothing within 100ms): see; on_outage counts: min") {
		t.Errorf("it is shown as\n%s", got)
	}
}

func TestAShareOfNothingIsNothing(t *testing.T) {
	s := sharing(61)
	s.Shared.Shares[0].Rate, s.Links[0].Classes[0].Rate, s.Links[0].Classes[0].Ceil = 0, 1, 1
	m := watching(Options{}, 120, 24, 60)
	m.Update(answer{at: began.Add(61 * time.Second), status: s})
	if got := plainFrame(m); !regexp.MustCompile(`mirror +0bit +of 30mbit `).MatchString(got) || !strings.Contains(got, "share 0bit ") {
		t.Errorf("it is shown as\n%s", got)
	}
}

func TestBeforeTheFirstAnswer(t *testing.T) {
	m := New(nobody{}, Options{Interval: time.Second})
	if got := plainFrame(m); got != "" {
		t.Errorf("a frame without a size: %q", got)
	}
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	if got := plainFrame(m); !strings.HasPrefix(got, "asking the daemon") {
		t.Errorf("%q", got)
	}
	press(m, "j", "enter", "s", "/", "x", "enter", "esc") // there is nothing to select yet
	m.Update(answer{at: began, err: errors.New("nobody is there")})
	m.Update(answer{at: began.Add(5 * time.Second), err: errors.New("nobody is there")})
	if got := plainFrame(m); !strings.HasPrefix(got, "waiting for the daemon  for 5s") || !strings.Contains(got, "nobody is there") {
		t.Errorf("%q", got)
	}
}

// Whatever the terminal's size, no line is too long and none too many.
func TestFramesFitEveryTerminal(t *testing.T) {
	m := watching(Options{}, 80, 24, 3)
	s := office(4)
	s.Links[1].Classes[0].Name = "a-class-whose-name-is-as-long-as-a-name-may-be-which-is-63-char"
	s.Policy = "/etc/shaperd/\x1b[2J事業所.yaml"
	m.Update(answer{at: began.Add(4 * time.Second), status: s})
	for _, keys := range [][]string{nil, {"?"}, {"?", "end", "enter"}, {"esc", "/", "事"}} {
		press(m, keys...)
		if m.list != nil {
			m.Update(listed{at: began, query: m.list.query, sessions: sessionsOf("bulk", 1)})
		}
		for width := 1; width <= 130; width++ {
			for _, height := range []int{1, 2, 3, 4, 5, 8, 24, 60} {
				m.Update(tea.WindowSizeMsg{Width: width, Height: height})
				lines := strings.Split(m.View().Content, "\n")
				if len(lines) > height {
					t.Fatalf("%dx%d, keys %q: %d lines", width, height, keys, len(lines))
				}
				for _, l := range lines {
					if w := lipgloss.Width(l); w > width {
						t.Fatalf("%dx%d, keys %q: a line of %d: %q", width, height, keys, w, l)
					}
				}
				if strings.Contains(m.View().Content, "\x1b[2J") {
					t.Fatal("what the daemon says reaches the terminal as a command")
				}
			}
		}
	}
}

func TestWhatIsDrawnFollowsTheLocale(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		want bool
	}{
		{map[string]string{"LANG": "de_DE.UTF-8"}, false},
		{map[string]string{"LC_ALL": "C.utf8", "LANG": "C"}, false},
		{map[string]string{"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, true},
		{map[string]string{"LC_CTYPE": "en_US.ISO-8859-1", "LANG": "de_DE.UTF-8"}, true},
		{nil, true},
		{map[string]string{"LANG": "de_DE.UTF-8", "TERM": "linux"}, true},
	} {
		if got := ASCIIOnly(func(name string) string { return tt.env[name] }); got != tt.want {
			t.Errorf("%v: ASCII only %v, want %v", tt.env, got, tt.want)
		}
	}
	m := watching(Options{ASCII: true}, 120, 40, 60)
	for _, keys := range []string{"", "?"} {
		if keys != "" {
			press(m, keys)
		}
		for _, r := range plainFrame(m) {
			if r > 127 {
				t.Fatalf("%q in\n%s", r, plainFrame(m))
			}
		}
	}
}

// The bar has a scale, not numbers: those of the row that is selected have a line.
func TestDetailsAreOfWhatIsSelected(t *testing.T) {
	m := watching(Options{}, 80, 24, 2)
	s := office(3)
	s.Links[1].Rate, s.Links[1].Classes[0].Ceil, s.Links[0].Classes[2].Ceil = 0, 0, 0
	m.Update(answer{at: began.Add(3 * time.Second), status: s})
	press(m, "g")
	for _, want := range []string{
		"eth0 egress  rate 100mbit",
		"voice on eth0 egress  rate 2mbit │  ceil 10mbit  burst 32.0KiB",
		"web on eth0 egress  rate 40mbit │  ceil 100mbit",
		"backup on eth0 egress  rate 10mbit │  ceil 100mbit, the link's rate",
		"relay proxy download  rate without a limit",
		"interactive on relay proxy download  rate 5mbit │  ceil none: full is the peak",
		"bulk on relay proxy download  rate 10mbit │  ceil 50mbit",
	} {
		lines := strings.Split(plainFrame(m), "\n")
		if got := lines[len(lines)-2]; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		press(m, "j")
	}
	m.Update(tea.WindowSizeMsg{Width: 80, Height: roomy - 1})
	if got := plainFrame(m); strings.Contains(got, "rate 10mbit │") {
		t.Errorf("a low terminal has details:\n%s", got)
	}
}
