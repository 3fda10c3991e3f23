//go:build systemd

package systemdtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen. It is long, since
// machines boot while others do.
const patience = 60 * time.Second

// A machine runs a systemd of its own until the test ends.
type machine struct {
	t       *testing.T
	nspawn  *exec.Cmd
	ended   chan struct{}
	console bytes.Buffer // once ended
	leader  int          // its first process, as the host counts
	cgroup  string
}

var machines atomic.Int32

// suites runs test for each of SYSTEMD_SUITES, in a machine that has booted.
func suites(t *testing.T, test func(t *testing.T, m *machine)) {
	t.Parallel()
	list := strings.Fields(os.Getenv("SYSTEMD_SUITES"))
	if len(list) == 0 {
		t.Fatal("SYSTEMD_SUITES names none: run this by make test-systemd")
	}
	for _, suite := range list {
		t.Run(suite, func(t *testing.T) {
			t.Parallel()
			test(t, boot(t, suite))
		})
	}
}

func tree(suite string) string { return filepath.Join("../../bin/systemd", suite) }

// nspawn is the command for a container on a suite's folder, whose changes are
// kept in memory. It needs no service manager on the host.
func nspawn(t *testing.T, suite string, args ...string) *exec.Cmd {
	name := fmt.Sprintf("shaperd-%s-%d-%d", suite, os.Getpid(), machines.Add(1))
	t.Cleanup(func() { _ = os.Remove("/run/systemd/nspawn/propagate/" + name) }) // systemd-nspawn leaves it
	cmd := exec.Command("systemd-nspawn", append([]string{
		"--quiet", "--directory=" + tree(suite), "--volatile=overlay", "--register=no", "--keep-unit", "--private-network",
		"--capability=CAP_BPF,CAP_PERFMON", "--system-call-filter=bpf", "--console=pipe",
		"--timezone=off", "--resolv-conf=off", "--link-journal=no",
		"--machine=" + name,
	}, args...)...)
	cmd.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1")
	return cmd
}

func boot(t *testing.T, suite string) *machine {
	t.Helper()
	m := &machine{t: t, nspawn: nspawn(t, suite, "--boot", "systemd.mask=systemd-modules-load.service", "systemd.mask=systemd-logind.service"), ended: make(chan struct{})}
	m.cgroup = filepath.Join(cgroups(t), fmt.Sprintf("shaperd-test-%d-%d", os.Getpid(), machines.Add(1)))
	if err := os.Mkdir(m.cgroup, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.end)
	dir, err := os.Open(m.cgroup)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	m.nspawn.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd()), Pdeathsig: syscall.SIGTERM}
	m.nspawn.Stdout, m.nspawn.Stderr = &m.console, &m.console
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // by which the kernel means the parent whose death is told
		defer runtime.UnlockOSThread()
		err := m.nspawn.Start()
		started <- err
		if err == nil {
			_ = m.nspawn.Wait() // it is killed at the end
			close(m.ended)
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	m.await("first process", func() bool {
		m.leader = m.firstProcess()
		return m.leader != 0
	})
	m.await("running", func() bool {
		out, _ := m.try("systemctl", "is-system-running")
		return out == "running" || out == "degraded" // a unit of Debian's may dislike containers
	})
	return m
}

// cgroups returns where the host has cgroup2.
func cgroups(t *testing.T) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); f[2] == "cgroup2" {
			return f[1]
		}
	}
	t.Fatal("no cgroup2 is mounted")
	return ""
}

// firstProcess returns nspawn's child that is process 1 of a namespace, 0 for none yet.
func (m *machine) firstProcess() int {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", m.nspawn.Process.Pid))
	for _, file := range tasks {
		children, _ := os.ReadFile(file)
		for child := range strings.FieldsSeq(string(children)) {
			status, _ := os.ReadFile("/proc/" + child + "/status")
			for line := range strings.Lines(string(status)) {
				if f := strings.Fields(line); f[0] == "NSpid:" && len(f) == 3 && f[2] == "1" {
					pid, _ := strconv.Atoi(child)
					return pid
				}
			}
		}
	}
	return 0
}

// end kills all that runs in the machine and removes its cgroups.
func (m *machine) end() {
	if m.t.Failed() && m.leader != 0 {
		out, _ := m.try("journalctl", "--no-pager", "--output=short-monotonic", "--lines=60")
		m.t.Logf("the end of the journal:\n%s", out)
	}
	if err := os.WriteFile(filepath.Join(m.cgroup, "cgroup.kill"), []byte("1"), 0); err != nil {
		m.t.Error(err)
	}
	if m.nspawn.Process != nil {
		select {
		case <-m.ended:
		case <-time.After(patience):
			m.t.Error("systemd-nspawn does not end")
		}
	}
	if m.t.Failed() && m.leader == 0 {
		m.t.Logf("console:\n%s", m.console.String())
	}
	var busy error
	deadline := time.Now().Add(patience)
	for ok := false; !ok && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		busy = removeCgroup(m.cgroup)
		ok = busy == nil
	}
	if busy != nil {
		m.t.Errorf("the machine's cgroup is left behind: %v", busy)
	}
}

// removeCgroup removes a cgroup with those below it, which must be empty.
func removeCgroup(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeCgroup(filepath.Join(path, e.Name())); err != nil {
				return err
			}
		}
	}
	return syscall.Rmdir(path)
}

// try runs a command in the machine and returns what it printed, without space
// at the ends.
func (m *machine) try(args ...string) (string, error) {
	cmd := exec.Command("nsenter", append([]string{"--target=" + strconv.Itoa(m.leader), "--all", "--"}, args...)...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "SYSTEMD_COLORS=0", "DEBIAN_FRONTEND=noninteractive"}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// run demands that a command succeeds.
func (m *machine) run(args ...string) string {
	m.t.Helper()
	out, err := m.try(args...)
	if err != nil {
		m.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// fail demands that a command does not succeed.
func (m *machine) fail(args ...string) string {
	m.t.Helper()
	out, err := m.try(args...)
	if err == nil {
		m.t.Fatalf("%s succeeds:\n%s", strings.Join(args, " "), out)
	}
	return out
}

// path is where the host sees a file of the machine.
func (m *machine) path(name string) string { return fmt.Sprintf("/proc/%d/root%s", m.leader, name) }

// exists reports whether the machine has a file.
func (m *machine) exists(name string) bool {
	_, err := os.Lstat(m.path(name))
	return err == nil
}

func (m *machine) read(name string) string {
	m.t.Helper()
	text, err := os.ReadFile(m.path(name))
	if err != nil {
		m.t.Fatal(err)
	}
	return string(text)
}

// write changes or makes a file, and its folder.
func (m *machine) write(name, text string) {
	m.t.Helper()
	if err := os.MkdirAll(m.path(filepath.Dir(name)), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(m.path(name), []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// await waits until what must happen has.
func (m *machine) await(what string, happened func() bool) {
	m.t.Helper()
	for deadline := time.Now().Add(patience); !happened(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			m.t.Fatalf("never came to: %s", what)
		}
	}
}
