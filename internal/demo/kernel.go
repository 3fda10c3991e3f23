package demo

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"time"

	"shaperd/internal/lab"
)

// A kernelPhase is a step of the kernel's demo in which the same classes send.
type kernelPhase struct {
	name, label    string // the label is for where there is little room
	text           string
	quiet          string        // the class that sends nothing
	settle, length time.Duration // until rates are measured, and how long they are
}

var kernelPhases = []kernelPhase{
	{
		"all send", "all send",
		"Each class wants more than there is, both ways. Guarantees come first; the spare is borrowed by priority, then in proportion to guarantees.",
		"", 2500 * time.Millisecond, 5 * time.Second,
	},
	{
		"web is quiet", "no web",
		"The web's connections have nothing to send. The others borrow what it leaves, up to their ceils.",
		"web", 1500 * time.Millisecond, 4500 * time.Millisecond,
	},
}

const (
	repairText = "Another program deletes the router's root qdisc: nothing is shaped, until the daemon has put it back."
	repairName = "repair"

	repairLead = 500 * time.Millisecond
	repairTail = 2 * time.Second  // after which rates are as they were, in the picture
	repairTime = 10 * time.Second // after which the demo no longer waits for the repair

	kernelSample = 100 * time.Millisecond // of the picture
)

// KernelOptions say how the kernel's demo is run.
type KernelOptions struct {
	Program string // a shaperd, to be run on the router
	JSON    bool   // print the report only, for programs
}

// A kernelDemo is one run. All of it but what packets arrive belongs to the goroutine in RunKernel.
type kernelDemo struct {
	lab        *lab.Lab
	daemon     *routerDaemon
	directions []*direction
	base       time.Time
	total      time.Duration
	begins     []time.Duration // of the phases and of the repair, since base
	step       int             // in kernelPhases, or after them: the repair
	view       view
	report     kernelReport
}

// RunKernel shows the kernel's datapath on out: two hosts with a router between
// them, made of network namespaces, where a shaperd shapes traffic of four
// classes both ways at once. Then one class falls silent, and at last the
// router's root qdisc is deleted behind the daemon's back. It needs root, and
// returns an *OffError if a class was off its promise.
func RunKernel(ctx context.Context, out io.Writer, o KernelOptions) error {
	return runKernel(ctx, out, o, kernelPhases, promises)
}

func runKernel(ctx context.Context, out io.Writer, o KernelOptions, phases []kernelPhase, promised promiser) error {
	d := &kernelDemo{view: newView(out, o.JSON)}
	for _, p := range phases {
		d.begins = append(d.begins, d.total)
		d.total += p.settle + p.length
	}
	d.begins = append(d.begins, d.total)
	d.total += repairLead + repairTail
	if err := d.build(o.Program); err != nil {
		return err
	}
	defer d.close()
	d.view.open()
	err := d.run(ctx, phases, promised)
	d.view.close()
	if err != nil {
		return err
	}
	return conclude(out, o.JSON, &d.report, d.print)
}

func (d *kernelDemo) run(ctx context.Context, phases []kernelPhase, promised promiser) error {
	d.base = time.Now()
	for i, p := range phases {
		d.step = i
		sends := func(class string) bool { return class != p.quiet }
		for _, dir := range d.directions {
			dir.expect(promised(dir.link, sends))
			for _, f := range dir.flows {
				f.keepSending(sends(f.class.Name))
			}
		}
		if err := d.show(ctx, p.settle); err != nil {
			return err
		}
		from := time.Now()
		if err := d.show(ctx, p.length); err != nil {
			return err
		}
		result := kernelPhaseResult{Phase: p.name, Seconds: p.length.Seconds()}
		for _, dir := range d.directions {
			result.Directions = append(result.Directions, dir.measure(from, p.length))
		}
		d.report.Phases = append(d.report.Phases, result)
	}
	d.step = len(phases)
	return d.breakAndRepair(ctx)
}

// breakAndRepair deletes the router's root qdisc under load, as another program
// might, and waits until all of it is back as it was.
func (d *kernelDemo) breakAndRepair(ctx context.Context) error {
	if err := d.show(ctx, repairLead); err != nil {
		return err
	}
	before, err := d.qdiscs()
	if err != nil {
		return err
	}
	deleted := time.Now()
	if _, err := d.lab.Output("router", "tc", "qdisc", "del", "dev", routerDevice, "root"); err != nil {
		return err
	}
	d.report.Repair.Command = "tc qdisc del dev " + routerDevice + " root"
	repaired := false
	if err := until(ctx, func() bool {
		repaired = repaired || d.daemon.said("msg=repaired")
		return repaired || time.Since(deleted) > repairTime
	}, d.look); err != nil {
		return err
	}
	if !repaired {
		return fmt.Errorf("the root qdisc of %s was deleted, and is not back after %s", routerDevice, repairTime)
	}
	d.report.Repair.Seconds = d.daemon.at.Sub(deleted).Seconds()
	after, err := d.qdiscs()
	if err != nil {
		return err
	}
	if after != before {
		return fmt.Errorf("the daemon says that it has repaired %s, which had\n%s\nand has\n%s", routerDevice, before, after)
	}
	return d.show(ctx, repairTail)
}

// qdiscs is what the router's device has, as tc shows it, without what it has counted.
func (d *kernelDemo) qdiscs() (shown string, err error) {
	for _, kind := range []string{"qdisc", "class"} {
		text, err := d.lab.Output("router", "tc", kind, "show", "dev", routerDevice)
		if err != nil {
			return "", err
		}
		shown += counted.ReplaceAllString(text, "")
	}
	return shown, nil
}

var counted = regexp.MustCompile(` direct_packets_stat \d+`)

// show draws what happens for a time.
func (d *kernelDemo) show(ctx context.Context, length time.Duration) error {
	end := time.Now().Add(length)
	return until(ctx, func() bool { return !time.Now().Before(end) }, d.look)
}

// look draws what happens, if it is time.
func (d *kernelDemo) look() {
	now := time.Since(d.base)
	for _, dir := range d.directions {
		dir.sample(now)
	}
	if d.view.due(now) {
		d.view.draw(d.frame(now))
	}
}
