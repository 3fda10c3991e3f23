package netlink

import (
	"context"
	"strings"
	"testing"
	"time"

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
