package netlink

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shaperd/shaper"
)

var update = flag.Bool("update", false, "write the golden files")

// ethernet is a usual interface.
var ethernet = Device{Name: "eth0", Index: 7, MTU: 1500, GSO: 65536, Ethernet: true}

// commands prints a tree as tc commands with the reason of each parameter.
func commands(tr tree, device string) string {
	var b strings.Builder
	line := func(command string, fields []Field) {
		b.WriteString("tc " + command + "\n")
		for _, f := range fields {
			if f.Why != "" {
				b.WriteString("   # " + f.Name + ": " + f.Why + "\n")
			}
		}
	}
	for i := range tr.qdiscs[:1] {
		line(tr.qdiscs[i].command(verbReplace, device), tr.qdiscs[i].fields())
	}
	for i := range tr.classes {
		line(tr.classes[i].command(verbAdd, device), explained(tr.classes[i].htb.fields(), tr.classes[i].why))
	}
	for i := range tr.qdiscs[1:] {
		line(tr.qdiscs[i+1].command(verbAdd, device), tr.qdiscs[i+1].fields())
	}
	return b.String()
}

func TestTree(t *testing.T) {
	one := func(rate shaper.Rate, mode shaper.Mode) shaper.Link {
		return shaper.Link{Name: "eth0 egress", Rate: rate, Classes: []shaper.Class{{Name: "default", Rate: rate, Ceil: rate, Mode: mode, Default: true}}}
	}
	jumbo, tunnel := ethernet, ethernet
	jumbo.MTU = 9000
	tunnel.Ethernet = false
	for _, tt := range []struct {
		name     string
		link     shaper.Link
		device   Device
		kernel   Kernel
		overhead int
	}{
		{"classes", office(100 * shaper.Mbit), ethernet, Kernel{}, 0},
		{"classes-fq_codel", office(100 * shaper.Mbit), ethernet, Kernel{FqCodel: true}, 0},
		{"classes-slow", office(shaper.Mbit), ethernet, Kernel{FqCodel: true}, 0},
		{"classes-fast", office(100 * shaper.Gbit), ethernet, Kernel{}, 0},
		{"shared", withShare(100*shaper.Mbit, 10*shaper.Mbit), ethernet, Kernel{}, 0},
		{"shared-nothing", withShare(2*shaper.Gbit, 1), ethernet, Kernel{FqCodel: true}, 0},
		{"no-classes", one(50*shaper.Mbit, shaper.Token), ethernet, Kernel{FqCodel: true}, 0},
		{"no-classes-leaky", one(10*shaper.Gbit, shaper.Leaky), ethernet, Kernel{}, 0},
		{"jumbo", office(shaper.Gbit), jumbo, Kernel{}, 0},
		{"overhead-ethernet", one(50*shaper.Mbit, shaper.Token), ethernet, Kernel{}, 38},
		{"overhead-tunnel", one(50*shaper.Mbit, shaper.Token), tunnel, Kernel{}, 46},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := newMinors([]*shaper.Link{&tt.link})
			if err != nil {
				t.Fatal(err)
			}
			tr, err := newTree(&tt.link, &tt.device, tt.kernel, tt.overhead, m)
			if err != nil {
				t.Fatal(err)
			}
			got := commands(tr, "eth0")
			file := filepath.Join("testdata", tt.name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the plan is not that of %s:\n%s", file, got)
			}
		})
	}
}

// nested returns a chain of classes, one in the other.
func nested(depth int) shaper.Class {
	c := shaper.Class{Name: "leaf", Rate: shaper.Mbit, Ceil: shaper.Mbit, Default: true}
	for n := range depth - 1 {
		c = shaper.Class{Name: "level" + decimal(int64(depth-n)), Rate: shaper.Mbit, Ceil: shaper.Mbit, Children: []shaper.Class{c}}
	}
	return c
}

