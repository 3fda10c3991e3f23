//go:build vm

// Tests of what only a fuller kernel has: make test-vm runs them.

package netlink

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables"

	"shaperd/shaper"
)

func TestLeavesAreFairQueues(t *testing.T) {
	w := newWorld(t, "eth0")
	if !w.kernel.FqCodel {
		t.Fatal("the kernel's fq_codel is not found")
	}
	w.apply(egress("eth0", office(100*shaper.Mbit)))
	w.mustContain(w.run("tc qdisc show dev eth0"), "qdisc fq_codel 7203: parent 5a03:1", "qdisc fq_codel 7919: parent 6119:1")
}

// A root bucket that has to be replaced takes its fair queue along.
func TestARootBucketIsReplacedWithItsQueue(t *testing.T) {
	w := newWorld(t, "eth0")
	for _, rate := range []shaper.Rate{40 * shaper.Gbit, 30 * shaper.Mbit, 40 * shaper.Gbit, 30 * shaper.Mbit} {
		w.apply(egress("eth0", shaper.Link{Name: "l", Rate: rate}))
	}
}

func TestAnothersCakeIsPutBack(t *testing.T) {
	w := newWorld(t, "eth0")
	w.run("tc qdisc add dev eth0 root handle 9: cake bandwidth 20mbit diffserv4 nat")
	w.takesOverAndPutsBack("cake 9:")
}

func TestAnothersFlowerFilterStays(t *testing.T) {
	w := newWorld(t, "eth0")
	w.run("tc qdisc add dev eth0 clsact; tc filter add dev eth0 ingress pref 5 protocol ip flower ip_proto udp dst_port 9 action drop")
	theirs := w.run("tc filter show dev eth0 ingress")
	w.apply(shaping(Interface{Name: "eth0", Ingress: office(10 * shaper.Mbit)}))
	if _, err := w.Clear(); err != nil {
		t.Fatal(err)
	}
	if left := w.run("tc filter show dev eth0 ingress"); left != theirs {
		t.Errorf("another's filters are now:\n%s\nand were:\n%s", left, theirs)
	}
}

// A VLAN device is shaped as any other, and so is what its tags are on.
func TestVLANDevices(t *testing.T) {
	w := newWorld(t, "eth0")
	w.run("ip link add link eth0 name eth0.7 type vlan id 7; ip link set eth0.7 up")
	for _, device := range []string{"eth0.7", "eth0"} {
		for _, without := range []error{nil, errors.New("not tried")} {
			w.withoutBPF = without
			c := egress(device, office(100*shaper.Mbit))
			w.apply(c)
			numbers, err := newMinors(c.links())
			if err != nil {
				t.Fatal(err)
			}
			s := w.sender("eth0.7")
			if device == "eth0" { // sent through eth0.7, counted on eth0
				parent := w.sender("eth0")
				before := w.packets(parent)
				w.send(s, voice)
				if after := w.packets(parent); after[numbers["voice"]] != before[numbers["voice"]]+1 {
					t.Errorf("without eBPF %v: a tagged packet is not in its class on %s: %v", without, device, after)
				}
				continue
			}
			if got := w.where(s, voice); got != numbers["voice"] {
				t.Errorf("without eBPF %v: class %x on %s, want that of voice", without, got, device)
			}
		}
	}
}

// Another's delay at the root is seen as what it is.
func TestAnothersNetemIsNamed(t *testing.T) {
	w := newWorld(t, "eth0")
	w.run("tc qdisc add dev eth0 root netem delay 10ms")
	if _, err := w.Apply(egress("eth0", office(shaper.Mbit))); err == nil || !strings.Contains(err.Error(), "has the qdisc netem") {
		t.Errorf("error %v, want that netem is there", err)
	}
}

// What passes by the qdiscs is said.
func TestFlowtablesAreNamed(t *testing.T) {
	w := newWorld(t, "eth0", "eth1")
	c, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	table := c.AddTable(&nftables.Table{Name: "fast", Family: nftables.TableFamilyINet})
	c.AddFlowtable(&nftables.Flowtable{Table: table, Name: "ft", Devices: []string{"eth0", "eth1"}, Hooknum: nftables.FlowtableHookIngress, Priority: nftables.FlowtablePriorityFilter})
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	if list, err := Flowtables(); err != nil || len(list) != 1 || list[0].Table != "fast" || list[0].Name != "ft" || !slices.Contains(list[0].Devices, "eth1") {
		t.Errorf("flowtables %+v, %v", list, err)
	}
	p := w.apply(egress("eth0", office(10*shaper.Mbit)))
	if len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "the flowtable ft of table fast forwards through eth0 passes by") {
		t.Errorf("notes %q, want the flowtable", p.Notes)
	}
}
