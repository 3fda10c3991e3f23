package main

import (
	"math"
	"slices"
)

func median(list []float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	s := slices.Clone(list)
	slices.Sort(s)
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}
