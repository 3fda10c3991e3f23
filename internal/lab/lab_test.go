package lab

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const childEnv = "LAB_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "waits":
		child()
	case "unprivileged":
		_, err := New("host")
		os.Stdout.WriteString(err.Error())
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// office has a client, a router and a server behind it.
func office(t *testing.T) *Lab {
	t.Helper()
	l, err := newOffice()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func newOffice() (*Lab, error) {
	l, err := New("client", "router", "server")
	if err != nil {
		return nil, err
	}
	return l, errors.Join(
		l.Join(End{"client", "eth0", []string{"10.1.0.2/24", "fd01::2/64"}}, End{"router", "lan0", []string{"10.1.0.1/24", "fd01::1/64"}}),
		l.Join(End{"server", "eth0", []string{"10.2.0.2/24", "fd02::2/64"}}, End{"router", "wan0", []string{"10.2.0.1/24", "fd02::1/64"}}),
		l.Route("client", "10.1.0.1", "fd01::1"),
		l.Route("server", "10.2.0.1", "fd02::1"),
	)
}

func TestProcessesRunOnTheirHostAndEndWithTheLab(t *testing.T) {
	l := office(t)
	out, err := l.Output("router", "ip", "-br", "link")
	if err != nil || !strings.Contains(out, "lan0") || !strings.Contains(out, "wan0") {
		t.Errorf("%s, %v", out, err)
	}
	cmd := exec.Command("sleep", "600")
	wait, err := l.Start("router", cmd)
	if err != nil {
		t.Fatal(err)
	}
	if its := namespace(t, cmd.Process.Pid); its == namespace(t, os.Getpid()) {
		t.Errorf("the process is in the namespace %s, which is that of the test", its)
	}
	l.Close()
	var exit *exec.ExitError
	if err := wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the process ended with %v", err)
	}
}

func namespace(t *testing.T, pid int) string {
	t.Helper()
	ns, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

func TestCloseGivesEverythingBack(t *testing.T) {
	before := descriptors(t)
	l := office(t)
	if _, err := l.Start("client", exec.Command("sleep", "600")); err != nil {
		t.Fatal(err)
	}
	if during := descriptors(t); during <= before {
		t.Errorf("%d descriptors with a lab, %d without", during, before)
	}
	l.Close()
	l.Close()
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors after Close, %d before", after, before)
	}
	if err := l.Do("client", func() error { return nil }); err == nil || !strings.Contains(err.Error(), "is closed") {
		t.Errorf("Do after Close: %v", err)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// child builds a lab, says which processes and namespaces it has, and waits to be killed.
func child() {
	l, err := newOffice()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command("sleep", "600")
	if _, err := l.Start("router", cmd); err != nil {
		panic(err)
	}
	line := strconv.Itoa(cmd.Process.Pid)
	for name := range l.hosts {
		_ = l.Do(name, func() error {
			ns, err := os.Readlink("/proc/thread-self/ns/net")
			line += " " + ns
			return err
		})
	}
	os.Stdout.WriteString(line + "\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestNothingIsLeftOfALabThatWasKilled(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"=waits")
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(line)
	pid, err := strconv.Atoi(words[0])
	if err != nil {
		t.Fatal(err)
	}
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(process)
	spaces := words[1:]
	if used := holders(t, spaces); len(spaces) != 3 || len(used) != 3 {
		t.Fatalf("of the namespaces %v in use: %v", spaces, used)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}, -1) // until it ends
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
	if used := holders(t, spaces); len(used) > 0 {
		t.Errorf("still in use: %v", used)
	}
	named, _ := os.ReadDir("/run/netns")
	for _, n := range named {
		var st unix.Stat_t
		if unix.Stat(filepath.Join("/run/netns", n.Name()), &st) == nil && strings.Contains(line, strconv.FormatUint(st.Ino, 10)) {
			t.Errorf("it has left the name %s", n.Name())
		}
	}
}

// holders returns those of the namespaces that a thread of any process is in, or has open.
func holders(t *testing.T, spaces []string) map[string]string {
	t.Helper()
	used := map[string]string{}
	for _, pattern := range []string{"/proc/[0-9]*/task/*/ns/net", "/proc/[0-9]*/fd/*"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			ns, _ := os.Readlink(path) // it may have ended
			for _, s := range spaces {
				if s == ns {
					used[s] = path
				}
			}
		}
	}
	return used
}

func TestWithoutRootItSaysWhatIsMissing(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"=unprivileged")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if want := "make host host: operation not permitted: run it as root"; err != nil || string(out) != want {
		t.Errorf("%q, %v; want %q", out, err, want)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	l := office(t)
	for want, err := range map[string]error{
		`there is no host "printer"`:                          l.Do("printer", func() error { return nil }),
		`join client to printer: there is no host "printer"`:  l.Join(End{"client", "eth1", nil}, End{"printer", "eth0", nil}),
		`join client to router: file exists`:                  l.Join(End{"client", "eth0", nil}, End{"router", "lan1", nil}),
		`host "client": what ran on it ended its thread`:      l.Do("client", func() error { runtime.Goexit(); return nil }),
		`host "client" is closed`:                             l.Do("client", func() error { return nil }),
		`start /nowhere on router: fork/exec /nowhere: no su`: second(l.Start("router", exec.Command("/nowhere"))),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func second(_ func() error, err error) error { return err }
