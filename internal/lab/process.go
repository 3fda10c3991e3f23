package lab

import (
	"bytes"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
)

// A process runs on a host until it ends, or the lab does.
type process struct {
	*exec.Cmd
	waited sync.Once
	err    error
}

// wait may be called more than once, from anywhere.
func (p *process) wait() error {
	p.waited.Do(func() { p.err = p.Wait() })
	return p.err
}

func (p *process) kill() {
	_ = p.Process.Kill()
	_ = p.wait()
}

// Start starts a process on a host, and returns what waits for its end. It is
// killed by Close, and by the end of this process however that comes about.
func (l *Lab) Start(name string, cmd *exec.Cmd) (wait func() error, err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL // with its parent thread, which is the host's
	p := &process{Cmd: cmd}
	if err := l.Do(name, cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s on %s: %w", cmd.Path, name, err)
	}
	l.processes = append(l.processes, p)
	return p.wait, nil
}

// Output runs a command on a host and returns what it prints.
func (l *Lab) Output(name string, command ...string) (string, error) {
	var out bytes.Buffer
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &out
	wait, err := l.Start(name, cmd)
	if err != nil {
		return "", err
	}
	err = wait()
	l.processes = l.processes[:len(l.processes)-1]
	if err != nil {
		return out.String(), fmt.Errorf("%v on %s: %w: %s", command, name, err, out.Bytes())
	}
	return out.String(), nil
}
