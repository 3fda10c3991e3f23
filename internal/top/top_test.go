package top

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"shaperd/internal/admin"
)

var update = flag.Bool("update", false, "write the golden files")

// began is when the daemon of the tests was started; its clock is what they say.
var began = time.Date(2026, 3, 6, 12, 0, 0, 0, time.UTC)

func TestMain(m *testing.M) {
	time.Local = time.UTC // the view shows local times
	flag.Parse()
	os.Exit(m.Run())
}

// nobody is asked: the tests bring the answers.
type nobody struct{}

func (nobody) Status(context.Context) (*admin.Status, error) { return nil, errors.New("not asked") }
func (nobody) Sessions(context.Context, admin.Query) (*admin.Sessions, error) {
	return nil, errors.New("not asked")
}

// office is a daemon with a relay and an interface, n seconds after it began.
func office(n int) *admin.Status {
	u := uint64(n)
	until := began.Add(90 * time.Minute)
	return &admin.Status{
		Version: "1", PID: 7, Started: began, State: "ready", Policy: "/etc/shaperd/shaperd.yaml", TimeZone: "UTC",
		Links: []admin.Link{
			{Name: "eth0 egress", Datapath: "kernel", Rate: 100e6, Achieved: 62.34e6, Unshaped: 12, Classes: []admin.Class{
				{Name: "voice", Rate: 2e6, Ceil: 10e6, Burst: 32 << 10, Achieved: 1.1e6, Sent: 137_500 * u, Packets: 700 * u},
				{Name: "web", Rate: 40e6, Ceil: 100e6, Achieved: 55e6 + 1e6*float64(n%7), Sent: 7e6 * u, Packets: 5000 * u, Borrowed: 1400 * u, Backlog: 48 << 10, Dropped: 3 * u},
				{Name: "backup", Rate: 10e6, Ceil: 100e6, Achieved: 0},
			}},
			{Name: "relay proxy download", Datapath: "relay", Rate: 50e6, Achieved: 49.9e6, Classes: []admin.Class{
				{Name: "interactive", Rate: 5e6, Ceil: 50e6, Achieved: 640e3, Sent: 80_000 * u, Sessions: 12, Waits: 10 * u, WaitSeconds: 0.004 * float64(n)},
				{Name: "bulk", Rate: 10e6, Ceil: 50e6, Achieved: 49.3e6, Sent: 6_162_500 * u, Borrowed: 4_912_500 * u, Sessions: 140, Backlogged: 97, Waits: 100 * u, WaitSeconds: 3.21 * float64(n)},
			}},
		},
		Relays:     []admin.Relay{{Name: "proxy", State: "serving", Sessions: 152}},
		Interfaces: []admin.Interface{{Name: "eth0", Present: true}},
		Overrides:  []admin.Override{{Class: "backup", Rate: "10mbit", Until: &until}},
		Next: &admin.Upcoming{At: began.Add(6 * time.Hour), Changes: []admin.RateChange{
			{Link: "eth0 egress", Class: "backup", From: admin.Rates{Rate: 10e6}, To: admin.Rates{Rate: 50e6}},
			{Link: "eth0 egress", Class: "web", From: admin.Rates{Rate: 40e6}, To: admin.Rates{Rate: 20e6}},
		}},
	}
}

// watching is a view of a size that has had answers for some seconds.
func watching(o Options, width, height, seconds int) *Model {
	o.Interval = time.Second
	m := New(nobody{}, o)
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	for n := 1; n <= seconds; n++ {
		m.Update(answer{at: began.Add(time.Duration(n) * time.Second), status: office(n)})
	}
	return m
}

// press presses keys, by their names.
func press(m *Model, keys ...string) (last tea.Cmd) {
	for _, k := range keys {
		msg, named := map[string]tea.KeyPressMsg{
			"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown},
			"backspace": {Code: tea.KeyBackspace}, "space": {Code: tea.KeySpace, Text: " "}, "end": {Code: tea.KeyEnd},
			"pgdown": {Code: tea.KeyPgDown}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl},
		}[k]
		if !named {
			msg = tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
		}
		_, last = m.Update(msg)
	}
	return last
}

// plainFrame is what is on the terminal, without colors.
func plainFrame(m *Model) string { return ansi.Strip(m.View().Content) }

// golden compares got with the named file in testdata; go test -update writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s (go test ./internal/top -update writes it):\n got:\n%s\nwant:\n%s", path, got, want)
	}
}
