// Vmtest runs the tests of Go packages, as root, on a kernel of its own in an
// emulated machine: what needs kernel modules that the machine at hand lacks.
// It prints what gotest prints, and like it fails when a test is skipped; also
// when the machine stops before all packages have run.
//
//	vmtest -run 'TestLeaf' ./netlink/...
//
// All packages run one after another in one boot, from an initramfs: nothing
// of the host is written to, and no right is needed. Tests are built with the
// tag vm and find SHAPERD_VM=1 in their environment. They have busybox and the
// programs in image.go; there is no Go compiler and no network but loopback.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"shaperd/tools/report"
)

// What the machine may take to boot, and for each package beside its tests. It
// needs a tenth of this.
const (
	bootTime    = time.Minute
	packageTime = 10 * time.Second
)

func main() {
	dir := flag.String("dir", "bin/vm", "folder with the kernel that kernel.sh fetched")
	pattern := flag.String("run", "", "run only tests that match this regular expression")
	timeout := flag.Duration("timeout", 5*time.Minute, "time that each package may take")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := run(ctx, *dir, *pattern, *timeout, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "vmtest:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// run reports whether every test of the packages passed.
func run(ctx context.Context, dir, pattern string, timeout time.Duration, patterns []string) (bool, error) {
	packages, root, err := list(patterns)
	if err != nil {
		return false, err
	}
	flags := []string{"-test.v=test2json", "-test.paniconexit0", "-test.timeout=" + timeout.String(), "-test.run=" + pattern}
	if err := build(filepath.Join(dir, "initramfs"), filepath.Join(dir, "kernel"), root, packages, flags); err != nil {
		return false, err
	}
	limit := bootTime + time.Duration(len(packages))*(packageTime+timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done after %v", limit))
	defer cancel()
	m, err := boot(ctx, dir)
	if err != nil {
		return false, err
	}
	defer m.stop()

	var release strings.Builder
	if _, err := m.results.next(&release); err != nil {
		return false, fmt.Errorf("the machine did not boot: %s%s", release.String(), m.lastWords())
	}
	fmt.Printf("Linux %s after %.1f s\n", strings.TrimSpace(release.String()), time.Since(m.started).Seconds())

	events, w := io.Pipe()
	go func() { w.CloseWithError(m.results.events(packages, w, m.lastWords)) }()
	return report.Print(events, os.Stdout)
}

// A machine is the emulated one.
type machine struct {
	results stream
	console string // file with what its kernel says
	started time.Time
	ctx     context.Context
	stop    func() // ends it if it runs, and waits
}

// boot starts the machine with the kernel and the initramfs in dir.
func boot(ctx context.Context, dir string) (*machine, error) {
	ctx, cancel := context.WithCancel(ctx)
	console := filepath.Join(dir, "console.log")
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64",
		"-M", "q35", "-cpu", "max", "-accel", "tcg,thread=multi", "-smp", "2", "-m", "1024",
		"-nodefaults", "-display", "none", "-no-reboot",
		"-serial", "file:"+console, "-serial", "stdio",
		"-kernel", filepath.Join(dir, "kernel/vmlinuz"), "-initrd", filepath.Join(dir, "initramfs"),
		"-append", "console=ttyS0 quiet oops=panic panic=-1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("%w (sh tools/deps.sh test-vm installs it)", err)
	}
	return &machine{
		results: stream{bufio.NewReader(out)},
		console: console,
		started: time.Now(),
		ctx:     ctx,
		stop:    func() { cancel(); _ = cmd.Wait() },
	}, nil
}

// lastWords says why the machine stopped, as far as one can tell.
func (m *machine) lastWords() string {
	const lines = 40
	cause := "it stopped by itself"
	if err := context.Cause(m.ctx); err != nil {
		cause = err.Error()
	}
	log, err := os.ReadFile(m.console)
	if err != nil {
		return fmt.Sprintf("the machine stopped: %s; %v", cause, err)
	}
	tail := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(log), "\r", "")), "\n")
	tail = tail[max(0, len(tail)-lines):]
	return fmt.Sprintf("the machine stopped: %s; the end of %s:\n%s", cause, m.console, strings.Join(tail, "\n"))
}
