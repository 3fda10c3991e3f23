//go:build systemd

package systemdtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const policyFile = "/etc/shaperd/shaperd.yaml"

// policy is a SOCKS5 proxy with the download rate, and whatever more.
func policy(download string, more ...string) string {
	return fmt.Sprintf(`classes:
  - {name: web, match: {dport: 80}, rate: 30%%, ceil: 100%%}
  - {name: all, default: true, rate: 50%%, ceil: 100%%}
relays:
  - {name: proxy, kind: socks5, listen: "127.0.0.1:1080", upload: 100mbit, download: %s}
metrics: {listen: "127.0.0.1:9477"}
%s
`, download, strings.Join(more, "\n"))
}

// dropIn changes the service's unit.
func (m *machine) dropIn(lines ...string) {
	m.t.Helper()
	m.write("/etc/systemd/system/shaperd.service.d/test.conf", "[Service]\n"+strings.Join(lines, "\n")+"\n")
	m.run("systemctl", "daemon-reload")
}

// property returns one of the service as systemd sees it.
func (m *machine) property(name string) string {
	m.t.Helper()
	return m.run("systemctl", "show", "--value", "--property="+name, "shaperd.service")
}

func (m *machine) mainPID() string { m.t.Helper(); return m.property("MainPID") }

// kill sends a signal to a process, by its number in the machine.
func (m *machine) kill(signal, pid string) {
	m.t.Helper()
	m.run("sh", "-c", "kill -"+signal+" "+pid)
}

// awaitRestart waits until another process than pid serves.
func (m *machine) awaitRestart(pid string) {
	m.t.Helper()
	m.await("another process that is ready", func() bool {
		return m.property("ActiveState") == "active" && m.mainPID() != pid
	})
}

// inside calls f on a thread in the machine's network. Sockets stay there.
func (m *machine) inside(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never back: the thread ends with the goroutine
		ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", m.leader))
		if err == nil {
			defer ns.Close()
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

func (m *machine) dial(network, addr string) (c net.Conn, err error) {
	err = m.inside(func() error {
		c, err = net.DialTimeout(network, addr, patience)
		return err
	})
	return c, err
}

// downloadRate returns the rate in force, in bit/s, by the metrics; 0 for none.
func (m *machine) downloadRate() float64 {
	c, err := m.dial("tcp", "127.0.0.1:9477")
	if err != nil {
		return 0
	}
	defer c.Close()
	client := http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return c, nil },
	}}
	resp, err := client.Get("http://127.0.0.1:9477/metrics")
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	found := regexp.MustCompile(`(?m)^shaperd_link_rate_bytes_per_second\{.*proxy download.*\} (.*)$`).FindSubmatch(text)
	if found == nil {
		return 0
	}
	rate, _ := strconv.ParseFloat(string(found[1]), 64)
	return rate * 8
}

// journal returns what the service has logged.
func (m *machine) journal() string {
	m.t.Helper()
	return m.run("journalctl", "--unit=shaperd.service", "--output=cat", "--no-pager")
}

// dialHere connects in the network of the calling thread.
func dialHere(addr string) (net.Conn, error) { return net.DialTimeout("tcp", addr, patience) }

// served has a client greet the proxy and waits for its answer.
func served(c net.Conn) error {
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := c.Write([]byte{5, 1, 0}); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 2))
	return err
}

