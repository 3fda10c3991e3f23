package monitoring

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// build makes the program shaperd, as the tests are built: most is compiled already.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "shaperd")
	args := []string{"build", "-o", program, "shaperd/cmd/shaperd"}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = slices.Insert(args, 1, "-race")
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// A process is a program that runs until the test ends.
type process struct {
	t   *testing.T
	log chan string // lines of stderr; closed when there are no more
}

func run(t *testing.T, program string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET=", "JOURNAL_STREAM=", "WATCHDOG_USEC=")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t, make(chan string, 10000)}
	go func() {
		defer close(p.log)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			p.log <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		for line := range p.log {
			if t.Failed() {
				t.Logf("%s: %s", filepath.Base(program), line)
			}
		}
		_ = cmd.Wait() // killed
	})
	return p
}

// after returns the word after text in the next line of the log that has it, without brackets.
func (p *process) after(text string) string {
	p.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case line, ok := <-p.log:
			if !ok {
				p.t.Fatalf("it ended without saying %q", text)
			}
			if _, rest, found := strings.Cut(line, text); found {
				word, _, _ := strings.Cut(rest, " ")
				return strings.Trim(word, "[]")
			}
		case <-timeout:
			p.t.Fatalf("it does not say %q", text)
		}
	}
}
