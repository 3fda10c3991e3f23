package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The roles of this program when it runs itself.
const (
	roleEnv    = "BENCH_RELAY_ROLE"
	roleInside = "inside" // the benchmark, in its namespace
	roleSink   = "sink"
	roleEcho   = "echo"
	roleIOCopy = "iocopy"
)

// Where everything listens, in the namespace.
const (
	relayAddr    = "127.0.0.1:9400"
	upstreamAddr = "127.0.0.1:9401"
)

type options struct {
	only     string
	rounds   int
	quick    bool
	markdown string
	check    bool
}

func main() {
	var err error
	switch os.Getenv(roleEnv) {
	case roleSink:
		err = sink()
	case roleEcho:
		err = echo()
	case roleIOCopy:
		err = ioCopyRelay()
	case roleInside:
		err = inside()
	default:
		err = outside()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// outside builds shaperd and runs the benchmark in a network namespace of its own.
func outside() error {
	if _, err := parse(os.Args[1:]); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("it needs root, for a network namespace of its own")
	}
	dir, err := os.MkdirTemp("", "bench-relay")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-trimpath", "-o", dir+"/shaperd", "./cmd/shaperd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build shaperd: %w", err)
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), roleEnv+"="+roleInside, "BENCH_RELAY_DIR="+dir)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGTERM}
	signal.Ignore(os.Interrupt) // the terminal sends it to the child as well
	return cmd.Run()
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("bench-relay", flag.ContinueOnError)
	f.StringVar(&o.only, "only", "", "parts to run: cpu, shaped, memory, short (default all)")
	f.IntVar(&o.rounds, "rounds", 7, "rounds of each comparison")
	f.BoolVar(&o.quick, "quick", false, "less of everything, to see that it works")
	f.StringVar(&o.markdown, "markdown", "", "also write the tables to this file, in markdown")
	f.BoolVar(&o.check, "check", false, "exit with 1 when a target is missed")
	return o, f.Parse(args)
}

func inside() error {
	o, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	if err := exec.Command("ip", "link", "set", "lo", "up").Run(); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/tcp_congestion_control", []byte("reno"), 0); err != nil {
		return err
	}
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err == nil {
		lim.Cur = lim.Max
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &lim)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b := &bench{ctx: ctx, dir: os.Getenv("BENCH_RELAY_DIR"), options: o}
	if o.quick {
		b.rounds = 2
	}
	for _, part := range []struct {
		name string
		run  func() error
	}{{"cpu", b.cpu}, {"short", b.short}, {"memory", b.memory}, {"shaped", b.shaped}} {
		if o.only != "" && !slices.Contains(strings.Split(o.only, ","), part.name) {
			continue
		}
		if err := part.run(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	b.print(os.Stdout)
	if o.markdown != "" {
		if err := b.writeMarkdown(o.markdown); err != nil {
			return err
		}
	}
	if o.check && b.missed() > 0 {
		return fmt.Errorf("%d targets missed", b.missed())
	}
	return nil
}

// A bench runs the comparisons and gathers their rows.
type bench struct {
	options
	ctx  context.Context
	dir  string
	rows []row
}

func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "  "+format+"\n", args...)
}
