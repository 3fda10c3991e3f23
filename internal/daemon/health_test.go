package daemon

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"shaperd/netlink"
)

func TestWhatDoesNotRespondIsNamed(t *testing.T) {
	hang := make(chan struct{})
	asked := 0
	parts := func() []part {
		return []part{{"one", func() {}}, {"two", func() { asked++; <-hang }}, {"three", func() {}}}
	}
	var p pulse
	for range 3 {
		if err := p.check(t.Context(), time.Millisecond, parts); err == nil || !strings.HasSuffix(err.Error(), "does not respond") {
			t.Fatalf("check = %v", err)
		}
	}
	p.mu.Lock()
	r := p.round
	p.mu.Unlock()
	close(hang)
	<-r.ended
	if asked != 1 {
		t.Errorf("a part that hangs was asked %d times", asked)
	}
	if err := p.check(t.Context(), time.Minute, parts); err != nil || asked != 2 {
		t.Errorf("check = %v after it woke, asked %d times", err, asked)
	}

	woken := make(chan struct{})
	defer close(woken)
	ctx, cancel := context.WithCancel(t.Context())
	err := p.check(ctx, time.Minute, func() []part {
		return []part{{"one", func() {}}, {"two", func() { cancel(); <-woken }}}
	})
	if err == nil || err.Error() != "two does not respond" {
		t.Errorf("check = %v, want that two does not respond", err)
	}
}

func TestReadyOnlyWhileServing(t *testing.T) {
	for p, want := range map[phase]string{starting: "starting", serving: "", draining: "draining"} {
		got := ""
		if err := p.ready(t.Context()); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("phase %d: %q, want %q", p, got, want)
		}
	}
}

func TestKernelThatHasEndedIsNoReadError(t *testing.T) {
	path, err := netlink.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	path.Close()
	d := daemon{Options: Options{Log: slog.New(slog.DiscardHandler)}}
	d.shaping.Store(&kernel{Datapath: path})
	d.readErrors.Store(3) // of before
	if m := d.kernelSnapshot(); m.ReadErrors != 3 || len(m.Interfaces) != 0 {
		t.Errorf("snapshot %+v", m)
	}
}
