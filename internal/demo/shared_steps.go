package demo

import (
	"math"
	"time"
)

// A sharedStep is a time in which the relays' clients want the same.
type sharedStep struct {
	name, label    string // the label is for where there is little room
	text           string
	wants          [relays]float64 // what each relay's clients want, in bits per second
	redis          fate
	settle, length time.Duration // until shares are measured, and how long they are
}

// relays is how many hosts there are.
const relays = 3

// A fate is what befalls the Redis at the beginning of a step.
type fate int

const (
	stays fate = iota
	dies
	returns // with nothing in it
)

// all is more than there is.
var all = math.Inf(1)

// A host that wants more has its share within two renewals, a second; a Redis
// that knows nothing first learns for two seconds.
var sharedSteps = []sharedStep{
	{
		"one alone", "one",
		"Only the clients of relay1 want something: it may use the whole rate.",
		[relays]float64{all, 0, 0}, stays, 1500 * time.Millisecond, 2500 * time.Millisecond,
	},
	{
		"all want all", "all",
		"The clients of the others begin. Within two renewals, one second, each relay has a third.",
		[relays]float64{all, all, all}, stays, 1500 * time.Millisecond, 3 * time.Second,
	},
	{
		"one wants 4", "4 mbit",
		"The server behind relay1 sends 4 mbit only. What relay1 does not need, the others share.",
		[relays]float64{4e6, all, all}, stays, 1500 * time.Millisecond, 3 * time.Second,
	},
	{
		"no Redis", "away",
		"The Redis is killed, then relay1 falls silent. Nobody can tell the others: they keep the shares that they had, and no more.",
		[relays]float64{0, all, all}, dies, 1500 * time.Millisecond, 3 * time.Second,
	},
	{
		"Redis is back", "back",
		"A new Redis knows nothing. For two seconds it learns who has what; then the others share what relay1 has left.",
		[relays]float64{0, all, all}, returns, 4 * time.Second, 3 * time.Second,
	},
}

// A sharer says what share of a rate each relay is promised in a step.
type sharer func(rate float64, steps []sharedStep, step int) []float64

// promisedShares divides the rate by demand. While there is no Redis, a relay has
// what it had before, at most.
func promisedShares(rate float64, steps []sharedStep, step int) []float64 {
	s := &steps[step]
	if s.redis != dies {
		return divide(rate, s.wants[:])
	}
	shares := promisedShares(rate, steps, step-1)
	for i := range shares {
		shares[i] = min(shares[i], s.wants[i])
	}
	return shares
}

// divide gives each what it wants; if that is too much, those who want more than
// the others' rest allows get equal parts of it.
func divide(rate float64, wants []float64) []float64 {
	shares := make([]float64, len(wants))
	given := make([]bool, len(wants))
	for left := len(wants); left > 0; {
		part, satisfied := rate/float64(left), false
		for i, want := range wants {
			if !given[i] && want <= part {
				shares[i], given[i], satisfied = want, true, true
				rate -= want
				left--
			}
		}
		if satisfied {
			continue
		}
		for i := range wants {
			if !given[i] {
				shares[i] = part
			}
		}
		break
	}
	return shares
}
