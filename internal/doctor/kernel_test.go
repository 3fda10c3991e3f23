package doctor

import (
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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

func shell(t *testing.T, command string) {
	t.Helper()
	if out, err := exec.Command("/bin/sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// found returns what a check found on this host, as "verdict: found".
func found(r *Report, check string) (list []string) {
	for _, x := range r.Findings {
		if x.Check == check {
			list = append(list, x.Verdict.String()+": "+x.Found)
		}
	}
	return list
}

func TestThisHost(t *testing.T) {
	newNetwork(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := parse(t, strings.NewReplacer("192.0.2.1:8080", l.Addr().String(), "127.0.0.1:9477", "127.0.0.1:9").Replace(officeText))
	r := Examine(Gather(p))
	for check, want := range map[string][]string{
		"interfaces":      {"ok: eth0 is there"},
		"sch_htb":         {"ok: sch_htb works"},
		"cls_bpf":         {"ok: cls_bpf works"},
		"ifb":             {"ok: ifb works"},
		"root-qdisc":      {"ok: nobody's qdisc is at the root"},
		"CAP_NET_ADMIN":   {"ok: CAP_NET_ADMIN is there"},
		"flowtables":      {"ok: no nftables flowtable has a shaped interface"},
		"ingress-filters": {"ok: no filters of others"},
		"state":           {"ok: eth0 is up"},
	} {
		if got := found(r, check); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", check, got, want)
		}
	}
	inUse := fmt.Sprintf("problem: %s is in use by doctor.test, pid %d", l.Addr(), unix.Getpid())
	if got := found(r, "listen"); !slices.Contains(got, inUse) || !slices.Contains(got, "ok: 127.0.0.1:9 is free") {
		t.Errorf("listen: %q, want %q", got, inUse)
	}
	if !slices.Equal(r.Can, []string{"eth0"}) || !slices.Equal(r.Cannot, []string{"relay web"}) {
		t.Errorf("can %q, cannot %q", r.Can, r.Cannot)
	}
}

// What others have put there is found, and what is shaperd's own is not taken for it.
func TestWhatOthersHavePutThere(t *testing.T) {
	newNetwork(t)
	shell(t, "tc qdisc add dev eth0 root handle 7: tbf rate 1mbit burst 10kb limit 10kb; ip link set dev eth0 gso_max_size 100000 down")
	shell(t, "tc qdisc add dev eth0 clsact; tc filter add dev eth0 ingress pref 5 u32 match u32 0 0")
	shell(t, "ip link add mac0 link eth0 type macvlan; ip link add br0 type bridge; ip link set br0 up; ip link set p-eth0 master br0")
	r := Examine(Gather(parse(t, strings.Replace(officeText, "interfaces:", "interfaces:\n  - {name: br0, egress: 50mbit}", 1))))
	for check, want := range map[string]string{
		"root-qdisc":      "problem: eth0 has another's qdisc, tbf 7:",
		"ingress-filters": "info: eth0 has 1 filter of others for what arrives",
		"big-tcp":         "warning: eth0 has offloaded packets up to 100000 bytes (BIG TCP)",
		"state":           "info: eth0 is down",
		"stacked":         "info: mac0 is on top of eth0",
		"bridge":          "warning: br0 is a bridge",
		"queues":          "ok: br0 has no queue of its own",
	} {
		if got := found(r, check); !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("%s: %q, want %q", check, got, want)
		}
	}
	if !slices.Contains(r.Cannot, "eth0") || !slices.Contains(r.Can, "br0") {
		t.Errorf("can %q, cannot %q", r.Can, r.Cannot)
	}
}

// Without capabilities the rest is looked at all the same, and what could not be is said. The probe of the
// kernel runs on a thread that has them still: cmd/shaperd tests a process without.
func TestWithoutCapabilities(t *testing.T) {
	newNetwork(t)
	var nothing [2]unix.CapUserData
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &nothing[0]); err != nil {
		t.Fatal(err)
	}
	r := Examine(Gather(parse(t, strings.Replace(officeText, ":8080", ":80", 1))))
	for check, want := range map[string]string{
		"interfaces":           "ok: eth0 is there",
		"CAP_NET_ADMIN":        "problem: this process has no CAP_NET_ADMIN",
		"CAP_BPF":              "warning: this process has neither CAP_BPF nor CAP_PERFMON",
		"CAP_NET_BIND_SERVICE": "problem: 192.0.2.1:80 is below port 1024, and this process has no CAP_NET_BIND_SERVICE",
		"flowtables":           "info: whether nftables has flowtables is not known",
		"root-qdisc":           "ok: nobody's qdisc is at the root",
	} {
		if got := found(r, check); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q, want %q", check, got, want)
		}
	}
	if !slices.Equal(r.Cannot, []string{"eth0", "relay web"}) {
		t.Errorf("cannot %q", r.Cannot)
	}
}