func TestServiceRunsAsDeclared(t *testing.T) {
	suites(t, func(t *testing.T, m *machine) {
		m.install(built(t))
		if state := m.property("ActiveState"); state != "inactive" {
			t.Errorf("%s after the installation, want inactive until somebody starts it", state)
		}
		if out := m.run("systemd-analyze", "verify", "--man=no", "shaperd.service", "shaperd.socket"); out != "" {
			t.Errorf("systemd has to say of the units:\n%s", out)
		}
		m.run("systemd-analyze", "security", "--offline=true", "--threshold=20", "/usr/lib/systemd/system/shaperd.service") // 2.0 of 10
		m.run("systemctl", "start", "shaperd")
		if got := m.property("ActiveState") + " " + m.property("SubState"); got != "active running" {
			t.Errorf("after the start it is %s", got)
		}
		if got, want := m.property("StatusText"), "policy "+policyFile+"; relays: proxy (0 sessions)"; got != want {
			t.Errorf("status %q, want %q", got, want)
		}
		if m.run("stat", "-c", "%U:%a", "/run/shaperd") != "shaperd:755" {
			t.Errorf("/run/shaperd is %s", m.run("ls", "-ld", "/run/shaperd"))
		}
		m.confined(m.run("id", "-u", "shaperd"))
		c, err := m.dial("tcp", "127.0.0.1:1080")
		if err == nil {
			err = served(c)
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// confined demands that the daemon runs as the user, with what the unit grants.
func (m *machine) confined(uid string) {
	m.t.Helper()
	status := m.read("/proc/" + m.mainPID() + "/status")
	granted := uint64(1<<unix.CAP_NET_BIND_SERVICE | 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_BPF | 1<<unix.CAP_PERFMON)
	for key, want := range map[string]string{
		"Uid": uid, "CapEff": fmt.Sprintf("%016x", granted), "CapBnd": fmt.Sprintf("%016x", granted), "NoNewPrivs": "1", "Seccomp": "2",
	} {
		if !regexp.MustCompile(`(?m)^` + key + `:\s+` + want + `\b`).MatchString(status) {
			m.t.Errorf("%s is not %s in\n%s", key, want, status)
		}
	}
}

func TestReloadTakesAPolicyIntoForceOrRefusesIt(t *testing.T) {
	suites(t, func(t *testing.T, m *machine) {
		m.install(built(t))
		m.write(policyFile, policy("10mbit"))
		m.run("systemctl", "start", "shaperd")
		pid := m.mainPID()
		m.write(policyFile, policy("20mbit"))
		m.run("systemctl", "reload", "shaperd")
		if got := m.downloadRate(); got != 20e6 {
			t.Errorf("systemctl reload returned with %v bit/s in force, want 20e6", got)
		}

		m.write(policyFile, policy("20mbps"))
		if out := m.fail("systemctl", "reload", "shaperd"); !strings.Contains(out, "journalctl") {
			t.Errorf("systemctl reload says %q", out)
		}
		if got := m.downloadRate(); got != 20e6 || m.mainPID() != pid {
			t.Errorf("%v bit/s in force after a reload that failed, process %s; want 20e6, %s", got, m.mainPID(), pid)
		}
		m.run("systemctl", "stop", "shaperd")
		m.fail("systemctl", "start", "shaperd")
		if text := m.journal(); !strings.Contains(text, policyFile+`:5:`) || !strings.Contains(text, `"mbps" means bits to some tools`) {
			t.Errorf("the journal does not say what is wrong with the policy:\n%s", text)
		}
	})
}

// systemd 253 and newer wait for the daemon's own word, without a command.
func TestNotifiedReloadBlocksUntilItIsInForce(t *testing.T) {
	suites(t, func(t *testing.T, m *machine) {
		m.install(built(t))
		m.write(policyFile, policy("1mbit"))
		if m.version() < 253 {
			m.run("systemctl", "start", "shaperd") // where it is not known, the unit must not depend on it
			return
		}
		m.dropIn("Type=notify-reload", "ExecReload=")
		m.run("systemctl", "start", "shaperd")
		for _, mbit := range []int{2, 3, 4, 5} {
			m.write(policyFile, policy(strconv.Itoa(mbit)+"mbit"))
			m.run("systemctl", "reload", "shaperd")
			if got := m.downloadRate(); got != float64(mbit)*1e6 {
				t.Errorf("systemctl reload returned with %v bit/s in force, want %d mbit", got, mbit)
			}
		}
	})
}

func (m *machine) version() int {
	m.t.Helper()
	v, err := strconv.Atoi(strings.Fields(m.run("systemctl", "--version"))[1])
	if err != nil {
		m.t.Fatal(err)
	}
	return v
}

func TestHungServiceIsRestarted(t *testing.T) {
	suites(t, func(t *testing.T, m *machine) {
		m.install(built(t))
		m.dropIn("WatchdogSec=1")
		m.run("systemctl", "start", "shaperd")
		pid := m.mainPID()
		m.kill("STOP", pid)
		m.awaitRestart(pid)
		if text := m.run("journalctl", "--unit=shaperd.service", "--no-pager"); !strings.Contains(text, "atchdog timeout") {
			t.Errorf("the journal does not name the watchdog:\n%s", text)
		}
	})
}

func TestServiceNeedsNoUserOfItsOwn(t *testing.T) {
	suites(t, func(t *testing.T, m *machine) {
		m.makeInstall()
		m.run("systemctl", "daemon-reload")
		m.run("systemctl", "start", "shaperd")
		uid := m.run("stat", "-c", "%u", "/run/shaperd/")
		if n, err := strconv.Atoi(uid); err != nil || n < 61184 || n > 65519 {
			t.Errorf("user %s, want one that systemd made up", uid)
		}
		m.confined(uid)
		if mode := m.run("stat", "-c", "%F %a", "/run/shaperd"); mode != "directory 755" {
			t.Errorf("/run/shaperd is a %s", mode)
		}
	})
}