func TestWhatTheKernelCannotHoldIsRefused(t *testing.T) {
	second := shaper.Class{Name: "other", Rate: shaper.Mbit, Ceil: shaper.Mbit}
	for _, tt := range []struct {
		name string
		link shaper.Link
		want string
	}{
		{"a link too slow", shaper.Link{Name: "eth0 egress", Rate: 7 * shaper.Kbit}, "eth0 egress: 7kbit is less than the kernel can pace: write at least 8kbit"},
		{"a class too slow", shaper.Link{Name: "l", Rate: shaper.Mbit, Classes: []shaper.Class{second, {Name: "c", Rate: 1, Ceil: shaper.Mbit, Default: true}}}, `l: class "c": 1bit is less`},
		{"a burst below a packet", shaper.Link{Name: "l", Rate: shaper.Mbit, Classes: []shaper.Class{
			second, {Name: "c", Rate: shaper.Mbit, Ceil: shaper.Mbit, Burst: 1500, Default: true},
		}}, `a burst of 1500 bytes cannot hold a packet of eth0, which has an MTU of 1500: write at least 1514b`},
		{"a burst too long", shaper.Link{Name: "l", Rate: shaper.Mbit, Classes: []shaper.Class{
			second, {Name: "c", Rate: 8 * shaper.Kbit, Ceil: shaper.Mbit, Burst: shaper.MiB, Default: true},
		}}, "lasts more than 275 s at 8kbit"},
		{"too deep", shaper.Link{Name: "l", Rate: shaper.Mbit, Classes: []shaper.Class{nested(8), second}}, `class "leaf" is nested 8 deep: HTB has room for 7`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := newMinors([]*shaper.Link{&tt.link})
			if err == nil {
				_, err = newTree(&tt.link, &ethernet, Kernel{}, 0, m)
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	many := shaper.Link{Name: "l", Rate: shaper.Gbit}
	for n := range maxMinor {
		many.Classes = append(many.Classes, shaper.Class{Name: "c" + decimal(int64(n)), Rate: 8 * shaper.Kbit})
	}
	if _, err := newMinors([]*shaper.Link{&many}); err == nil || !strings.Contains(err.Error(), "has room for 3056 on a link") {
		t.Errorf("too many classes: %v", err)
	}
}

func TestMinorsFollowTheName(t *testing.T) {
	l := office(100 * shaper.Mbit)
	before, err := newMinors([]*shaper.Link{&l})
	if err != nil {
		t.Fatal(err)
	}
	l.Classes = append([]shaper.Class{{Name: "new", Rate: shaper.Mbit}}, l.Classes...)
	after, err := newMinors([]*shaper.Link{&l})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint16]string{}
	for name, n := range after {
		if m, ok := before[name]; ok && m != n {
			t.Errorf("class %s has the number %x, and had %x before another was added", name, n, m)
		}
		if other, ok := seen[n]; ok {
			t.Errorf("classes %s and %s both have the number %x", name, other, n)
		}
		seen[n] = name
		if h := leafHandle(rootMajor, n); h.sibling().sibling() != h || !h.ours() || !h.sibling().ours() {
			t.Errorf("class %s: its queue's handles %s and %s are not both ours", name, h, h.sibling())
		}
	}
}

// Every burst survives the kernel's ticks: what is written is what is read.
func TestTicksRoundTrip(t *testing.T) {
	for rate := 8 * shaper.Kbit; rate <= 400*shaper.Gbit; rate = rate * 7 / 3 &^ 7 {
		for burst := shaper.Size(1514); burst <= shaper.GiB; burst = burst*5/2 + 1 {
			n, fits := ticks(burst, rate)
			if !fits {
				continue
			}
			if back := ticksToSize(n, rate); !sameBurst(back, burst, rate) {
				t.Fatalf("%s at %s: %d ticks, which are %s", burst, rate, n, back)
			}
		}
	}
	for _, tt := range []struct {
		rate shaper.Rate
		size shaper.Size
		want uint32
	}{{8 * shaper.Mbit, 1000, 15625}, {8 * shaper.Gbit, 1, 1}, {8 * shaper.Kbit, 1000, 15625000}} {
		if got, _ := ticks(tt.size, tt.rate); got != tt.want {
			t.Errorf("%d bytes at %s: %d ticks of 64 ns, want %d", tt.size, tt.rate, got, tt.want)
		}
	}
}
