package netlink

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shaperd/shaper"
)

// running starts Run and ends it with the test.
func (w *world) running() {
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() { done <- w.Datapath.Run(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
	})
}

// until waits for what is true sooner or later.
func (w *world) until(what string, ok func() bool) {
	w.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			w.Fatalf("not so after 20 s: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (w *world) shaped(device, kind string) func() bool {
	return func() bool { return strings.Contains(w.run("tc qdisc show dev "+device), "qdisc "+kind+" 5a00: root") }
}

func TestRunRepairs(t *testing.T) {
	w := newWorld(t, "eth0")
	c := egress("eth0", office(100*shaper.Mbit))
	w.apply(c)
	w.running()
	w.run("tc qdisc del dev eth0 root")
	w.until("the root qdisc is back", w.shaped("eth0", "htb"))
	w.run("tc class del dev eth0 classid 5a00:2 || tc qdisc del dev eth0 parent 5a00:2; tc qdisc replace dev eth0 parent 5a00:3 pfifo limit 7")
	w.until("class and leaf are back", func() bool {
		p, err := w.Plan(c)
		return err == nil && len(p.Changes) == 0
	})
	w.run("ip link del eth0; ip link add eth0 mtu 1500 type veth peer name p-eth0")
	w.until("a new interface of that name is shaped", w.shaped("eth0", "htb"))
}

// Interfaces of a pattern come, get other names, and go: each is shaped while the policy means it.
func TestRunFollowsNames(t *testing.T) {
	w := newWorld(t)
	before := w.everything()
	if p := w.apply(shaping(Interface{Name: "wan*", Egress: office(100 * shaper.Mbit), Ingress: office(100 * shaper.Mbit)})); len(p.Missing) != 1 || p.Missing[0] != "wan*" {
		t.Errorf("missing %q, want the pattern", p.Missing)
	}
	w.running()
	w.run("ip link add eth0 mtu 1500 type veth peer name p-eth0; ip link set p-eth0 up; ip link set eth0 up")
	w.run("ip link set eth0 down; ip link set eth0 name wan0; ip link set wan0 up")
	servant := func() bool { return strings.Contains(w.run("ip -br link"), ifbPrefix) }
	w.until("wan0 is shaped both ways", func() bool { return w.shaped("wan0", "htb")() && servant() })
	w.run("ip link set wan0 down; ip link set wan0 name lan0; ip link set lan0 up")
	w.until("lan0 is not shaped any more", func() bool { return !w.shaped("lan0", "htb")() && !servant() })
	w.run("ip link del lan0")
	w.until("nothing is left", func() bool { return w.everything() == before })
}

// Who keeps changing back is named, and fought ever more slowly.
func TestAnotherProgramIsNamedAndNotFoughtForEver(t *testing.T) {
	w := newWorld(t, "eth0")
	var log strings.Builder
	var mu sync.Mutex
	w.log = slog.New(slog.NewTextHandler(writer(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(b)
	}), nil))
	said := func(text string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return strings.Contains(log.String(), text)
		}
	}
	w.apply(egress("eth0", office(100*shaper.Mbit)))
	w.running()
	w.run("tc qdisc del dev eth0 root")
	w.until("the repair is in the log", said(`msg=repaired interface=eth0 first="eth0: add htb root`))
	w.run("tc qdisc del dev eth0 root")
	w.until("the second one too", said("next_repair_after=1s"))
	w.until("it is repaired", w.shaped("eth0", "htb"))
	w.run("tc qdisc del dev eth0 root")
	s, err := w.Stats()
	if err != nil || len(s.Interfaces) != 1 || s.Interfaces[0].Repairs < 3 && !s.Interfaces[0].Drift {
		t.Errorf("before the backoff ends: %+v, %v, want drift", s.Interfaces, err)
	}
	w.until("it is repaired after all", w.shaped("eth0", "htb"))
	w.until("the third repair is in the log", said("next_repair_after=2s"))
	if s, err = w.Stats(); err != nil || s.Interfaces[0].Repairs != 3 || s.Interfaces[0].Drift {
		t.Errorf("statistics %+v, %v, want three repairs and no drift", s.Interfaces, err)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// More happens than the listener can take in: it looks at everything again.
func TestALossOfNotificationsIsMadeUpFor(t *testing.T) {
	w := newWorld(t, "eth0")
	if err := unix.SetsockoptInt(w.listener.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1); err != nil {
		t.Fatal(err)
	}
	w.apply(egress("eth0", office(100*shaper.Mbit)))
	w.running()
	var flood strings.Builder
	for n := range 300 {
		fmt.Fprintf(&flood, "qdisc replace dev p-eth0 root pfifo limit %d\n", n+1)
	}
	file := t.TempDir() + "/batch"
	if err := os.WriteFile(file, []byte(flood.String()+"qdisc del dev eth0 root\n"+flood.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run("tc -batch " + file)
	w.until("the root qdisc is back", w.shaped("eth0", "htb"))
}
