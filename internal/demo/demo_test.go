package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shaperd/shaper"
)

// A whole demo, too short for exact rates, with a promise that no link could keep.
func TestAClassThatDoesNotGetItsPromiseIsAnError(t *testing.T) {
	tooMuch := func(link shaper.Link, sends func(string) bool) []promise {
		all := promises(link, sends)
		all[1].own = 2 * float64(link.Rate)
		return all
	}
	var out bytes.Buffer
	err := run(t.Context(), &out, true, 300*time.Millisecond, tooMuch)
	var off *OffError
	if !errors.As(err, &off) || !strings.Contains(off.What, "web by -") {
		t.Errorf("error %v, want that web is off", err)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v in %s", err, &out)
	}
	if len(r.Phases) != len(phases) || len(r.Bursts) != len(connections) {
		t.Fatalf("%d phases, %d bursts", len(r.Phases), len(r.Bursts))
	}
	for i, p := range r.Phases {
		if len(p.Classes) != len(connections) {
			t.Fatalf("%q: %d classes", p.Phase, len(p.Classes))
		}
		for _, c := range p.Classes {
			if c.Connections != connections[c.Class] {
				t.Errorf("%q, %s: %d connections", p.Phase, c.Class, c.Connections)
			}
			if c.Class != phases[i].quiet && c.Measured <= 0 {
				t.Errorf("%q, %s: nothing arrived", p.Phase, c.Class)
			}
		}
	}
	for _, b := range r.Bursts {
		if b.Measured <= 0 || b.Measured > b.Configured {
			t.Errorf("%s: %d bytes at once, the policy allows %d", b.Class, b.Measured, b.Configured)
		}
	}
}

// pty returns both ends of a pseudoterminal of 80 by 24.
func pty(t *testing.T) (ours, program *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	fd := int(ours.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	return ours, program
}

func TestAnInterruptedDemoLeavesTheTerminalAsItWas(t *testing.T) {
	mustLeaveTheTerminal(t, "its ceil", func(ctx context.Context, out *os.File) error {
		return run(ctx, out, false, time.Minute, promises)
	})
}

// mustLeaveTheTerminal interrupts a demo once a terminal has shown what is last
// in a frame, and sees that the terminal is in order when the demo has ended.
func mustLeaveTheTerminal(t *testing.T, last string, run func(context.Context, *os.File) error) {
	t.Helper()
	t.Setenv("TERM", "xterm")
	ours, program := pty(t)
	interrupt := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, program)
		io.WriteString(program, "the end\n")
	}()
	var shown strings.Builder
	buf := make([]byte, 4096)
	for read := true; read; read = !strings.Contains(shown.String(), "the end\r\n") {
		n, err := ours.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		shown.Write(buf[:n])
		if strings.Contains(shown.String(), last) {
			cancel(interrupt)
		}
	}
	if err := <-ended; !errors.Is(err, interrupt) {
		t.Errorf("error %v", err)
	}
	enter, leave := "\x1b[?1049h\x1b[?25l\x1b[?7l", "\x1b[?7h\x1b[?25h\x1b[?1049l"
	if s := shown.String(); !strings.HasPrefix(s, enter) || !strings.HasSuffix(s, leave+"the end\r\n") {
		t.Errorf("the terminal was shown %q", s)
	}
}

func TestADumbTerminalGetsLines(t *testing.T) {
	t.Setenv("TERM", "dumb")
	_, program := pty(t)
	if _, ok := newView(program, false).(*lines); !ok {
		t.Error("no lines")
	}
	t.Setenv("TERM", "xterm")
	if _, ok := newView(program, false).(*screen); !ok {
		t.Error("no screen")
	}
}
