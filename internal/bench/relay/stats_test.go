package main

import (
	"math"
	"testing"
	"time"
)

func TestMedianAndJain(t *testing.T) {
	if got := median([]float64{3, 1, 2}); got != 2 {
		t.Errorf("median of three: %v", got)
	}
	if got := median([]float64{4, 1, 2, 3}); got != 2.5 {
		t.Errorf("median of four: %v", got)
	}
	if got := jain([]float64{5, 5, 5, 5}); got != 1 {
		t.Errorf("Jain of equals: %v", got)
	}
	if got := jain([]float64{1, 0, 0, 0}); got != 0.25 {
		t.Errorf("Jain of one that has all: %v", got)
	}
}

func TestRateAndBurstOfASteadyFlowAfterABurst(t *testing.T) {
	var list []arrival
	list = append(list, arrival{0, 5000, 0})
	for i := 1; i <= 1000; i++ { // 1000 bytes each ms
		list = append(list, arrival{time.Duration(i) * time.Millisecond, 1000, i % 2})
	}
	rate, each := rateOf(list, time.Second, 2)
	if math.Abs(rate-1e6) > 1 || each[0] != 500_000 || each[1] != 500_000 {
		t.Errorf("rate %v, each %v", rate, each)
	}
	if got := burstOf(list, 1e6); math.Abs(got-5000) > 1e-6 {
		t.Errorf("burst %v, want 5000", got)
	}
}
