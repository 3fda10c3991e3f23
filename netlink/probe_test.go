package netlink

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// What Probe says is what the datapath finds, and it leaves the namespace it was called in alone.
func TestProbeTriesWhatIsUsed(t *testing.T) {
	w := newWorld(t, "eth0")
	before := w.run("ip -o link; tc qdisc; tc filter show dev lo ingress")
	list, err := Probe()
	if err != nil {
		t.Fatal(err)
	}
	if after := w.run("ip -o link; tc qdisc; tc filter show dev lo ingress"); after != before {
		t.Errorf("here is now:\n%s\nand was:\n%s", after, before)
	}
	if len(list) != len(Features) {
		t.Fatalf("%d features, want %d", len(list), len(Features))
	}
	for _, f := range list {
		switch {
		case f.Name == "sch_fq_codel":
			if (f.Err == nil) != w.kernel.FqCodel || f.Err != nil && !errors.Is(f.Err, unix.ENOENT) {
				t.Errorf("sch_fq_codel: %v, and the datapath has it: %v", f.Err, w.kernel.FqCodel)
			}
		case f.Err != nil: // the other tests of this package need them
			t.Errorf("%s: %v", f.Name, f.Err)
		}
	}
}

func TestProbeWithoutCapabilities(t *testing.T) {
	runtime.LockOSThread()
	if err := keepOnly(unix.CAP_NET_ADMIN); err != nil {
		t.Fatal(err)
	}
	if _, err := probeApart(); !errors.Is(err, unix.EPERM) {
		t.Errorf("error %v, want that it is not permitted", err)
	}
}

func TestInspect(t *testing.T) {
	w := newWorld(t, "eth0", "eth1", "eth2")
	w.run("ip link add br0 type bridge; ip link set eth1 master br0; ip link add link eth2 name mac0 type macvlan")
	w.run("tc qdisc add dev eth2 root handle 7: tbf rate 1mbit burst 10kb limit 10kb")
	w.run("tc qdisc add dev eth2 clsact; tc filter add dev eth2 ingress pref 5 u32 match u32 0 0")
	w.run("ip link set dev eth0 gso_max_size 30000")
	w.apply(egress("eth0", office(100_000_000)))
	list, err := Inspect()
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) LinkInfo {
		i := slices.IndexFunc(list, func(l LinkInfo) bool { return l.Name == name })
		if i < 0 {
			t.Fatalf("no %s in %+v", name, list)
		}
		return list[i]
	}
	if l := at("eth0"); !l.Ours || l.Root != "" || l.Kind != "veth" || l.GSO != 30000 || !l.Up || l.Lower != "" || l.MTU != 1500 {
		t.Errorf("eth0: %+v", l)
	}
	if l := at("eth1"); l.Master != "br0" || l.RootKind != "noqueue" || l.Ours {
		t.Errorf("eth1: %+v", l)
	}
	if l := at("eth2"); l.Root != "tbf 7:" && l.Root != "tbf 7:0" || l.Filters != 1 || l.RootKind != "" {
		t.Errorf("eth2: %+v", l)
	}
	if l := at("mac0"); l.Lower != "eth2" || l.Kind != "macvlan" {
		t.Errorf("mac0: %+v", l)
	}
	if l := at("lo"); !l.Loopback {
		t.Errorf("lo: %+v", l)
	}
	if tables, err := Flowtables(); err != nil || len(tables) > 0 {
		t.Errorf("flowtables %v, %v, want none", tables, err)
	}
}

// The names of features are those that ethtool -k has, in its kernel form.
func TestEthtoolFeatures(t *testing.T) {
	newWorld(t, "eth0")
	e, err := openEthtool()
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	for _, name := range []string{"rx-gro", "tx-checksum-ip-generic", "highdma"} {
		if e.index("eth0", name) < 0 {
			t.Errorf("eth0 has no feature %s", name)
		}
	}
	if !e.feature("eth0", "tx-tcp-segmentation") || e.feature("eth0", "rx-lro") || e.feature("eth0", "hw-tc-offload") {
		t.Error("segmentation is not on, or what a veth cannot have is")
	}
	if e.feature("eth7", "rx-gro") || e.index("eth0", "no-such-feature") != -1 {
		t.Error("a feature of nothing is on")
	}
}
