package netlink

import (
	"log/slog"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A world is a network namespace of its own, for one test. The test's thread
// stays in it and ends with the test.
type world struct {
	*testing.T
	*Datapath
}

func newWorld(t *testing.T, devices ...string) *world {
	t.Helper()
	runtime.LockOSThread() // never unlocked: the thread ends with the test's goroutine
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatalf("new network namespace: %v (kernel tests run as root)", err)
	}
	w := &world{T: t}
	// Packets are the test's alone: without IPv6 no device asks for its neighbours.
	w.run("ip link set lo up; echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6")
	for _, name := range devices {
		w.run("ip link add " + name + " mtu 1500 type veth peer name p-" + name)
		w.run("ip link set " + name + " up")
		w.run("ip link set p-" + name + " up")
	}
	d, err := Open(slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	w.Datapath = d
	return w
}

// run runs a command of tc or ip and returns what it prints.
func (w *world) run(command string) string {
	w.Helper()
	out, err := exec.Command("/bin/sh", "-c", command).CombinedOutput()
	if err != nil {
		w.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// apply applies c, and sees to it that a second time changes nothing.
func (w *world) apply(c Config) *Plan {
	w.Helper()
	p, err := w.Apply(c)
	if err != nil {
		w.Fatal(err)
	}
	again, err := w.Plan(c)
	if err != nil {
		w.Fatal(err)
	}
	if len(again.Changes) > 0 {
		w.Fatalf("after an apply there is still to do: %s", again.Changes[0].String())
	}
	return p
}

func (w *world) mustContain(text string, parts ...string) {
	w.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			w.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}
