package main

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// median returns the middle of a list, the upper one of two.
func median[T cmp.Ordered](list []T) T {
	list = slices.Clone(list)
	slices.Sort(list)
	return list[len(list)/2]
}

// An arrival is that of one packet, or of several at once that the kernel has kept together.
type arrival struct {
	at      time.Duration
	bytes   int // of all of them on the wire
	packets int
}

// spread is the standard deviation of the gaps between packets. There is none
// between those that come at once.
func spread(list []arrival) time.Duration {
	var gaps []float64
	for i := 1; i < len(list); i++ {
		for range list[i].packets - 1 {
			gaps = append(gaps, 0)
		}
		gaps = append(gaps, float64(list[i].at-list[i-1].at))
	}
	mean, square := 0., 0.
	for _, g := range gaps {
		mean += g / float64(len(gaps))
	}
	for _, g := range gaps {
		square += (g - mean) * (g - mean) / float64(len(gaps))
	}
	return time.Duration(math.Sqrt(square))
}

// busiest returns the most bytes that arrived within a time.
func busiest(list []arrival, length time.Duration) (most int) {
	sum, from := 0, 0
	for i := range list {
		sum += list[i].bytes
		for list[i].at-list[from].at >= length {
			sum -= list[from].bytes
			from++
		}
		most = max(most, sum)
	}
	return most
}
