package measure

import (
	"math"
	"testing"
	"time"
)

func TestJain(t *testing.T) {
	if got := Jain([]float64{5, 5, 5, 5}); got != 1 {
		t.Errorf("Jain of equals: %v", got)
	}
	if got := Jain([]float64{1, 0, 0, 0}); got != 0.25 {
		t.Errorf("Jain of one that has all: %v", got)
	}
}

func TestRateAndBurstOfASteadyFlowAfterABurst(t *testing.T) {
	var list []Arrival
	list = append(list, Arrival{0, 5000, 0})
	for i := 1; i <= 1000; i++ { // 1000 bytes each ms
		list = append(list, Arrival{time.Duration(i) * time.Millisecond, 1000, i % 2})
	}
	rate, each := Rate(list, time.Second, 2)
	if math.Abs(rate-1e6) > 1 || each[0] != 500_000 || each[1] != 500_000 {
		t.Errorf("rate %v, each %v", rate, each)
	}
	if got := Burst(list, 0, 1e6); math.Abs(got-5000) > 1e-6 {
		t.Errorf("burst %v, want 5000", got)
	}
}
