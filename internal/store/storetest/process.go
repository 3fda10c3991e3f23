package storetest

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a server may take to say what is awaited of it.
const patience = 30 * time.Second

// A process is a server's, with what it has printed.
type process struct {
	t   testing.TB
	cmd *exec.Cmd

	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed when there is another line or the end
	ended bool
}

// start runs a program until the test ends.
func start(t testing.TB, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(name, args...), more: make(chan struct{})}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // with the thread that starts it
	out, in := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = in, in
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
		}
		in.Close()
		runtime.UnlockOSThread()
	}()
	go p.read(out)
	if err := <-started; err != nil {
		t.Fatalf("start %s: %v: install redis-server and redis-sentinel", name, err)
	}
	t.Cleanup(p.kill)
	return p
}

func (p *process) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	for more := true; more; {
		more = lines.Scan()
		p.mu.Lock()
		if p.ended = !more; more {
			p.lines = append(p.lines, lines.Text())
		}
		close(p.more)
		p.more = make(chan struct{})
		p.mu.Unlock()
	}
}

// await waits until one of the lines from a number on contains the text, and
// returns the next line's number; -1 if the process ended before. It fails the
// test when that takes too long.
func (p *process) await(text string, from int) int {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		p.mu.Lock()
		for ; from < len(p.lines); from++ {
			if strings.Contains(p.lines[from], text) {
				p.mu.Unlock()
				return from + 1
			}
		}
		more, ended := p.more, p.ended
		p.mu.Unlock()
		if ended {
			return -1
		}
		select {
		case <-more:
		case <-deadline:
			p.t.Fatalf("%s has not said %q; it said:\n%s", p.cmd.Path, text, p.said())
		}
	}
}

// printed is the number of lines so far.
func (p *process) printed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.lines)
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// kill ends the process at once and waits for its end.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	for {
		p.mu.Lock()
		more, ended := p.more, p.ended
		p.mu.Unlock()
		if ended {
			return
		}
		<-more
	}
}

// signal does nothing when the process has ended.
func (p *process) signal(sig os.Signal) { _ = p.cmd.Process.Signal(sig) }
