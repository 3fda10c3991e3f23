package conn

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestTimersComeInOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	var h timers
	want := map[*session]time.Duration{}
	list := make([]*session, 200)
	for i := range list {
		list[i] = &session{timer: -1}
	}
	now := time.Duration(0)
	for range 20_000 {
		s := list[rng.IntN(len(list))]
		switch rng.IntN(4) {
		case 0:
			h.disarm(s)
			delete(want, s)
		case 1:
			now += time.Duration(rng.IntN(20))
			for s := h.expired(now); s != nil; s = h.expired(now) {
				if at, armed := want[s]; !armed || at > now {
					t.Fatalf("expired at %v, armed for %v (%v)", now, at, armed)
				}
				delete(want, s)
			}
			for _, at := range want {
				if at <= now {
					t.Fatalf("a timer for %v has not come at %v", at, now)
				}
			}
		default:
			at := now + 1 + time.Duration(rng.IntN(1000))
			h.arm(s, at)
			if old, armed := want[s]; !armed || at < old {
				want[s] = at
			}
		}
		if len(h) != len(want) {
			t.Fatalf("%d timers, want %d", len(h), len(want))
		}
	}
}
