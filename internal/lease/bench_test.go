package lease

import (
	"context"
	"fmt"
	"testing"

	"shaperd/internal/store"
)

// BenchmarkRenewal renews one lease of a budget with so many holders, all with
// traffic waiting: the round trip on the loopback included.
func BenchmarkRenewal(b *testing.B) {
	for _, holders := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("holders=%d", holders), func(b *testing.B) {
			s := newBench(b)
			s.learned(1e9)
			seq := uint64(0)
			one := func(i int) *store.Call {
				seq++
				c := request{id: fmt.Sprintf("r%d/relay web/3w5e11264sgsf.1", i), seq: seq, lease: testLease, rate: 1e9, version: 1.8e18,
					weight: 1, held: 1e9 / 100, demand: 1e9 / 100, waiting: true}.call(testKey)
				c.Args[timeArgument] = s.now
				return c
			}
			for i := range holders {
				if err := s.store.Do(context.Background(), one(i)); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if err := s.store.Do(context.Background(), one(0)); err != nil {
					b.Fatal(err)
				}
			}
			calls, usec := s.redis.Usage("evalsha")
			b.ReportMetric(usec/float64(calls), "server-µs/op")
		})
	}
}

// BenchmarkRoundTrip renews the leases of ten budgets in one pipeline.
func BenchmarkRoundTrip(b *testing.B) {
	s := newBench(b)
	seq := uint64(0)
	for b.Loop() {
		seq++
		var calls []*store.Call
		for i := range 10 {
			c := request{id: "r1/relay web/3w5e11264sgsf.1", seq: seq, lease: testLease, rate: 1e9, version: 1.8e18, weight: 1, waiting: true}.
				call(Key("edge", fmt.Sprint("class", i), "download"))
			calls = append(calls, c)
		}
		if err := s.store.Do(context.Background(), calls...); err != nil {
			b.Fatal(err)
		}
	}
}
