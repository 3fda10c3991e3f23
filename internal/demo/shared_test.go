package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// shortSteps are the demo's, too short for exact shares.
func shortSteps() []sharedStep {
	short := append([]sharedStep(nil), sharedSteps...)
	for i := range short {
		short[i].settle, short[i].length = 300*time.Millisecond, 500*time.Millisecond
	}
	short[0].settle = 3 * time.Second // nobody has anything before the Redis has learned
	return short
}

// inOwnFolder has the demo make its folder where the test can see it, and sees
// that nothing is left of it.
func inOwnFolder(t *testing.T) {
	t.Helper()
	// Not in t.TempDir: a socket's path has to be short.
	dir, err := os.MkdirTemp("/tmp", "demo") //nolint:usetesting // its path is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() {
		if left, _ := filepath.Glob(dir + "/*"); left != nil {
			t.Errorf("files are left: %v", left)
		}
		if left := processesOf(t, dir); left != nil {
			t.Errorf("processes are left: %q", left)
		}
		os.RemoveAll(dir)
	})
}

// processesOf are the processes that a folder is named to, or that are in it: a
// redis-server writes over its command line.
func processesOf(t *testing.T, folder string) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || all == nil {
		t.Fatal(all, err)
	}
	for _, p := range all {
		line, _ := os.ReadFile(p + "/cmdline") // it may have ended
		cwd, _ := os.Readlink(p + "/cwd")
		if strings.Contains(string(line)+cwd, folder) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// A whole demo, with a promise that no relay could keep.
func TestARelayThatDoesNotGetItsShareIsAnError(t *testing.T) {
	inOwnFolder(t)
	tooMuch := func(rate float64, step *sharedStep) []float64 {
		shares := promisedShares(rate, step)
		shares[1] = 2 * rate
		return shares
	}
	steps := shortSteps()
	var out bytes.Buffer
	err := runShared(t.Context(), &out, SharedOptions{Program: shaperdForTest(t), JSON: true}, steps, tooMuch)
	var off *OffError
	if !errors.As(err, &off) || !strings.Contains(off.What, `relay2 by -`) || off.Percent != SharedTolerance {
		t.Fatalf("error %v, want that relay2 is off", err)
	}
	var r sharedReport
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v in %s", err, &out)
	}
	if r.Rate != 30e6 || r.Burst != 64<<10 || len(r.Steps) != len(steps) {
		t.Fatalf("rate %v, burst %d, %d steps", r.Rate, r.Burst, len(r.Steps))
	}
	for i, s := range r.Steps {
		sum := 0.0
		for n, h := range s.Relays {
			sum += h.Measured
			if steps[i].wants[n] > 0 && h.Measured <= 0 {
				t.Errorf("%q: nothing arrived from %s", s.Step, h.Relay)
			}
		}
		if sum != s.Sum || s.Most <= 0 || s.Most > s.AtMost || s.AtMost != 375_000+64<<10 {
			t.Errorf("%q: sum %v of %v, %d bytes of %d in a window", s.Step, s.Sum, sum, s.Most, s.AtMost)
		}
	}
}

func TestWithoutRedisServerTheCureIsTold(t *testing.T) {
	inOwnFolder(t)
	t.Setenv("PATH", t.TempDir())
	err := RunShared(t.Context(), &bytes.Buffer{}, SharedOptions{Program: "/bin/false"})
	if !errors.Is(err, exec.ErrNotFound) {
		t.Fatalf("error %v", err)
	}
	golden(t, "shared-no-redis.txt", err.Error()+"\n")
}

func TestADaemonOfTheSharedDemoThatEndsIsAnErrorWithItsWords(t *testing.T) {
	inOwnFolder(t)
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho no such thing\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := RunShared(t.Context(), &bytes.Buffer{}, SharedOptions{Program: program})
	if want := "relay1 ended, exit status 3:\nno such thing"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestAnInterruptedSharedDemoLeavesTheTerminalAsItWas(t *testing.T) {
	inOwnFolder(t)
	program := shaperdForTest(t)
	mustLeaveTheTerminal(t, "7/8 of the height", func(ctx context.Context, out *os.File) error {
		return runShared(ctx, out, SharedOptions{Program: program}, sharedSteps, promisedShares)
	})
}

// An interrupt ends the demo at every moment of its start, and leaves nothing.
func TestASharedDemoThatIsInterruptedAtOnceEnds(t *testing.T) {
	inOwnFolder(t)
	interrupt := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(interrupt)
	if err := RunShared(ctx, &bytes.Buffer{}, SharedOptions{Program: shaperdForTest(t)}); !errors.Is(err, interrupt) {
		t.Errorf("error %v", err)
	}
}
