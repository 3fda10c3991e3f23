package lease

import (
	"fmt"
	"testing"
	"time"

	"shaperd/internal/store"
	"shaperd/shaper"
)

// TestTheSumNeverExceedsTheRate has hosts meet everything that happens to
// networks, clocks, Redis and daemons, and adds up what they may be using after
// each event.
func TestTheSumNeverExceedsTheRate(t *testing.T) {
	seeds := uint64(6)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 100*shaper.Mbit, seed)
			w.never()
			w.late, w.lost, w.copied, w.drifts = 3*time.Second, 0.1+0.2*float64(seed%3), 0.1, 0.005
			weight := func() float64 { return float64(1 + w.random.IntN(4)) }
			for range 2 + w.random.IntN(7) {
				w.add(weight(), store.OutageClosed, 0)
			}
			used := shaper.Rate(0)
			for range 400 {
				h := w.hosts[w.random.IntN(len(w.hosts))]
				switch n := w.random.IntN(40); {
				case h.dead:
					h.boot(weight(), store.OutageClosed)
				case n < 20:
					h.want([]shaper.Rate{0, shaper.Mbit, 10 * shaper.Mbit, 30 * shaper.Mbit, unlimited}[w.random.IntN(5)])
				case n < 22:
					h.die(w.random.IntN(2) == 0)
				case n == 22:
					w.redis.Do("DEL", w.key) // FLUSHALL, or a failover to a replica that has nothing
				case n == 23:
					w.down = true
				case n == 24:
					w.ahead += time.Duration(w.random.Int64N(int64(100 * time.Millisecond)))
				case n == 25:
					w.ahead -= time.Duration(w.random.Int64N(int64(10 * time.Second)))
				case n == 26:
					w.ahead += time.Hour
				default:
					w.down = false
				}
				w.run(time.Duration(w.random.Int64N(int64(600 * time.Millisecond))))
				used = max(used, w.used())
			}
			if used < 90*shaper.Mbit {
				t.Errorf("never more than %v in use: the test has shown nothing", used)
			}
			// And it recovers.
			w.down, w.lost, w.late, w.copied = false, 0, 0, 0
			for _, h := range w.hosts {
				if h.dead {
					h.boot(weight(), store.OutageClosed)
				}
				h.want(unlimited)
			}
			w.run(20 * time.Second) // old duplicates are still under way
			checkFair(t, w, "in the end")
			if w.used() < 97*shaper.Mbit {
				t.Errorf("%v in use in the end: %s", w.used(), w.shares())
			}
			t.Logf("%d hosts, %d calls of the script, %v of virtual time", len(w.hosts), w.calls, w.now)
		})
	}
}
