package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"shaperd/internal/admin"
)

// A smallOffice is what a daemon answers that shapes one link. What it is not asked
// for in these tests it does not have.
type smallOffice struct {
	admin.Backend
	asked atomic.Uint64
}

func (o *smallOffice) Status(context.Context) (*admin.Status, error) {
	n := o.asked.Add(1)
	return &admin.Status{
		State: "ready", Policy: "office.yaml", Started: time.Now().Add(-time.Hour),
		Links: []admin.Link{{Name: "relay proxy download", Datapath: "relay", Rate: 50e6, Achieved: 40e6, Classes: []admin.Class{
			{Name: "web", Rate: 20e6, Ceil: 50e6, Achieved: 10e6, Sent: 1_000_000 * n, Sessions: 3},
			{Name: "bulk", Rate: 10e6, Ceil: 50e6, Achieved: 30e6, Sent: 4_000_000 * n, Borrowed: 3_000_000 * n, Sessions: 2, Backlogged: 1},
		}}},
		Relays: []admin.Relay{{Name: "proxy", State: "serving", Sessions: 5}},
	}, nil
}

func (o *smallOffice) Sessions(_ context.Context, q admin.Query) (*admin.Sessions, error) {
	if q.Relay != "proxy" || q.Class != "bulk" {
		return nil, errors.New("asked for other sessions")
	}
	return &admin.Sessions{Total: 1, Sessions: []admin.Session{{Relay: "proxy", Class: "bulk", Client: "192.0.2.7:40001", Upstream: "198.51.100.5:873", Waiting: true}}}, nil
}

// answering has o answer on a socket until the returned function is called or
// the test ends.
func answering(t *testing.T, o *smallOffice, socket string) (end func()) {
	t.Helper()
	l, err := admin.Listen(admin.Socket{Path: socket})
	if err == nil {
		err = l.Place()
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- admin.NewServer(l, o, slog.New(slog.DiscardHandler), func(*http.ServeMux) {}).Run(ctx) }()
	ended := false
	end = func() {
		if cancel(); !ended {
			ended = true
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(end)
	return end
}

// A terminal is a pane of a tmux server of its own, which ends with the test.
type terminal struct {
	t      *testing.T
	socket string
}

// inTerminal runs a shell command in a terminal of 80x24 that stays when it ends.
func inTerminal(t *testing.T, command string) *terminal {
	t.Helper()
	// Not in t.TempDir: a socket's path has to be short.
	dir, err := os.MkdirTemp("/tmp", "tmux") //nolint:usetesting // its path is too long
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t, filepath.Join(dir, "s")}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the terminal shows:\n%s", term.shown())
		}
		term.tmux("kill-server")
		os.RemoveAll(dir)
	})
	term.tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", command+"; echo ended with $?; exec cat")
	return term
}

