package demo

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"shaperd/configs"
	"shaperd/internal/lab"
	"shaperd/internal/measure"
	"shaperd/shaper"
)

//go:embed kernel.yaml
var kernelPolicy []byte

const (
	kernelSettle  = 2 * time.Second        // from the first byte of a direction until rates are measured
	kernelMeasure = 6 * time.Second        // of each direction
	sampleTime    = 250 * time.Millisecond // of the picture
	repairTime    = 10 * time.Second       // after which the demo no longer waits for the repair
)

// A direction is one half of the kernel's demo: what crosses the router one way.
type direction struct {
	name, about string
	link        shaper.Link
	flows       []*flows
	promised    []promise
	results     []classResult
}

// A kernelDemo is one run. All of it belongs to the goroutine in RunKernel.
type kernelDemo struct {
	lab        *lab.Lab
	directions []*direction
	settle     time.Duration
	measure    time.Duration // of each direction
	base       time.Time
	step       int // in directions, or len(directions): the repair
	repair     string
	log        chan string // of the daemon
	draw       func(*kernelFrame)
}

// RunKernel shows the kernel's datapath on out: two hosts with a router between
// them, made of network namespaces, on which program, a shaperd, shapes traffic
// of four classes both ways. Then the router's root qdisc is deleted behind the
// daemon's back. It returns an *OffError if a class was off its promise. It
// needs root.
func RunKernel(ctx context.Context, out io.Writer, program string) error {
	return runKernel(ctx, out, program, kernelSettle, kernelMeasure)
}

func runKernel(ctx context.Context, out io.Writer, program string, settle, measure time.Duration) error {
	d := &kernelDemo{base: time.Now(), log: make(chan string, 1000), settle: settle, measure: measure}
	if err := d.build(program); err != nil {
		return err
	}
	defer d.lab.Close()
	v, closeView := kernelView(out)
	d.draw = v
	err := d.run(ctx)
	closeView()
	if err != nil {
		return err
	}
	return d.print(out)
}

// build makes the hosts, starts the daemon on the router, and connects.
func (d *kernelDemo) build(program string) (err error) {
	p, err := configs.Parse("kernel.yaml", kernelPolicy)
	if err != nil {
		return err
	}
	if d.lab, err = lab.New("client", "router", "server"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			d.lab.Close()
		}
	}()
	end := func(host, device string, addrs ...string) lab.End {
		return lab.End{Host: host, Device: device, Addrs: addrs}
	}
	if err := errors.Join(
		d.lab.Join(end("client", "eth0", "10.1.0.2/24", "fd01::2/64"), end("router", "lan0", "10.1.0.1/24", "fd01::1/64")),
		d.lab.Join(end("server", "eth0", "10.2.0.2/24", "fd02::2/64"), end("router", "wan0", "10.2.0.1/24", "fd02::1/64")),
		d.lab.Route("client", "10.1.0.1", "fd01::1"),
		d.lab.Route("server", "10.2.0.1", "fd02::1"),
		d.start(program),
	); err != nil {
		return err
	}
	i := p.Interfaces[0]
	d.directions = []*direction{
		{name: "upload", link: i.Egress, about: "From the client to the server: what leaves the router through wan0."},
		{name: "download", link: i.Ingress, about: "From the server to the client: what arrives at wan0, and is shaped on a device of shaperd's."},
	}
	for n, dir := range d.directions {
		dir.promised = promises(dir.link, func(string) bool { return true })
		for i := range dir.link.Classes {
			f, err := newFlows(d.lab, &dir.link.Classes[i], n == 1)
			if err != nil {
				return err
			}
			dir.flows = append(dir.flows, f)
		}
	}
	return nil
}

