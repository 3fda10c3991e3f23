package netlink

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shaperd/classify"
	"shaperd/netlink/packettest"
	"shaperd/shaper"
)

// A sender puts frames on the wire of an interface.
type sender struct {
	fd int
	to unix.SockaddrLinklayer
}

func (w *world) sender(device string) *sender {
	w.Helper()
	link, err := net.InterfaceByName(device)
	if err != nil {
		w.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = unix.Close(fd) })
	return &sender{fd, unix.SockaddrLinklayer{Ifindex: link.Index, Halen: 6}}
}

func (w *world) send(s *sender, frame []byte) {
	w.Helper()
	if err := unix.Sendto(s.fd, frame, 0, &s.to); err != nil {
		w.Fatal(err)
	}
}

// packets returns how many packets each class of a device has sent, by its number.
func (w *world) packets(s *sender) map[uint16]uint64 {
	w.Helper()
	states, err := w.socket.measure()
	if err != nil {
		w.Fatal(err)
	}
	out := map[uint16]uint64{}
	for _, c := range states[int32(s.to.Ifindex)].classes {
		if h := c.handle; !hasChildren(states[int32(s.to.Ifindex)], h) {
			out[h.minor()] = states[int32(s.to.Ifindex)].stats[h].packets
		}
	}
	return out
}

func hasChildren(st *state, h Handle) bool {
	for _, c := range st.classes {
		if c.parent == h {
			return true
		}
	}
	return false
}

// where sends one frame and returns the class that it went to.
func (w *world) where(s *sender, frame []byte) uint16 {
	w.Helper()
	before := w.packets(s)
	w.send(s, frame)
	for range 100 {
		for minor, n := range w.packets(s) {
			if n > before[minor] {
				return minor
			}
		}
	}
	w.Fatal("the packet is in no class")
	return 0
}

// flat is a link of so many classes, class0 and so on, with a default.
func flat(n int) shaper.Link {
	l := shaper.Link{Name: "flat", Rate: shaper.Gbit, Classes: []shaper.Class{{Name: "rest", Rate: shaper.Mbit, Ceil: shaper.Gbit, Default: true}}}
	for i := range n {
		l.Classes = append(l.Classes, shaper.Class{Name: fmt.Sprintf("class%d", i), Rate: shaper.Mbit, Ceil: shaper.Gbit})
	}
	return l
}

// plain reports whether u32 sees all of the packet: it has nothing before or behind the IP header.
func plain(p *packettest.Packet) bool { return len(p.Tags) == 0 && !p.PPPoE && len(p.Extensions) == 0 }

// The kernel sends each packet to the class that package classify says, with
// the eBPF program and, what it can see, with u32 filters.
func TestPacketsGoWhereClassifySays(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	choose := packettest.Chooser{Rand: rand.New(rand.NewPCG(seed, 0))}
	w := newWorld(t, "eth0")
	s := w.sender("eth0")
	decoder := classify.NewDecoder()
	for round := range 12 {
		u32 := round%2 == 1
		if w.withoutBPF = nil; u32 {
			w.withoutBPF = errors.New("not tried")
		}
		rules := classify.Rules{Default: "rest"}
		for n := range 10 {
			r := choose.Rule(fmt.Sprintf("class%d", n))
			if u32 {
				r.Match.Fwmark = nil // not every kernel's u32 looks at it
			}
			rules.List = append(rules.List, r)
		}
		c := egress("eth0", flat(10))
		c.Rules = rules
		w.apply(c)
		compiled, err := classify.Compile(rules)
		if err != nil {
			t.Fatal(err)
		}
		numbers, err := newMinors(c.links())
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			p := choose.Packet()
			p.PPPoE = false // which classify does not read
			if u32 && !plain(p) || p.Src.Is4In6() || p.Dst.Is4In6() {
				continue
			}
			var f classify.Flow
			if err := decoder.Ethernet(p.Bytes(), &f); err != nil {
				t.Fatal(err)
			}
			class, _ := compiled.Classify(&f)
			if got := w.where(s, p.Bytes()); got != numbers[class] {
				t.Fatalf("with u32 %v: %+v goes to %x, want %x (%s); rules:\n%v", u32, p, got, numbers[class], class, rules)
			}
		}
	}
}

