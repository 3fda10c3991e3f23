package netlink

import (
	"errors"
	"net/netip"
	"os"
	"testing"
	"time"

	"shaperd/classify"
	"shaperd/netlink/packettest"
	"shaperd/shaper"
)

var (
	ten   = netip.MustParseAddr("10.0.0.1")
	voice = (&packettest.Packet{Src: ten, Dst: ten, Proto: classify.UDP, TOS: 46 << 2, DPort: 5000}).Bytes()
)

func TestStats(t *testing.T) {
	w := newWorld(t, "eth0")
	l := office(100 * shaper.Mbit)
	l.Name = "eth0 egress"
	w.apply(egress("eth*", l))
	s := w.sender("eth0")
	for range 10 {
		w.send(s, voice)
	}
	st, err := w.Stats()
	if err != nil || len(st.Links) != 1 {
		t.Fatalf("%+v, %v", st, err)
	}
	link := st.Links[0]
	if link.Name != "eth0 egress" || link.Rate != l.Rate || link.Applied != l.Rate || link.Packets != 10 || link.Bytes != uint64(10*len(voice)) || link.Unshaped != 0 {
		t.Errorf("link %+v", link)
	}
	bursts, err := Bursts(&l, 1500)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range link.Classes {
		if c.Name != "(control)" && (c.Burst == 0 || c.Burst != bursts[c.Name]) {
			t.Errorf("class %s has a burst of %s, want %s", c.Name, c.Burst, bursts[c.Name])
		}
		if want := map[string]uint64{"voice": 10}[c.Name]; c.Packets != want || c.LentPackets+c.BorrowedPackets != want {
			t.Errorf("class %s has sent %d packets, want %d: %+v", c.Name, c.Packets, want, c)
		}
		if c.Rate == 0 || c.AppliedRate != c.Rate || c.Ceil == 0 || c.AppliedCeil != c.Ceil || c.TokensBytes <= 0 {
			t.Errorf("class %s: rates of policy and kernel, tokens: %+v", c.Name, c)
		}
	}
	w.run("tc class change dev eth0 classid 5a00:719 parent 5a00:1 htb rate 1mbit ceil 2mbit")
	if st, err = w.Stats(); err != nil || !st.Interfaces[0].Drift {
		t.Errorf("after another's change: %+v, %v, want drift", st.Interfaces, err)
	}
	for _, c := range st.Links[0].Classes {
		if c.Name == "voice" && (c.AppliedRate != shaper.Mbit || c.Rate != 10*shaper.Mbit) {
			t.Errorf("voice has %s of %s, want what the kernel has beside what the policy says", c.AppliedRate, c.Rate)
		}
	}
}

// The kernel's 32-bit counters go on where they wrap, and begin again with a new object.
func TestMeter(t *testing.T) {
	var m meter
	now := time.Unix(0, 0)
	m.look(counters{bytes: 1000, packets: 10, drops: 1<<32 - 2, overlimits: 5}, now)
	m.look(counters{bytes: 126000, packets: 20, drops: 3, overlimits: 6}, now.Add(time.Second))
	if m.drops() != 1<<32+3 || m.overlimits() != 6 || m.rate != 1e6 {
		t.Errorf("drops %d, overlimits %d, rate %v, want %d, 6, 1e6", m.drops(), m.overlimits(), m.rate, uint64(1<<32+3))
	}
	m.look(counters{bytes: 10, packets: 1, drops: 1}, now.Add(2*time.Second))
	if m.drops() != 1 || m.rate != 0 {
		t.Errorf("of a new object: drops %d, rate %v, want 1 and none yet", m.drops(), m.rate)
	}
}

// Rates change while packets pass: none is lost, and each is counted.
func TestAChangeOfRateLosesNothing(t *testing.T) {
	w := newWorld(t, "eth0")
	s := w.sender("eth0")
	l := office(10 * shaper.Mbit)
	w.apply(egress("eth0", l))
	const packets = 400
	for n := range packets {
		if n%20 == 0 {
			walk(l.Classes, func(c, _ *shaper.Class) { c.Rate += 8 * shaper.Kbit })
			w.apply(egress("eth0", l))
		}
		w.send(s, voice)
	}
	w.until("all packets have left", func() bool {
		st, err := w.Stats()
		return err == nil && st.Links[0].Classes[1].Name == "voice" && st.Links[0].Classes[1].Packets == packets && st.Links[0].Drops == 0
	})
}

// A scrape may come while the daemon ends; by then a descriptor may be a client's.
func TestStatsAfterCloseTouchNoSocket(t *testing.T) {
	w := newWorld(t)
	d, err := Open(nil)
	if err != nil {
		w.Fatal(err)
	}
	d.Close()
	if _, err := d.Stats(); !errors.Is(err, os.ErrClosed) {
		w.Errorf("Stats after Close = %v", err)
	}
}