func (term *terminal) tmux(args ...string) string {
	term.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", term.socket, "-u"}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TMUX=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		term.t.Errorf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (term *terminal) shown() string { return term.tmux("capture-pane", "-p") }

// await looks until the terminal shows every text.
func (term *terminal) await(texts ...string) string {
	term.t.Helper()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	timeout := time.After(patience)
next:
	for {
		shown := term.shown()
		for _, text := range texts {
			if !strings.Contains(shown, text) {
				select {
				case <-look.C:
					continue next
				case <-timeout:
					term.t.Fatalf("the terminal does not show %q", text)
				}
			}
		}
		return shown
	}
}

func (term *terminal) press(keys ...string) {
	term.t.Helper()
	term.tmux(append([]string{"send-keys"}, keys...)...)
}

func TestTopOnATerminal(t *testing.T) {
	o := &smallOffice{}
	socket := filepath.Join(t.TempDir(), "s.sock")
	end := answering(t, o, socket)
	term := inTerminal(t, "echo before; GORACE=atexit_sleep_ms=20 "+program+" top --interval 250ms --socket "+socket)
	term.await("ready  office.yaml  for 1h00m", "relay proxy download  40.0mbit of 50mbit", "▸   web ", "75%", "? help",
		"CLASS          NOW  0 ···", "·· ceil  MINUTE      BORROW   WAITING   DELAY\n", "\nweb on relay proxy download  rate 20mbit │  ceil 50mbit\n")
	term.press("j")
	term.await("▸   bulk ", "\nbulk on relay proxy download  rate 10mbit │  ceil 50mbit\n")
	term.tmux("resize-window", "-x", "120", "-y", "40")
	term.await("CLASS          RATE       CEIL       NOW  0 ···", "▸   bulk         10mbit     50mbit  30.0mbit  ")
	term.tmux("resize-window", "-x", "80", "-y", "24")
	term.await("CLASS          NOW")
	term.press("Enter")
	term.await("bulk on relay proxy  1 session", "192.0.2.7:40001", "waits")
	term.press("Escape")
	term.await("enter sessions") // a key right after it would be taken for one with Alt
	term.press("s")
	if shown := term.await("sort: rate now", "web "); strings.Index(shown, "bulk ") > strings.Index(shown, "web ") {
		t.Errorf("not sorted by rate:\n%s", shown)
	}
	term.press("/")
	term.await("filter: _")
	term.press("b", "u", "Enter")
	if shown := term.await("filter: bu "); strings.Contains(shown, "web ") {
		t.Errorf("not filtered:\n%s", shown)
	}
	end()
	term.await("waiting for the daemon", "no daemon runs here", "bulk ")
	answering(t, o, socket)
	term.await("ready  office.yaml")
	term.tmux("resize-window", "-x", "40", "-y", "8")
	term.await("of 50m…") // cut
	term.press("p")
	term.await("paused")
	term.press("q")
	if shown := term.await("ended with 0"); !strings.Contains(shown, "before") || strings.Contains(shown, "bulk") {
		t.Errorf("the terminal is not as it was:\n%s", shown)
	}
}

func TestTopOnceLeavesWhatItSaw(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s.sock")
	answering(t, &smallOffice{}, socket)
	term := inTerminal(t, "LC_ALL=C GORACE=atexit_sleep_ms=20 "+program+" top --once --socket "+socket)
	if shown := term.await("ended with 0", ">   web", "10.0mbit"); strings.ContainsAny(shown, "▸█│") {
		t.Errorf("Unicode without a locale for it:\n%s", shown)
	}
}

func TestTopWithoutATerminal(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s.sock")
	o := &smallOffice{}
	end := answering(t, o, socket)
	got := output(t, 0, "top", "--json", "-n", "2", "--interval", "250ms", "--socket", socket)
	lines := strings.Split(strings.TrimSpace(got), "\n")
	for _, line := range lines {
		var s admin.Status
		if err := json.Unmarshal([]byte(line), &s); err != nil || s.Policy != "office.yaml" {
			t.Errorf("%q: %v", line, err)
		}
	}
	if len(lines) != 2 || o.asked.Load() != 2 {
		t.Errorf("%d lines of %d answers, want 2 of 2", len(lines), o.asked.Load())
	}
	if got := output(t, 0, "top", "--once", "--socket", socket); !strings.Contains(got, "ready  policy office.yaml") || !strings.Contains(got, "30.0mbit") {
		t.Errorf("plain: %s", got)
	}
	end()
	if got := output(t, 1, "top", "--socket", socket); !strings.Contains(got, "no daemon runs here") {
		t.Errorf("without a daemon: %s", got)
	}
}

// A daemon that goes away while its status is printed is waited for.
func TestTopIntoAPipeWaitsForTheDaemon(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s.sock")
	o := &smallOffice{}
	end := answering(t, o, socket)
	complaints, complain := io.Pipe()
	answers, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(t.Context(), []string{"top", "--json", "-n", "2", "--interval", "250ms", "--socket", socket}, strings.NewReader(""), out, complain)
		out.Close()
	}()
	first := json.NewDecoder(answers)
	if err := first.Decode(new(admin.Status)); err != nil {
		t.Fatal(err)
	}
	end()
	said := make([]byte, 200)
	n, err := complaints.Read(said)
	if err != nil || !bytes.Contains(said[:n], []byte("waiting for the daemon")) {
		t.Fatalf("%q, %v", said[:n], err)
	}
	answering(t, o, socket)
	if err := first.Decode(new(admin.Status)); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
