package bpf

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"shaperd/classify"
	"shaperd/netlink/packettest"
)

const (
	control = 2
	other   = 3
)

// A probe is a program whose answers can be had, with the same tables.
type probe struct {
	*Program
	probe *ebpf.Program
}

func newProbe(t testing.TB, tables *Tables) *probe {
	t.Helper()
	spec, err := specFor(tables)
	if err != nil {
		t.Fatal(err)
	}
	var loaded struct {
		Program *ebpf.Program `ebpf:"classifier"`
		Probe   *ebpf.Program `ebpf:"probe"`
		maps
	}
	if err := spec.LoadAndAssign(&loaded, nil); err != nil {
		t.Fatal(err)
	}
	p := &probe{&Program{program: loaded.Program, maps: loaded.maps}, loaded.Probe}
	t.Cleanup(func() {
		_ = p.Close()
		_ = p.probe.Close()
	})
	if err := p.Update(tables); err != nil {
		t.Fatal(err)
	}
	return p
}

func load(t testing.TB, rules classify.Rules) *probe {
	t.Helper()
	return newProbe(t, compile(t, rules))
}

// run classifies one frame.
func (p *probe) run(t testing.TB, frame []byte, mark uint32) uint16 {
	t.Helper()
	minor, err := p.try(frame, mark)
	if err != nil {
		t.Fatalf("run the program on %d bytes: %v", len(frame), err)
	}
	return minor
}

func (p *probe) try(frame []byte, mark uint32) (uint16, error) {
	minor, err := p.probe.Run(&ebpf.RunOptions{Data: frame, Context: &skb{Mark: mark}, Repeat: 1})
	return uint16(minor), err
}

// skb is struct __sk_buff as far as a test sets it.
type skb struct {
	_    [2]uint32
	Mark uint32
	_    [45]uint32
}

