package demo

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"shaperd/classify"
	"shaperd/configs"
	"shaperd/internal/lab"
)

//go:embed kernel.yaml
var kernelPolicy []byte

// routerDevice is the router's interface that the policy is for.
const routerDevice = "wan0"

// build makes the hosts, starts the daemon on the router, and connects.
func (d *kernelDemo) build(program string) (err error) {
	p, err := configs.Parse("kernel.yaml", kernelPolicy)
	if err != nil {
		return err
	}
	rules, err := classify.Compile(p.Rules)
	if err != nil {
		return err
	}
	if d.lab, err = lab.New("client", "router", "server"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	end := func(host, device string, addrs ...string) lab.End {
		return lab.End{Host: host, Device: device, Addrs: addrs}
	}
	if err := errors.Join(
		d.lab.Join(end("client", "eth0", "10.1.0.2/24", "fd01::2/64"), end("router", "lan0", "10.1.0.1/24", "fd01::1/64")),
		d.lab.Join(end("server", "eth0", "10.2.0.2/24", "fd02::2/64"), end("router", routerDevice, "10.2.0.1/24", "fd02::1/64")),
		d.lab.Route("client", "10.1.0.1", "fd01::1"),
		d.lab.Route("server", "10.2.0.1", "fd02::1"),
	); err != nil {
		return err
	}
	if d.daemon, err = startDaemon(d.lab, program); err != nil {
		return err
	}
	i := p.Interfaces[0]
	for _, dir := range []*direction{
		{name: "upload", link: i.Egress, to: "server"},
		{name: "download", link: i.Ingress, to: "client", down: true},
	} {
		d.directions = append(d.directions, dir)
		if err := dir.open(d.lab, rules); err != nil {
			return err
		}
	}
	return nil
}

// close ends what build has made.
func (d *kernelDemo) close() {
	for _, dir := range d.directions {
		dir.close()
	}
	d.lab.Close()
}

// A routerDaemon is a shaperd that runs on the router.
type routerDaemon struct {
	log  chan string // its lines; closed when it has ended
	text []string    // of those read
	at   time.Time   // when the last of them was read
}

// startDaemon returns when the daemon says that it is ready.
func startDaemon(l *lab.Lab, program string) (*routerDaemon, error) {
	dir, err := os.MkdirTemp("", "shaperd-demo-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "kernel.yaml")
	if err := os.WriteFile(file, kernelPolicy, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "run", "--config", file)
	cmd.Env = append(os.Environ(), "RUNTIME_DIRECTORY="+dir) // beside a daemon of this host
	log, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if _, err := l.Start("router", cmd); err != nil {
		return nil, err
	}
	r := &routerDaemon{log: make(chan string, 1000)}
	go func() {
		for lines := bufio.NewScanner(log); lines.Scan(); {
			r.log <- lines.Text()
		}
		close(r.log)
	}()
	for line := range r.log {
		if r.text = append(r.text, line); strings.Contains(line, "msg=ready") {
			return r, nil
		}
	}
	return nil, fmt.Errorf("the daemon on the router ended:\n%s", strings.Join(r.text, "\n"))
}

// said reads what the daemon has logged until a line has the word, without waiting.
func (r *routerDaemon) said(word string) bool {
	for {
		select {
		case line, open := <-r.log:
			if !open {
				return false
			}
			r.text, r.at = append(r.text, line), time.Now()
			if strings.Contains(line, word) {
				return true
			}
		default:
			return false
		}
	}
}