func TestControlTrafficHasAClassOfItsOwn(t *testing.T) {
	w := newWorld(t, "eth0")
	s := w.sender("eth0")
	six := netip.MustParseAddr("2001:db8::1")
	for _, without := range []error{nil, errors.New("not tried")} {
		w.withoutBPF = without
		w.apply(egress("eth0", office(100*shaper.Mbit)))
		for name, frame := range map[string][]byte{
			"ARP":                 append([]byte{12: 0x08, 13: 0x06, 41: 0}, make([]byte, 20)...),
			"LLDP":                append([]byte{12: 0x88, 13: 0xcc, 40: 0}, make([]byte, 20)...),
			"neighbour discovery": (&packettest.Packet{Src: six, Dst: six, Proto: classify.ICMPv6, ICMPType: 135}).Bytes(),
			"DHCP":                (&packettest.Packet{Src: ten, Dst: ten, Proto: classify.UDP, SPort: 68, DPort: 67}).Bytes(),
			"DHCPv6":              (&packettest.Packet{Src: six, Dst: six, Proto: classify.UDP, SPort: 546, DPort: 547}).Bytes(),
		} {
			if got := w.where(s, frame); got != minorControl {
				t.Errorf("without eBPF %v: %s goes to %x, want the control class", without, name, got)
			}
		}
		ping := (&packettest.Packet{Src: six, Dst: six, Proto: classify.ICMPv6, ICMPType: 128}).Bytes()
		if got := w.where(s, ping); got != minorDefault {
			t.Errorf("without eBPF %v: a ping goes to %x, want the default class", without, got)
		}
	}
}

// Other rules come into force by a change of the program's tables; nothing of tc changes.
func TestRulesChangeWithoutAGap(t *testing.T) {
	w := newWorld(t, "eth0")
	c := egress("eth0", office(100*shaper.Mbit))
	w.apply(c)
	filters := w.run("tc filter show dev eth0")
	c.Rules.List[0].Match.Port = []classify.PortRange{{First: 9, Last: 9}}
	p := w.apply(c)
	if len(p.Changes) != 1 || p.Changes[0].Object != "classifier" {
		t.Errorf("changes %v, want that of the classifier", p.Changes)
	}
	if now := w.run("tc filter show dev eth0"); now != filters {
		t.Errorf("the filters are now:\n%s\nand were:\n%s", now, filters)
	}
	if err := w.Undo(p); err != nil {
		t.Fatal(err)
	}
	w.mustContain(w.run("tc filter show dev eth0"), "direct-action", " shaperd ")
}

// Without the capabilities for eBPF u32 filters classify, and a note says so.
func TestWithoutCapabilitiesForBPF(t *testing.T) {
	w := newWorld(t, "eth0")
	if err := keepOnly(unix.CAP_NET_ADMIN); err != nil {
		t.Fatal(err)
	}
	c := egress("eth0", office(100*shaper.Mbit))
	p := w.apply(c)
	if len(p.Notes) == 0 || !strings.Contains(p.Notes[0], "u32 filters classify") || !strings.Contains(p.Notes[0], "CAP_BPF") {
		t.Errorf("notes %q, want that u32 classifies, and why", p.Notes)
	}
	w.mustContain(w.run("tc filter show dev eth0"), "u32 chain 0 fh 100:")
	if _, err := w.Clear(); err != nil {
		t.Error(err)
	}
}

func TestWithThreeCapabilities(t *testing.T) {
	w := newWorld(t, "eth0")
	if err := keepOnly(unix.CAP_NET_ADMIN, unix.CAP_BPF, unix.CAP_PERFMON); err != nil {
		t.Fatal(err)
	}
	c := shaping(Interface{Name: "eth0", Egress: office(100 * shaper.Mbit), Ingress: office(100 * shaper.Mbit)})
	if p := w.apply(c); len(p.Notes) > 0 {
		t.Errorf("notes %q", p.Notes)
	}
	w.mustContain(w.run("tc filter show dev eth0"), "direct-action")
	w.running()
	if _, err := w.Clear(); err != nil {
		t.Error(err)
	}
}

func TestWithoutCapabilities(t *testing.T) {
	w := newWorld(t, "eth0")
	if err := keepOnly(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Apply(egress("eth0", office(100*shaper.Mbit))); !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "needs CAP_NET_ADMIN") {
		t.Errorf("error %v, want the capability that is missing", err)
	}
}

// keepOnly drops all capabilities of the calling thread but these.
func keepOnly(caps ...uint) error {
	var keep [2]unix.CapUserData
	for _, c := range caps {
		keep[c/32].Effective |= 1 << (c % 32)
		keep[c/32].Permitted |= 1 << (c % 32)
	}
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &keep[0])
}
