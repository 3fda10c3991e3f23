package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

type options struct {
	rounds  int
	seconds float64
}

func (o options) turn() time.Duration { return time.Duration(o.seconds * float64(time.Second)) }

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 9, "turns of each contender")
	flag.Float64Var(&o.seconds, "seconds", 1, "length of a turn")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "bench-admission")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := local(ctx, o, dir); err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	if err := shared(ctx, o, dir); err != nil {
		return fmt.Errorf("shared class: %w", err)
	}
	return nil
}

// start runs a program until stop is called; it is ready when the path is there.
func start(ctx context.Context, path string, name string, args ...string) (stop func(), err error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var failed error
	ended := make(chan struct{})
	go func() { failed = cmd.Wait(); close(ended) }()
	for {
		if _, err := os.Stat(path); err == nil {
			return func() { _ = cmd.Process.Signal(syscall.SIGTERM); <-ended }, nil
		}
		select {
		case <-ended:
			return nil, fmt.Errorf("%s: %w\n%s", filepath.Base(name), failed, said.String())
		case <-ctx.Done():
			<-ended
			return nil, context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func median(list []float64) float64 {
	list = slices.Clone(list)
	slices.Sort(list)
	return list[len(list)/2]
}

// spread is the least and the most.
func spread(list []float64) string {
	return fmt.Sprintf("%.2f to %.2f", slices.Min(list), slices.Max(list))
}