// start runs the daemon on the router until it says that it is ready.
func (d *kernelDemo) start(program string) error {
	dir, err := os.MkdirTemp("", "shaperd-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "kernel.yaml")
	if err := os.WriteFile(file, kernelPolicy, 0o600); err != nil {
		return err
	}
	cmd := exec.Command(program, "run", "--config", file)
	log, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if _, err := d.lab.Start("router", cmd); err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	go func() {
		for lines := bufio.NewScanner(log); lines.Scan(); {
			d.log <- lines.Text()
		}
		close(d.log)
	}()
	var said []string
	for line := range d.log {
		if said = append(said, line); strings.Contains(line, "msg=ready") {
			return nil
		}
	}
	return fmt.Errorf("the daemon on the router ended:\n%s", strings.Join(said, "\n"))
}

func (d *kernelDemo) run(ctx context.Context) error {
	for i, dir := range d.directions {
		d.step = i
		for _, f := range dir.flows {
			f.last = f.Got.Now()
			f.Send()
		}
		err := d.show(ctx, dir, d.settle)
		from := make([]time.Duration, len(dir.flows))
		for n, f := range dir.flows {
			from[n] = f.Got.Now()
		}
		if err == nil {
			err = d.show(ctx, dir, d.measure)
		}
		for n, f := range dir.flows {
			rate, each := f.Rate(from[n], d.measure)
			dir.results = append(dir.results, newClassResult(&dir.promised[n], len(each), rate, measure.Jain(each)))
		}
		for _, f := range dir.flows {
			f.Close()
		}
		if err != nil {
			return err
		}
	}
	d.step = len(d.directions)
	return d.breakAndRepair(ctx)
}

// show draws a direction for a time.
func (d *kernelDemo) show(ctx context.Context, dir *direction, length time.Duration) error {
	tick := time.NewTicker(sampleTime)
	defer tick.Stop()
	for end := time.Now().Add(length); time.Now().Before(end); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for _, f := range dir.flows {
			f.sample()
		}
		d.draw(d.frame(dir))
	}
	return nil
}

// breakAndRepair deletes the router's root qdisc, as another program would, and
// waits until the daemon has put it back.
func (d *kernelDemo) breakAndRepair(ctx context.Context) error {
	d.draw(d.frame(d.directions[len(d.directions)-1]))
	if _, err := d.lab.Output("router", "tc", "qdisc", "del", "dev", "wan0", "root"); err != nil {
		return err
	}
	deleted := time.Now()
	timeout := time.After(repairTime)
	for {
		select {
		case line := <-d.log:
			if !strings.Contains(line, "msg=repaired") {
				continue
			}
			took := time.Since(deleted)
			shown, err := d.lab.Output("router", "tc", "qdisc", "show", "dev", "wan0")
			if err != nil {
				return err
			}
			if !strings.Contains(shown, "qdisc htb") {
				return fmt.Errorf("the daemon says that it has repaired wan0, which has:\n%s", shown)
			}
			d.repair = fmt.Sprintf("\"tc qdisc del dev wan0 root\" behind the daemon's back: repaired after %d ms", took.Milliseconds())
			return nil
		case <-timeout:
			return fmt.Errorf("the root qdisc of wan0 was deleted, and is not back after %s", repairTime)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// print writes the results as tables, with the pictures, and returns what was off.
func (d *kernelDemo) print(out io.Writer) error {
	s, width := styleOf(os.Getenv), maxWidth
	if f, ok := terminal(out); ok {
		width, _ = size(f)
	} else {
		s.color = false
	}
	t := table{style: s, width: width}
	r := report{}
	for _, dir := range d.directions {
		t.head(dir.name, "configured", "measured", "off", "fairness", "mbit, and why")
		for i, c := range dir.results {
			t.row(i, c.Class, c.Promised/1e6, c.Measured/1e6, fmt.Sprintf("%+.2f %%", c.Off), c.Off > Tolerance || c.Off < -Tolerance, fmt.Sprintf("%.3f", c.Fairness), c.Reason)
		}
		for i, f := range dir.flows {
			t.lines = append(t.lines, "  "+s.sgr(classColor(i), pad(f.class.Name, -11))+s.sgr(classColor(i), s.sparkline(f.samples, dir.promised[i].total(), width-15)))
		}
		t.lines = append(t.lines, "")
		r.Phases = append(r.Phases, phaseResult{Phase: dir.name, Seconds: d.measure.Seconds(), Classes: dir.results})
	}
	verdict := s.sgr(green, fmt.Sprintf("%s every class has what the policy promises both ways, within %d %%", s.done, Tolerance))
	err := r.err()
	if err != nil {
		verdict = "A busy machine makes rates fall short: try again when it is idle."
	}
	t.lines = append(t.lines, verdict, s.sgr(green, s.done+" ")+d.repair)
	for _, line := range wrap("Measured by the receivers, with the headers of Ethernet, IP and TCP, as the kernel counts. Half of the connections by IPv6.", width) {
		t.lines = append(t.lines, s.sgr(faint, line))
	}
	_, werr := io.WriteString(out, strings.Join(slices.Compact(t.lines), "\n")+"\n")
	return errors.Join(werr, err)
}
