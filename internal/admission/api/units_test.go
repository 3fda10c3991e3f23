package api

import (
	"math"
	"testing"
	"time"
)

func TestTimesAreRoundedUp(t *testing.T) {
	for _, tt := range []struct {
		d, unit time.Duration
		want    int64
	}{
		{0, time.Second, 0}, {1, time.Second, 1}, {time.Second, time.Second, 1}, {time.Second + 1, time.Second, 2},
		{math.MaxInt64, time.Second, 9_223_372_037}, {math.MaxInt64, time.Millisecond, 9_223_372_036_855}, {math.MaxInt64 - 1, 1, math.MaxInt64 - 1},
	} {
		if got := up(tt.d, tt.unit); got != tt.want {
			t.Errorf("%d in %v: %d, want %d", tt.d, tt.unit, got, tt.want)
		}
	}
}
