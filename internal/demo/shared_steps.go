package demo

import (
	"cmp"
	"math"
	"slices"
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
// that knows nothing first learns for two seconds, and hosts have to find it.
var sharedSteps = []sharedStep{
	{
		"one alone", "one",
		"A new Redis first learns for two seconds who has what. Only the clients of relay1 want something: it has nearly all of the rate.",
		[relays]float64{all, 0, 0}, stays, 3 * time.Second, 2 * time.Second,
	},
	{
		"one wants 4", "4 mbit",
		"The server behind relay1 sends 4 mbit only. The clients of the others begin, and share what relay1 does not need, within a second.",
		[relays]float64{4e6, all, all}, stays, 1500 * time.Millisecond, 3 * time.Second,
	},
	{
		"all want all", "all",
		"The server behind relay1 sends all it can again: each relay has a third of the rate.",
		[relays]float64{all, all, all}, stays, 1500 * time.Millisecond, 2500 * time.Millisecond,
	},
	{
		"no Redis", "away",
		"The Redis is killed, then relay1 falls silent. Nobody can tell the others: they keep their thirds, and have no more.",
		[relays]float64{0, all, all}, dies, 1500 * time.Millisecond, 3 * time.Second,
	},
	{
		"Redis is back", "back",
		"A Redis is there again, with nothing in it. It learns for two seconds; then the others share what relay1 has left.",
		[relays]float64{0, all, all}, returns, 4500 * time.Millisecond, 2500 * time.Millisecond,
	},
}

// A sharer says what share of a rate each relay is promised in a step.
type sharer func(rate float64, step *sharedStep) []float64

// promisedShares divides the rate by demand. While there is no Redis, a relay has
// its fair part at most, which is what it has when all want all.
func promisedShares(rate float64, step *sharedStep) []float64 {
	if step.redis != dies {
		return divide(rate, step.wants[:])
	}
	shares := make([]float64, relays)
	for i, wants := range step.wants {
		shares[i] = min(rate/relays, wants)
	}
	return shares
}

// divide gives each what it wants, and those who want more than that leaves equal
// parts of the rest.
func divide(rate float64, wants []float64) []float64 {
	shares := make([]float64, len(wants))
	order := make([]int, len(wants)) // who wants least comes first
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(wants[a], wants[b]) })
	for n, i := range order {
		shares[i] = min(wants[i], rate/float64(len(order)-n))
		rate -= shares[i]
	}
	return shares
}
