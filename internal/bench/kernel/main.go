package main

import (
	"context"
	"flag"
	"fmt"
	"os"
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

// A bench is one run: a host that sends, shaped on its eth0, and one that receives.
type bench struct {
	ctx  context.Context
	lab  *lab.Lab
	path *netlink.Datapath // of the sending host
	rows []row
}

func main() {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	only := flag.String("only", strings.Join(names, ","), "`parts` to measure")
	markdown := flag.String("markdown", "", "write the tables to this `file`, too")
	flag.Parse()
	if err := run(strings.Split(*only, ","), *markdown); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(only []string, markdown string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 12*time.Minute)
	defer cancel()
	l, err := lab.New("sender", "receiver")
	if err != nil {
		return err
	}
	defer l.Close()
	if err := l.Join(lab.End{Host: "sender", Device: "eth0", Addrs: []string{"10.1.0.1/24"}}, lab.End{Host: "receiver", Device: "eth0", Addrs: []string{"10.1.0.2/24"}}); err != nil {
		return err
	}
	b := &bench{ctx: ctx, lab: l}
	if err := l.Do("sender", func() (err error) {
		b.path, err = netlink.Open(nil)
		return err
	}); err != nil {
		return err
	}
	defer b.path.Close()
	for _, p := range parts {
		if !slices.Contains(only, p.name) {
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
	if markdown != "" {
		return os.WriteFile(markdown, []byte(b.markdown()), 0o644)
	}
	return nil
}

// shape puts a link into force on the sender.
func (b *bench) shape(l shaper.Link) error {
	_, err := b.path.Apply(config(l))
	return err
}

func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
