package main

import (
	"math"
	"slices"
	"time"
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

// jain is Jain's fairness index: 1 when all are equal, 1/n when one has all.
func jain(list []float64) float64 {
	var sum, squares float64
	for _, v := range list {
		sum += v
		squares += v * v
	}
	return sum * sum / (squares * float64(len(list)))
}

// An arrival is so many bytes of a connection at a time.
type arrival struct {
	at   time.Duration
	n    int
	conn int
}

// rateOf is the rate in bytes per second from the first arrival, which only
// starts the clock, to the last within span; and what each connection got.
func rateOf(list []arrival, span time.Duration, conns int) (rate float64, each []float64) {
	each = make([]float64, conns)
	var total float64
	last := list[0].at
	for _, a := range list[1:] {
		if a.at > list[0].at+span {
			break
		}
		total += float64(a.n)
		each[a.conn] += float64(a.n)
		last = a.at
	}
	return total / (last - list[0].at).Seconds(), each
}

// burstOf is the most that arrived, from the first arrival on, above what the rate (bytes per second) earned since.
func burstOf(list []arrival, rate float64) (most float64) {
	var total float64
	for _, a := range list {
		total += float64(a.n)
		most = max(most, total-rate*(a.at-list[0].at).Seconds())
	}
	return most
}
