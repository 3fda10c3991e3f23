package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shaperd/internal/store/storetest"
)

// newNetwork gives the test a network namespace of its own with an interface
// eth0: the thread that the test runs on stays in it, and ends with the test.
func newNetwork(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatalf("new network namespace: %v (kernel tests run as root)", err)
	}
	shell(t, "ip link set lo up; ip link add eth0 mtu 1500 type veth peer name p-eth0; ip link set eth0 up; ip link set p-eth0 up")
}

func shell(t *testing.T, command string) string {
	t.Helper()
	out, err := exec.Command("/bin/sh", "-c", command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// office has steady classes only, whose queues are the same on every kernel.
const office = `classes:
  - {name: voice, match: {dscp: ef}, rate: 2mbit, ceil: 10mbit, priority: 0, mode: leaky}
  - {name: backup, match: {port: 873}, rate: 5mbit, mode: leaky}
  - {name: bulk, default: true, rate: 10mbit, ceil: 100%, priority: 7, mode: leaky}
interfaces:
  - {name: eth0, egress: 100mbit}
`

func TestPlanApplyClear(t *testing.T) {
	newNetwork(t)
	policy := file(t, "shaperd.yaml", office)
	golden(t, "plan.txt", output(t, 2, "plan", policy))
	golden(t, "plan-tc.txt", output(t, 2, "plan", "--tc", policy))
	golden(t, "apply.txt", output(t, 0, "apply", policy))
	golden(t, "plan-nothing.txt", output(t, 0, "plan", policy))

	faster := file(t, "faster.yaml", strings.Replace(office, "rate: 2mbit", "rate: 3mbit", 1))
	golden(t, "plan-change.txt", output(t, 2, "plan", faster))
	var p struct {
		Changes []struct{ Device, Verb, Object, Command string }
	}
	if err := json.Unmarshal([]byte(output(t, 2, "plan", "--json", faster)), &p); err != nil {
		t.Fatal(err)
	}
	if len(p.Changes) != 1 || p.Changes[0].Verb != "change" || p.Changes[0].Object != "class voice" || p.Changes[0].Device != "eth0" {
		t.Errorf("plan --json: %+v, want one change of voice", p)
	}
	if err := json.Unmarshal([]byte(output(t, 0, "plan", "--json", policy)), &p); err != nil || p.Changes == nil {
		t.Errorf("plan --json without a change: %v %v, want an empty list", p.Changes, err)
	}

	if got := output(t, 1, "apply", "--confirm", "1ms", faster); !strings.Contains(got, "not confirmed: what was there before is back") {
		t.Errorf("apply --confirm without an answer: %s", got)
	}
	output(t, 0, "plan", policy) // is in force
	golden(t, "clear.txt", output(t, 0, "clear"))
	golden(t, "clear-nothing.txt", output(t, 0, "clear"))
}

// An interface that is not there is not in order, but awaited.
func TestPlanAwaitsInterfaces(t *testing.T) {
	newNetwork(t)
	both := office + "  - {name: eth7, egress: 20mbit}\n  - {name: ppp*, ingress: 20mbit}\n"
	for _, tt := range []struct {
		name, args, policy, want string
	}{
		{"one", "plan", strings.Replace(office, "eth0", "eth7", 1), "missing there is no interface eth7: it is shaped once it comes\nnothing to do now: eth7 is awaited\n"},
		{"a pattern", "plan --brief", strings.Replace(office, "eth0", "ppp*", 1), "missing there is no interface ppp*: it is shaped once it comes\nnothing to do now: ppp* is awaited\n"},
		{"one, as commands", "plan --tc", strings.Replace(office, "eth0", "eth7", 1), "# there is no interface eth7: it is shaped once it comes\n"},
		{"no interfaces", "plan", relay("web", "127.0.0.1:1", "1mbit"), "nothing to do: shaperd.yaml has no interfaces, and the kernel has nothing of shaperd's\n"},
		{"a pattern to apply", "apply", strings.Replace(office, "eth0", "ppp*", 1), "missing there is no interface ppp*: it is shaped once it comes\nnothing to do now: ppp* is awaited\n"},
	} {
		policy := file(t, "shaperd.yaml", tt.policy)
		if got := strings.ReplaceAll(output(t, 0, append(strings.Fields(tt.args), policy)...), policy, "shaperd.yaml"); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	policy := file(t, "shaperd.yaml", both)
	p := start(t, nil, "run", "--config", policy)
	p.await("msg=ready")
	if got := output(t, 0, "plan", policy); !strings.HasSuffix(got, "nothing to do now: eth7 and ppp* are awaited\n") {
		t.Errorf("the rest is in force: %s", got)
	}
}

func TestApplySaysWhatIsInTheWay(t *testing.T) {
	newNetwork(t)
	shell(t, "tc qdisc add dev eth0 root handle 1: htb")
	for _, tt := range []struct{ name, policy, want string }{
		{"another's qdisc", office, ":6: eth0 has the qdisc htb 1:, which is not shaperd's"},
		{"no such interface", strings.Replace(office, "eth0", "eth7", 1), ":6: there is no interface eth7"},
		{"no interfaces", relay("web", "127.0.0.1:1", "1mbit"), "no interfaces: nothing to apply"},
	} {
		// No subtest: that would be on another thread.
		if got := output(t, 1, "apply", file(t, "shaperd.yaml", tt.policy)); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %q", tt.name, got, tt.want)
		}
	}
}

// The daemon's interfaces: shaped while it runs, beside a relay, changed in place
// by a reload, repaired, given up at its end, and kept by a crash.
func TestRunShapesInterfaces(t *testing.T) {
	newNetwork(t)
	office := office + fmt.Sprintf("relays: [{name: web, listen: '127.0.0.1:0', upstream: %q, upload: 1gbit, download: 1gbit}]\n", echo(t))
	policy := file(t, "shaperd.yaml", office)
	p := start(t, nil, "run", "--config", policy)
	session := dial(t, p.listen("msg=\"relay listens\""))
	session.says("first")
	p.await(`msg=ready`)
	shaped := func(what string) {
		t.Helper()
		for deadline := time.Now().Add(patience); !strings.Contains(shell(t, "tc class show dev eth0"), what); {
			if time.Now().After(deadline) {
				t.Fatalf("no %q in:\n%s", what, shell(t, "tc class show dev eth0"))
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	shaped("prio 0 rate 2Mbit ceil 10Mbit")
	write(t, policy, strings.Replace(office, "rate: 2mbit", "rate: 3mbit", 1))
	p.signal(syscall.SIGHUP)
	p.await("msg=reloaded")
	shaped("prio 0 rate 3Mbit ceil 10Mbit")
	shell(t, "tc qdisc del dev eth0 root")
	p.await("msg=repaired")
	shaped("prio 0 rate 3Mbit ceil 10Mbit")
	write(t, policy, strings.Replace(office, "eth0, egress", "eth0, egrass", 1))
	p.signal(syscall.SIGHUP)
	p.await("reload refused")
	shaped("prio 0 rate 3Mbit ceil 10Mbit")
	session.says("second")
	p.signal(syscall.SIGKILL)
	<-p.ended
	shaped("prio 0 rate 3Mbit ceil 10Mbit")

	write(t, policy, office)
	p = start(t, nil, "run", "--config", policy)
	p.await(`msg=ready`)
	shaped("prio 0 rate 2Mbit ceil 10Mbit")
	p.signal(syscall.SIGTERM)
	if code, stderr := p.exit(); code != 0 {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if left := shell(t, "tc qdisc show dev eth0"); strings.Contains(left, "htb") {
		t.Errorf("after its end the daemon leaves:\n%s", left)
	}
}

// With on_exit: keep the kernel goes on shaping, and the next start writes nothing.
func TestOnExitKeep(t *testing.T) {
	newNetwork(t)
	policy := file(t, "shaperd.yaml", office+"on_exit: keep\n")
	for range 2 {
		p := start(t, nil, "run", "--config", policy)
		p.await("msg=ready")
		p.signal(syscall.SIGTERM)
		if code, stderr := p.exit(); code != 0 {
			t.Errorf("exit code %d, %s", code, stderr)
		}
		output(t, 0, "plan", policy)
	}
	p := start(t, nil, "run", "--config", policy)
	p.await("msg=ready")
	write(t, policy, relay("web", "127.0.0.1:1", "1mbit")) // without interfaces
	p.signal(syscall.SIGHUP)
	p.await("kernel datapath removed")
	if left := shell(t, "tc qdisc show dev eth0"); strings.Contains(left, "htb") {
		t.Errorf("a policy without interfaces leaves:\n%s", left)
	}
}

// The service manager's status has the interfaces, and which of them are awaited.
func TestStatusHasTheInterfaces(t *testing.T) {
	newNetwork(t)
	socket := t.TempDir() + "/notify"
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	policy := file(t, "shaperd.yaml", office+"  - {name: ppp*, ingress: 50mbit}\n")
	start(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+socket) }, "run", "--config", policy)
	if err := manager.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := manager.Read(buf)
	if want := "interfaces: eth0, ppp* (awaited)"; err != nil || !strings.Contains(string(buf[:n]), want) {
		t.Errorf("told %q, %v, want %q", buf[:n], err, want)
	}
}

// A class of an interface that many hosts share has in the kernel what this host
// has of the budget: it changes with the traffic, and nothing else of it does.
func TestKernelHasTheShareOfABudget(t *testing.T) {
	newNetwork(t)
	redis := exec.Command("redis-server", "--save", "") // on this thread: in its network
	if err := redis.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = redis.Process.Kill(); _ = redis.Wait() })
	const text = `
classes:
  - {name: mirror, match: {proto: udp, dport: 9}, rate: 8mbit, shared: true}
  - {name: bulk, default: true, rate: 10mbit}
interfaces: [{name: eth0, egress: 100mbit}]
shared: {redis: "redis://127.0.0.1", cluster: test, host: r1}
`
	policy := file(t, "shaperd.yaml", text)
	p := start(t, nil, "run", "--config", policy)
	p.await("msg=ready")
	classes := func() string { return shell(t, "tc class show dev eth0") }
	storetest.Eventually(t, "the floor of a class that is idle", func() bool {
		return strings.Contains(classes(), "rate 80Kbit ceil 80Kbit") && strings.Contains(p.asks(0, "status"), "leased")
	})
	shell(t, "ip addr add 10.9.0.1/24 dev eth0; ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev eth0")
	sends, err := net.Dial("udp", "10.9.0.2:9")
	if err != nil {
		t.Fatal(err)
	}
	defer sends.Close()
	storetest.Eventually(t, "all of the rate for the only one that sends", func() bool {
		for range 100 {
			_, _ = sends.Write(make([]byte, 1400)) // what the queue has no room for is dropped
		}
		return strings.Contains(classes(), "ceil 7920Kbit") || strings.Contains(classes(), "ceil 8Mbit")
	})
	// A reload that shares in another way begins without a share, and gives this one back.
	write(t, policy, strings.Replace(text, "cluster: test", "cluster: other, on_outage: closed", 1))
	if err := redis.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p.asks(0, "reload")
	if got := classes(); strings.Contains(got, "8Mbit") || strings.Contains(got, "7920Kbit") {
		t.Errorf("after the reload the kernel has the share of before:\n%s", got)
	}
	if err := redis.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	write(t, policy, text)
	p.asks(0, "reload")
	storetest.Eventually(t, "the floor again", func() bool { return strings.Contains(classes(), "rate 80Kbit ceil 80Kbit") })
	p.signal(syscall.SIGTERM)
	if code, _ := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := shell(t, "redis-cli HKEYS shaperd:{test:mirror:egress}:lease"); strings.TrimSpace(got) != "@" { // who holds
		t.Errorf("leases were not given back: %s", got)
	}
}
