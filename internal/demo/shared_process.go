package demo

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	stopTime  = 3 * time.Second // after which a process that was asked to end is killed
	keptLines = 10              // of what a process has said
)

// A process is a program that runs for the demo.
type process struct {
	name     string
	cmd      *exec.Cmd
	said     chan []string // gets the first match of what it is to say
	ended    chan struct{} // closed when it has ended and been waited for
	text     []string      // its last lines
	expected atomic.Bool   // that it ends
}

// startProcess runs a program and calls fail if it ends before it is stopped or
// killed. It does so in a process group of its own, so that a terminal's
// interrupt is the demo's to handle, and ends with the demo, however that ends.
func startProcess(name string, ready *regexp.Regexp, fail func(error), command ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(command[0], command[1:]...), said: make(chan []string, 1), ended: make(chan struct{})}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go p.run(ready, fail, started)
	return p, <-started
}

func (p *process) run(ready *regexp.Regexp, fail func(error), started chan<- error) {
	defer close(p.ended)
	runtime.LockOSThread() // for the kernel, the thread is the parent that a child ends with
	defer runtime.UnlockOSThread()
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.cmd.Stderr = p.cmd.Stdout
		err = p.cmd.Start()
	}
	if err != nil {
		err = fmt.Errorf("start %s: %w", p.name, err)
	}
	if started <- err; err != nil {
		return
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.text = append(p.text, lines.Text())
		p.text = p.text[max(len(p.text)-keptLines, 0):]
		if match := ready.FindStringSubmatch(lines.Text()); match != nil {
			select {
			case p.said <- match:
			default: // only the first counts
			}
		}
	}
	_ = p.cmd.Wait() // how it ended is in its state
	if !p.expected.Load() {
		fail(fmt.Errorf("%s ended, %s:\n%s", p.name, p.cmd.ProcessState, strings.Join(p.text, "\n")))
	}
}

// await returns what matched, once the process has said what it is to say.
func (p *process) await(ctx context.Context) (match []string, err error) {
	select {
	case match := <-p.said:
		return match, nil
	case <-p.ended:
		<-ctx.Done() // told by run
	case <-ctx.Done():
	}
	return nil, context.Cause(ctx)
}

// stop asks the process to end and waits for it.
func (p *process) stop() {
	p.expected.Store(true)
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // one that has ended already need not be told
	select {
	case <-p.ended:
	case <-time.After(stopTime):
		p.kill()
	}
}

// kill ends the process at once.
func (p *process) kill() {
	p.expected.Store(true)
	_ = p.cmd.Process.Kill()
	<-p.ended
}
