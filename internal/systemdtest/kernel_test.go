//go:build systemd

package systemdtest

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// withInterface makes wan0, which the service shapes, and a neighbour on it.
func (m *machine) withInterface(onExit string) {
	m.t.Helper()
	m.run("ip", "link", "add", "wan0", "type", "veth", "peer", "name", "lan0")
	m.run("ip", "addr", "add", "192.0.2.1/24", "dev", "wan0")
	m.run("ip", "link", "set", "wan0", "up")
	m.run("ip", "link", "set", "lan0", "up")
	m.run("ip", "neigh", "add", "192.0.2.2", "lladdr", "02:00:00:00:00:02", "dev", "wan0")
	m.write(policyFile, policy("100mbit", "interfaces: [{name: wan0, egress: 50mbit}]", onExit))
	m.run("systemctl", "start", "shaperd")
	m.await("wan0 shaped", m.shaped)
}

func (m *machine) shaped() bool {
	m.t.Helper()
	return strings.Contains(m.run("tc", "qdisc", "show", "dev", "wan0"), "qdisc htb")
}

// sent sends packets out of wan0 and returns how many its shaper has counted
// since it was made.
func (m *machine) sent(packets int) int {
	m.t.Helper()
	c, err := m.dial("udp", "192.0.2.2:9")
	if err != nil {
		m.t.Fatal(err)
	}
	defer c.Close()
	for range packets {
		if _, err := c.Write([]byte("packet")); err != nil {
			m.t.Fatal(err)
		}
	}
	out := m.run("tc", "-s", "qdisc", "show", "dev", "wan0", "root")
	found := regexp.MustCompile(`qdisc htb[^\n]*\n *Sent \d+ bytes (\d+) pkt`).FindStringSubmatch(out)
	if found == nil {
		m.t.Fatalf("no counter of an htb in:\n%s", out)
	}
	n, _ := strconv.Atoi(found[1])
	return n
}

func TestKernelShapesWhileTheServiceIsAway(t *testing.T) {
	suites(t, func(t *testing.T, m *machine) {
		m.install(built(t))
		m.withInterface("")
		before, pid := m.sent(100), m.mainPID()
		if before < 100 {
			t.Fatalf("%d packets counted of 100", before)
		}
		m.kill("KILL", pid)
		if !m.shaped() {
			t.Error("the kernel shapes no more right after the kill")
		}
		m.awaitRestart(pid)
		if after := m.sent(1); after <= before {
			t.Errorf("%d packets counted after the restart, before %d: the shaper was made anew", after, before)
		}
	})
}

func TestEndOfTheServiceKeepsOrClearsTheKernel(t *testing.T) {
	suites(t, func(t *testing.T, m *machine) {
		m.install(built(t))
		m.withInterface("on_exit: keep")
		before := m.sent(100)
		m.run("systemctl", "stop", "shaperd")
		if !m.shaped() {
			t.Error("on_exit: keep, and the kernel shapes no more")
		}
		m.run("systemctl", "start", "shaperd")
		if after := m.sent(1); after <= before {
			t.Errorf("%d packets counted after a restart, before %d: the shaper was made anew", after, before)
		}
		m.write(policyFile, policy("100mbit", "interfaces: [{name: wan0, egress: 50mbit}]", "on_exit: clear"))
		m.run("systemctl", "restart", "shaperd")
		m.await("wan0 shaped", m.shaped)
		m.run("systemctl", "stop", "shaperd")
		if m.shaped() {
			t.Error("on_exit: clear, and the kernel still shapes")
		}
	})
}