func compile(t testing.TB, rules classify.Rules) *Tables {
	t.Helper()
	tables, err := Compile(rules, minorsOf(rules), control)
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

func minorsOf(rules classify.Rules) map[string]uint16 {
	out := map[string]uint16{rules.Default: other}
	for _, r := range rules.List {
		if out[r.Class] == 0 {
			out[r.Class] = uint16(0x10 + len(out))
		}
	}
	return out
}

// want is what package classify says of a packet.
func want(t testing.TB, rules classify.Rules, c *classify.Classifier, p *packettest.Packet, mark uint32) uint16 {
	t.Helper()
	var f classify.Flow
	if err := classify.NewDecoder().Ethernet(p.Plain().Bytes(), &f); err != nil {
		t.Fatalf("decode %+v: %v", p, err)
	}
	f.Fwmark = mark
	class, _ := c.Classify(&f)
	return minorsOf(rules)[class]
}

func TestAgreesWithClassify(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := packettest.Chooser{Rand: rand.New(rand.NewPCG(seed, 0))}
	for round := range 60 {
		rules := classify.Rules{Default: "rest"}
		for n := range 1 + c.IntN(60) {
			rules.List = append(rules.List, c.Rule(fmt.Sprintf("class%d", n%20)))
		}
		compiled, err := classify.Compile(rules)
		if err != nil {
			t.Fatal(err)
		}
		tables, err := Compile(rules, minorsOf(rules), control)
		if err != nil {
			if strings.Contains(err.Error(), "different sets of keys") {
				continue
			}
			t.Fatal(err)
		}
		p := newProbe(t, tables)
		for range 500 {
			packet, mark := c.Packet(), uint32(c.IntN(9))
			if got, want := p.run(t, packet.Bytes(), mark), want(t, rules, compiled, packet, mark); got != want {
				t.Fatalf("round %d: %+v mark %d goes to %x, want %x; rules:\n%s", round, packet, mark, got, want, list(rules))
			}
		}
	}
}

func list(rules classify.Rules) string {
	var b strings.Builder
	for i, r := range rules.List {
		fmt.Fprintf(&b, "%d %s %s\n", i, r.Class, r.Match)
	}
	return b.String()
}

var shapes = []struct {
	name   string
	packet packettest.Packet
	want   string
}{
	{"IPv4", packettest.Packet{}, "web"},
	{"IPv4 options", packettest.Packet{Options: 12}, "web"},
	{"most IPv4 options", packettest.Packet{Options: 40}, "web"},
	{"first fragment", packettest.Packet{More: true}, "web"},
	{"later fragment", packettest.Packet{Fragment: 185}, "ten"},
	{"IPv4 authentication", packettest.Packet{Extensions: []uint8{51}}, "web"},
	{"VLAN", packettest.Packet{Tags: []uint16{0x8100}}, "web"},
	{"QinQ", packettest.Packet{Tags: []uint16{0x88a8, 0x8100}}, "web"},
	{"PPPoE", packettest.Packet{PPPoE: true}, "web"},
	{"PPPoE in a VLAN", packettest.Packet{Tags: []uint16{0x8100}, PPPoE: true}, "web"},
	{"IPv6", packettest.Packet{Src: v6}, "web"},
	{"IPv6 in a VLAN", packettest.Packet{Src: v6, Tags: []uint16{0x8100}}, "web"},
	{"IPv6 in PPPoE", packettest.Packet{Src: v6, PPPoE: true}, "web"},
	{"hop by hop", packettest.Packet{Src: v6, Extensions: []uint8{0}}, "web"},
	{"routing", packettest.Packet{Src: v6, Extensions: []uint8{43}}, "web"},
	{"destination options", packettest.Packet{Src: v6, Extensions: []uint8{60}}, "web"},
	{"IPv6 authentication", packettest.Packet{Src: v6, Extensions: []uint8{51}}, "web"},
	{"IPv6 first fragment", packettest.Packet{Src: v6, Extensions: []uint8{44}, More: true}, "web"},
	{"IPv6 later fragment", packettest.Packet{Src: v6, Extensions: []uint8{44}, Fragment: 185}, "six"},
	{"all extensions", packettest.Packet{Src: v6, Extensions: []uint8{0, 60, 43, 44, 51, 60}}, "web"},
	{"voice with ECN bits", packettest.Packet{TOS: 46<<2 | 3, DPort: 9}, "voice"},
	{"IPv6 voice with ECN bits", packettest.Packet{Src: v6, TOS: 46<<2 | 1, DPort: 9}, "voice"},
	{"neighbour discovery", packettest.Packet{Src: v6, Proto: classify.ICMPv6, ICMPType: 135}, "control"},
	{"packet too big", packettest.Packet{Src: v6, Proto: classify.ICMPv6, ICMPType: 2}, "control"},
	{"IPv6 ping", packettest.Packet{Src: v6, Proto: classify.ICMPv6, ICMPType: 128}, "six"},
	{"IPv4 ping", packettest.Packet{Proto: classify.ICMP, ICMPType: 8}, "ten"},
	{"DHCP", packettest.Packet{Proto: classify.UDP, SPort: 68, DPort: 67}, "control"},
	{"DHCPv6", packettest.Packet{Src: v6, Proto: classify.UDP, SPort: 546, DPort: 547}, "control"},
	{"not DHCP", packettest.Packet{Proto: classify.UDP, SPort: 67, DPort: 5000}, "ten"},
}

var v6 = netip.MustParseAddr("2001:db8::1")

var shapeRules = classify.Rules{
	List: []classify.Rule{
		{Class: "voice", Match: classify.Match{DSCP: []classify.DSCP{46}}},
		{Class: "web", Match: classify.Match{Proto: []classify.Protocol{classify.TCP}, Port: []classify.PortRange{{First: 443, Last: 443}}}},
		{Class: "ten", Match: classify.Match{Src: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}},
		{Class: "six", Match: classify.Match{Src: []netip.Prefix{netip.MustParsePrefix("2001:db8::/32")}}},
	},
	Default: "rest",
}

func TestShapes(t *testing.T) {
	p := load(t, shapeRules)
	minors := minorsOf(shapeRules)
	minors["control"] = control
	for _, tt := range shapes {
		q := tt.packet
		if !q.Src.IsValid() {
			q.Src = netip.MustParseAddr("10.1.2.3")
		}
		q.Dst = q.Src
		if q.Proto == 0 {
			q.Proto = classify.TCP
		}
		if q.DPort == 0 {
			q.DPort = 443
		}
		if got := p.run(t, q.Bytes(), 0); got != minors[tt.want] {
			t.Errorf("%s: class %x, want %x (%s)", tt.name, got, minors[tt.want], tt.want)
		}
	}
	for name, frame := range map[string][]byte{
		"ARP": {12: 0x08, 13: 0x06, 41: 0}, "LLDP": {12: 0x88, 13: 0xcc, 40: 0}, "spanning tree": {12: 0, 13: 38, 50: 0},
		"EAPOL": {12: 0x88, 13: 0x8e, 40: 0}, "PPPoE discovery": {12: 0x88, 13: 0x63, 40: 0}, "LCP": {12: 0x88, 13: 0x64, 20: 0xc0, 21: 0x21, 40: 0},
	} {
		if got := p.run(t, frame, 0); got != control {
			t.Errorf("%s: class %x, want the control class", name, got)
		}
	}
}

func TestOfMalformedPacketsCountsWhatCanBeRead(t *testing.T) {
	p := load(t, shapeRules)
	whole := (&packettest.Packet{Src: v6, Dst: v6, Proto: classify.TCP, DPort: 443, Extensions: []uint8{0, 60}, Tags: []uint16{0x8100}}).Bytes()
	const ip, extensions = 18 + 40, 32
	for n := 15; n < ip+extensions+4; n++ {
		want := uint16(other)
		if n >= ip { // its addresses can be read, and not that it is of the web's
			want = minorsOf(shapeRules)["six"]
		}
		if got := p.run(t, append([]byte(nil), whole[:n]...), 0); got != want {
			t.Errorf("%d bytes of a packet: class %x, want %x", n, got, want)
		}
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 20000 {
		frame := make([]byte, 54+random.IntN(80)) // the kernel runs no program on less than a header
		for i := range frame {
			frame[i] = byte(random.Uint32())
		}
		copy(frame[12:], [][]byte{{0x08, 0, 0x45}, {0x86, 0xdd, 0x60}, {0x81, 0}, {0x88, 0x64}}[random.IntN(4)])
		p.run(t, frame, 0)
	}
}

// While rules change, every packet gets the answer of the old ones or of the new ones.
func TestUpdateIsAtomic(t *testing.T) {
	rules := func(class string) classify.Rules {
		r := classify.Rules{Default: "rest", List: []classify.Rule{{Class: "a", Match: classify.Match{SPort: []classify.PortRange{{First: 9, Last: 9}}}}}}
		for n := range 300 {
			r.List = append(r.List, classify.Rule{Class: class, Match: classify.Match{
				Src:   []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n >> 8), byte(n), 0}), 24)},
				DPort: []classify.PortRange{{First: 443, Last: 443}}, Fwmark: []uint32{7},
			}})
		}
		return r
	}
	minors := map[string]uint16{"rest": other, "a": 0x10, "b": 0x11}
	tables := map[string]*Tables{}
	for _, class := range []string{"a", "b"} {
		var err error
		if tables[class], err = Compile(rules(class), minors, control); err != nil {
			t.Fatal(err)
		}
	}
	p := newProbe(t, tables["a"])
	frame := (&packettest.Packet{Src: netip.MustParseAddr("10.0.200.1"), Dst: netip.MustParseAddr("10.0.0.9"), Proto: classify.TCP, DPort: 443}).Bytes()
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		seen := [2]int{}
		for {
			select {
			case <-stop:
				if seen[0] == 0 || seen[1] == 0 {
					done <- fmt.Errorf("seen %v of the two classes: too few for a test", seen)
				}
				close(done)
				return
			default:
			}
			got, err := p.try(frame, 7)
			if err == nil && got != minors["a"] && got != minors["b"] {
				err = fmt.Errorf("class %x, want that of the old or of the new rules", got)
			}
			if err != nil {
				done <- err
				return
			}
			seen[got-minors["a"]]++
		}
	}()
	for n := range 100 {
		if err := p.Update(tables[[]string{"b", "a"}[n%2]]); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	p := load(t, shapeRules)
	found, err := Find(p.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	if got, err := found.Fingerprint(); err != nil || got != compile(t, shapeRules).Fingerprint() {
		t.Errorf("fingerprint %x, %v", got, err)
	}
	rules := classify.Rules{Default: "rest", List: []classify.Rule{{Class: "web", Match: classify.Match{}}}}
	if err := found.Update(compile(t, rules)); err != nil {
		t.Fatal(err)
	}
	if got := p.run(t, (&packettest.Packet{Src: v6, Dst: v6, Proto: classify.TCP}).Bytes(), 0); got != minorsOf(rules)["web"] {
		t.Errorf("class %x after an update by another process", got)
	}
	if _, err := Find(1<<32 - 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
}

func ports(n int) classify.Rules {
	r := classify.Rules{Default: "rest"}
	for i := range n {
		r.List = append(r.List, classify.Rule{Class: fmt.Sprintf("c%d", i%100), Match: classify.Match{
			Proto: []classify.Protocol{classify.TCP}, DPort: []classify.PortRange{{First: uint16(i + 1), Last: uint16(i + 1)}},
		}})
	}
	return r
}

func TestCapacity(t *testing.T) {
	p := load(t, ports(10))
	if err := p.Update(compile(t, ports(1000))); err != nil {
		t.Errorf("1000 rules do not fit where there were 10: %v", err)
	}
	many := compile(t, ports(5000))
	if err := p.Update(many); p.Fits(many) || err == nil {
		t.Errorf("5000 rules where there were 10: fit %v, %v", p.Fits(many), err)
	}
	if got := p.run(t, (&packettest.Packet{Src: v6, Dst: v6, Proto: classify.TCP, DPort: 1000}).Bytes(), 0); got != minorsOf(ports(1000))["c99"] {
		t.Errorf("class %x: the rules of before are not in force", got)
	}
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	wide := classify.Rules{Default: "rest"}
	for n := range 1100 { // each overlaps all others, in two keys
		wide.List = append(wide.List, classify.Rule{Class: "a", Match: classify.Match{
			SPort: []classify.PortRange{{First: uint16(1 + n), Last: uint16(40000 + n)}}, DPort: []classify.PortRange{{First: uint16(1 + n), Last: uint16(40000 + n)}},
		}})
	}
	if _, err := Compile(wide, minorsOf(wide), control); err == nil || !strings.Contains(err.Error(), "combinations, too many for the kernel's classifier") {
		t.Errorf("rules with a million combinations: %v", err)
	}
	if _, err := Compile(shapeRules, map[string]uint16{"rest": 3}, control); err == nil || !strings.Contains(err.Error(), `rule 1: class "voice" has no number`) {
		t.Errorf("a class without a number: %v", err)
	}
}

// The committed object is that of the committed source.
func TestObjectIsOfTheSource(t *testing.T) {
	source, err := os.ReadFile("classifier.c")
	if err != nil {
		t.Fatal(err)
	}
	of, err := os.ReadFile("classifier.sum")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%x  classifier.c\n%x  classifier.o\n", sha256.Sum256(source), sha256.Sum256(object)); string(of) != want {
		t.Errorf("classifier.o is not of classifier.c: run make bpf\n%s", want)
	}
}

// The program loads with three capabilities, and says which are missing.
func TestCapabilities(t *testing.T) {
	const netAdmin, perfmon, bpf = 12, 38, 39
	if os.Getenv("BPF_TEST_LOAD") != "" {
		p, err := Load(compile(t, shapeRules))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		_ = p.Close()
		os.Exit(0)
	}
	for _, tt := range []struct {
		caps []uintptr
		want string
	}{{[]uintptr{netAdmin, perfmon, bpf}, ""}, {[]uintptr{netAdmin}, "needs CAP_BPF and CAP_PERFMON"}} {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestCapabilities$")
		cmd.Env = append(os.Environ(), "BPF_TEST_LOAD=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, AmbientCaps: tt.caps}
		out, err := cmd.CombinedOutput()
		if (err == nil) != (tt.want == "") || !strings.Contains(string(out), tt.want) {
			t.Errorf("with capabilities %v: %v, %s", tt.caps, err, out)
		}
	}
}

// A load that was not permitted leaves no trace: what is loaded later in the same process, with the
// capabilities, can be found. A process of its own has asked the kernel nothing before.
func TestAfterALoadWithoutCapabilities(t *testing.T) {
	if os.Getenv("BPF_TEST_LOAD") == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestAfterALoadWithoutCapabilities$")
		cmd.Env = append(os.Environ(), "BPF_TEST_LOAD=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	tables, refused := compile(t, shapeRules), make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread without capabilities ends with the goroutine
		var nothing [2]unix.CapUserData
		err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &nothing[0])
		if err == nil {
			_, err = Load(tables)
		}
		refused <- err
	}()
	if err := <-refused; !errors.Is(err, unix.EPERM) {
		t.Fatalf("load without capabilities: %v", err)
	}
	p, err := Load(tables)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	found, err := Find(p.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	if has, err := found.Fingerprint(); err != nil || has != tables.Fingerprint() {
		t.Errorf("the program that is found has other tables: %v", err)
	}
}

func BenchmarkClassify(b *testing.B) {
	for _, n := range []int{1, 100, 1000, 10000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			p := load(b, ports(n))
			frame := (&packettest.Packet{Src: v6, Dst: v6, Proto: classify.TCP, DPort: uint16(n)}).Bytes()
			per, err := p.Cost(frame, max(b.N, 1))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(per.Nanoseconds()), "ns/packet")
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	rules := ports(10000)
	for b.Loop() {
		p, err := Load(compile(b, rules))
		if err != nil {
			b.Fatal(err)
		}
		_ = p.Close()
	}
}

// deep reports whether a frame has more headers than the program follows: eight
// tags, eight IPv6 extension headers, in IPv4 one authentication header.
func deep(frame []byte) bool {
	const most = 8 // MAX_HEADERS
	at, n := 12, 0
	kind := func() uint16 {
		if len(frame) < at+2 {
			return 0
		}
		return binary.BigEndian.Uint16(frame[at:])
	}
	for ; kind() == 0x8100 || kind() == 0x88a8; n++ {
		at += 4
	}
	if ip := at + 2; kind() == 0x0800 && len(frame) > ip+20 && frame[ip+9] == 51 {
		if ah := ip + 4*int(frame[ip]&15); len(frame) > ah {
			return slices.Contains([]byte{0, 43, 44, 51, 60}, frame[ah])
		}
	}
	if n >= most || kind() != 0x86dd || len(frame) < at+2+40 {
		return n >= most
	}
	next := frame[at+8]
	for at, n = at+42, 0; len(frame) >= at+2; n++ {
		size := 8 * (int(frame[at+1]) + 1)
		switch next {
		case 0, 43, 60:
		case 44:
			size = 8
		case 51:
			size = 4 * (int(frame[at+1]) + 2)
		default:
			return n >= most
		}
		next, at = frame[at], at+size
	}
	return n >= most
}

// Any frame that classify can read goes where classify says.
func FuzzAgreesWithClassify(f *testing.F) {
	c := packettest.Chooser{Rand: rand.New(rand.NewPCG(1, 2))}
	for range 50 {
		f.Add(c.Packet().Bytes(), uint32(c.IntN(9)))
	}
	rules := classify.Rules{Default: "rest"}
	for n := range 40 {
		if r := c.Rule(fmt.Sprintf("class%d", n)); len(r.Match.Src)+len(r.Match.Dst) < 2 {
			rules.List = append(rules.List, r)
		}
	}
	compiled, err := classify.Compile(rules)
	if err != nil {
		f.Fatal(err)
	}
	p := load(f, rules)
	decoder, minors := classify.NewDecoder(), minorsOf(rules)
	f.Fuzz(func(t *testing.T, frame []byte, mark uint32) {
		var flow classify.Flow
		if len(frame) < 54 || len(frame) > 1514 || deep(frame) || decoder.Ethernet(frame, &flow) != nil {
			return
		}
		flow.Fwmark = mark
		class, _ := compiled.Classify(&flow)
		if got := p.run(t, frame, mark); got != minors[class] && got != control {
			t.Errorf("%x mark %d: %v goes to %x, want %x", frame, mark, flow, got, minors[class])
		}
	})
}
