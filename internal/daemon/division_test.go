package daemon

import (
	"math"
	"testing"

	"shaperd/conn"
	"shaperd/internal/lease"
)

func TestLoopsDivideAShareByNeed(t *testing.T) {
	waits, needs := func(has float64) need { return need{has: has, used: has, waiting: true} }, func(has, used float64) need { return need{has: has, used: used} }
	for _, tt := range []struct {
		name  string
		needs []need
		want  []float64 // nil for no change
	}{
		{"alone", []need{waits(100)}, nil},
		{"nothing to divide", []need{needs(0, 0), waits(0)}, nil},
		{"both wait", []need{waits(90), waits(10)}, []float64{.5, .5}},
		{"one is idle", []need{waits(50), needs(50, 0)}, []float64{.98, .02}},
		{"it stays", []need{waits(98), needs(2, 0)}, nil},
		{"it wakes up", []need{waits(98), waits(2)}, []float64{.5, .5}},
		{"one needs some", []need{needs(50, 20), waits(50)}, []float64{.23, .77}},
		{"a little more is no reason", []need{needs(23, 22), waits(77)}, nil},
		{"both are idle", []need{needs(90, 0), needs(10, 0)}, []float64{.5, .5}},
		{"three", []need{needs(10, 0), waits(10), waits(80)}, []float64{.02, .49, .49}},
	} {
		got, all := division{}, map[source]need{}
		sources := make([]source, len(tt.needs))
		for i, n := range tt.needs {
			sources[i] = source{lease.Holder{Class: "web"}, new(conn.Relay)}
			all[sources[i]] = n
		}
		got.divide(all)
		if len(got) != len(tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
			continue
		}
		for i, want := range tt.want {
			if math.Abs(got[sources[i]]-want) > 1e-9 {
				t.Errorf("%s: loop %d has %v, want %v", tt.name, i, got[sources[i]], want)
			}
		}
	}
}
