package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"shaperd/internal/lab"
	"shaperd/netlink"
	"shaperd/shaper"
)

// parts are what can be measured by itself.
var parts = []struct {
	name string
	run  func(*bench) error
}{
	{"rates", (*bench).rates},
	{"leaky", (*bench).leaky},
	{"classify", (*bench).classify},
	{"apply", (*bench).apply},
	{"loss", (*bench).loss},
}

// Where it happens: the sender's device is shaped, and the receiver is at its other end.
const (
	sender, receiver = "sender", "receiver"
	device           = "eth0"
	senderAddr       = "10.1.0.1"
	receiverAddr     = "10.1.0.2"
)

type options struct {
	only     []string
	rounds   int
	quick    bool
	markdown string
	check    bool
}

func parse(args []string) (o options, err error) {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	f := flag.NewFlagSet("bench-kernel", flag.ContinueOnError)
	only := f.String("only", strings.Join(names, ","), "`parts` to measure")
	f.IntVar(&o.rounds, "rounds", 5, "rounds of each comparison of times")
	f.BoolVar(&o.quick, "quick", false, "less of everything, to see that it works")
	f.StringVar(&o.markdown, "markdown", "", "write the tables to this `file`, too")
	f.BoolVar(&o.check, "check", false, "exit with 1 when a target is missed")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.only = strings.Split(*only, ",")
	for _, name := range o.only {
		if !slices.Contains(names, name) {
			return o, fmt.Errorf("-only %s: there is no such part; there are %s", name, strings.Join(names, ", "))
		}
	}
	if o.rounds < 1 {
		return o, fmt.Errorf("-rounds %d: at least 1", o.rounds)
	}
	if o.quick {
		o.rounds = min(o.rounds, 2)
	}
	return o, nil
}

// A bench is one run.
type bench struct {
	options
	ctx     context.Context
	dir     string // for files
	program string // a shaperd, built from this tree
	lab     *lab.Lab
	path    *netlink.Datapath // of the sending host
	before  usage             // of the processors
	rows    []row
}

func main() {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "bench-kernel")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{options: o, ctx: ctx, dir: dir, program: dir + "/shaperd"}
	if err := b.build(); err != nil {
		return err
	}
	if b.lab, err = lab.New(sender, receiver); err != nil {
		return err
	}
	defer b.lab.Close()
	if err := b.lab.Join(lab.End{Host: sender, Device: device, Addrs: []string{senderAddr + "/24"}}, lab.End{Host: receiver, Device: device, Addrs: []string{receiverAddr + "/24"}}); err != nil {
		return err
	}
	if err := b.lab.Do(sender, func() (err error) {
		b.path, err = netlink.Open(nil)
		return err
	}); err != nil {
		return err
	}
	defer b.path.Close()
	b.before = usageNow()
	for _, p := range parts {
		if !slices.Contains(o.only, p.name) {
			continue
		}
		if err := p.run(b); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if _, err := b.path.Clear(); err != nil {
			return err
		}
	}
	b.print(os.Stdout)
	if o.markdown != "" {
		if err := os.WriteFile(o.markdown, []byte(b.markdownText()), 0o644); err != nil {
			return err
		}
	}
	if missed := b.missed(); o.check && missed > 0 {
		return fmt.Errorf("%d targets missed", missed)
	}
	return nil
}

func (b *bench) build() error {
	cmd := exec.CommandContext(b.ctx, "go", "build", "-trimpath", "-o", b.program, "shaperd/cmd/shaperd")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build shaperd: %w\n%s", err, out)
	}
	return nil
}

// config has the sender's device shaped as a link says.
func config(l shaper.Link) netlink.Config {
	c := netlink.Config{Interfaces: []netlink.Interface{{Name: device, Egress: l}}}
	for i := range l.Classes {
		if l.Classes[i].Default {
			c.Rules.Default = l.Classes[i].Name
		}
	}
	return c
}

// shape puts a link into force on the sender.
func (b *bench) shape(l shaper.Link) error {
	_, err := b.path.Apply(config(l))
	return err
}

// tc runs a command of tc on the sender.
func (b *bench) tc(args ...string) error {
	_, err := b.lab.Output(sender, append([]string{"tc"}, args...)...)
	return err
}

// batch has tc read commands.
func (b *bench) batch(commands string) error {
	file := b.dir + "/batch"
	if err := os.WriteFile(file, []byte(commands), 0o600); err != nil {
		return err
	}
	return b.tc("-batch", file)
}

// wait returns after a time, or with an error when the bench is to end.
func (b *bench) wait(t time.Duration) error {
	select {
	case <-time.After(t):
		return nil
	case <-b.ctx.Done():
		return context.Cause(b.ctx)
	}
}

// timed returns how long something takes.
func timed(do func() error) (time.Duration, error) {
	begin := time.Now()
	err := do()
	return time.Since(begin), err
}
