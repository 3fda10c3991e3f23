package measure

import (
	"cmp"
	"slices"
	"time"
)

// An Arrival is so many bytes of a connection at a time.
type Arrival struct {
	At    time.Duration // when the receiver had them
	After time.Duration // when they had not arrived yet: the receiver looked, and had all there was
	N     int
	Conn  int
}

// Rate returns the rate in bytes per second from the first arrival, which only
// starts the clock, to the last within span, and how many bytes each of conns
// connections got meanwhile. Fewer than two arrivals are no rate.
func Rate(list []Arrival, span time.Duration, conns int) (rate float64, each []float64) {
	each = make([]float64, conns)
	if len(list) < 2 {
		return 0, each
	}
	var total float64
	last := list[0].At
	for _, a := range list[1:] {
		if a.At > list[0].At+span {
			break
		}
		total += float64(a.N)
		each[a.Conn] += float64(a.N)
		last = a.At
	}
	if last == list[0].At {
		return 0, each
	}
	return total / (last - list[0].At).Seconds(), each
}

// Burst returns the most bytes that had arrived, at any time, above what rate
// (bytes per second) had earned since from: just before the first of them was
// sent. What comes late on its way makes it smaller, and nothing makes it larger.
func Burst(list []Arrival, from time.Duration, rate float64) (most float64) {
	var total float64
	for _, a := range list {
		total += float64(a.N)
		most = max(most, total-rate*(a.At-from).Seconds())
	}
	return most
}

// Most returns the most bytes that can be shown to have arrived within one window
// of a length: those that were not there when it began, and had been received
// when it ended. What a receiver notices late makes it smaller, and nothing
// makes it larger. The list is in order.
func Most(list []Arrival, window time.Duration) (most int64) {
	for _, first := range list {
		var n int64
		from := first.After
		i, _ := slices.BinarySearchFunc(list, from, func(a Arrival, t time.Duration) int { return cmp.Compare(a.At, t) })
		for ; i < len(list) && list[i].At <= from+window; i++ {
			if list[i].After >= from {
				n += int64(list[i].N)
			}
		}
		most = max(most, n)
	}
	return most
}

// Jain is Jain's fairness index: 1 when all are equal, 1/n when one has all.
func Jain(list []float64) float64 {
	var sum, squares float64
	for _, v := range list {
		sum += v
		squares += v * v
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (squares * float64(len(list)))
}
