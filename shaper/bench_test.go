package shaper_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/juju/ratelimit"
	"golang.org/x/time/rate"

	"shaperd/shaper"
)

const (
	benchRate   = 400 * shaper.Gbit
	benchBurst  = 64 * shaper.MiB
	benchPacket = 1000
)

// contenders are token buckets of one rate and burst, asked for a packet's bytes at the time of the call.
var contenders = []struct {
	name string
	make func(shaper.Rate) (allow func() bool)
}{
	{"shaperd", func(r shaper.Rate) func() bool {
		b := shaper.NewTokenBucket(r, benchBurst)
		return func() bool { return b.Allow(benchPacket) }
	}},
	{"xtimerate", func(r shaper.Rate) func() bool {
		l := rate.NewLimiter(rate.Limit(r/8), int(benchBurst))
		return func() bool { return l.AllowN(time.Now(), benchPacket) }
	}},
	{"juju", func(r shaper.Rate) func() bool {
		b := ratelimit.NewBucketWithRate(float64(r/8), int64(benchBurst))
		return func() bool { return b.TakeAvailable(benchPacket) == benchPacket }
	}},
}

// BenchmarkTokenBucketAllow measures one decision, the reading of the clock included, at a rate that grants
// nearly all. The contenders take turns, so that whatever else the machine does hits each of them.
func BenchmarkTokenBucketAllow(b *testing.B) { benchmarkAllow(b, benchRate) }

// BenchmarkTokenBucketRefuse is the same at a rate that refuses nearly all.
func BenchmarkTokenBucketRefuse(b *testing.B) { benchmarkAllow(b, 8*shaper.Kbit) }

func benchmarkAllow(b *testing.B, r shaper.Rate) {
	for _, goroutines := range []int{1, 2, 8} {
		for _, c := range contenders {
			b.Run(fmt.Sprintf("%s/goroutines=%d", c.name, goroutines), func(b *testing.B) {
				allow := c.make(r)
				var granted atomic.Int64
				var wg sync.WaitGroup
				b.ReportAllocs()
				for g := range goroutines {
					wg.Go(func() {
						var n int64
						for i := g; i < b.N; i += goroutines {
							if allow() {
								n++
							}
						}
						granted.Add(n)
					})
				}
				wg.Wait()
				b.ReportMetric(100*float64(granted.Load())/float64(b.N), "%granted")
			})
		}
	}
}
