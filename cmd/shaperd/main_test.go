package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files")

var (
	program  string // the shaperd that the tests run
	testdata string // absolute
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "shaperd")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if testdata, err = filepath.Abs("testdata"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if err := os.Setenv("RUNTIME_DIRECTORY", filepath.Join(dir, "run")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		program = filepath.Join(dir, "shaperd")
		build := exec.Command("go", append([]string{"build", "-o", program}, raceFlag()...)...)
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
			return 1
		}
		if err := os.Chmod(dir, 0o755); err != nil { // other users run it too
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// raceFlag has the program built with the race detector when the tests are.
func raceFlag() []string {
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if s.Key == "-race" && s.Value == "true" {
			return []string{"-race"}
		}
	}
	return nil
}

// env is the environment that shaperd is run in: without a service manager, and
// without the second that the race detector waits at each exit.
func env() []string {
	return append(os.Environ(), "NOTIFY_SOCKET=", "JOURNAL_STREAM=", "WATCHDOG_USEC=", "GORACE=atexit_sleep_ms=20")
}

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// A process is a shaperd that runs. It is killed when the test ends.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	socket string       // its control socket
	stdout bytes.Buffer // once it has ended
	log    chan string  // lines of stderr; closed when there are no more
	ended  chan struct{}
	seen   []string // lines taken from log
}

// start runs shaperd with args. Adjust, if not nil, may change the command before.
func start(t *testing.T, adjust func(*exec.Cmd), args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(program, args...), log: make(chan string, 1000), ended: make(chan struct{})}
	p.socket = filepath.Join(t.TempDir(), "socket")
	p.cmd.Env = append(env(), "SHAPERD_SOCKET="+p.socket)
	p.cmd.Stdout = &p.stdout
	if adjust != nil {
		adjust(p.cmd)
	}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			p.log <- lines.Text()
		}
		close(p.log)
		_ = p.cmd.Wait() // its ProcessState says it all
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // unless it has ended
		<-p.ended
		for line := range p.log {
			p.seen = append(p.seen, line)
		}
		if t.Failed() {
			t.Logf("log of shaperd:\n%s", strings.Join(p.seen, "\n"))
		}
		for _, line := range p.seen {
			if strings.Contains(line, "DATA RACE") {
				t.Error("shaperd has a data race")
			}
		}
	})
	return p
}

// await returns the next line of the log that contains text.
func (p *process) await(text string) string {
	p.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case line, ok := <-p.log:
			if !ok {
				p.t.Fatalf("shaperd ended without the line %q", text)
			}
			p.seen = append(p.seen, line)
			if strings.Contains(line, text) {
				return line
			}
		case <-timeout:
			p.t.Fatalf("no line %q", text)
		}
	}
}

// listen awaits the line that says where something listens, and returns the address.
func (p *process) listen(text string) string {
	p.t.Helper()
	line := p.await(text)
	_, addr, ok := strings.Cut(line, "listen=")
	if !ok {
		p.t.Fatalf("no address in %q", line)
	}
	return strings.Trim(addr, "[]")
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// exit waits for the end and returns the exit code and what is left of stderr.
func (p *process) exit() (code int, stderr string) {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatal("shaperd does not end")
	}
	var rest []string
	for line := range p.log {
		rest = append(rest, line)
	}
	p.seen = append(p.seen, rest...)
	return p.cmd.ProcessState.ExitCode(), strings.Join(rest, "\n")
}

// file writes text to a file of that name in a new directory that all may read.
func file(t *testing.T, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, name)
	write(t, path, text)
	return path
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// golden compares got with the named file in testdata; go test -update writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join(testdata, name)
	if *update {
		write(t, path, got)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s (go test ./cmd/shaperd -update writes it):\n got:\n%s\nwant:\n%s", path, got, want)
	}
}
