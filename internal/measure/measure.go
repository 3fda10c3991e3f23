package measure

import "time"

// An Arrival is so many bytes of a connection at a time.
type Arrival struct {
	At   time.Duration
	N    int
	Conn int
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
