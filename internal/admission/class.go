package admission

import (
	"errors"
	"fmt"
	"math"
	"time"

	"shaperd/internal/store"
	"shaperd/shaper"
)

// A Unit is what a class counts.
type Unit uint8

// Units.
const (
	AnyUnit  Unit = iota // in a Request: that of the class
	Bytes                // of what is sent
	Requests             // each costs 1, or what the caller says
)

func (u Unit) String() string {
	if u == Requests {
		return "requests"
	}
	return "bytes"
}

// minPart is the part of the rate that OutageMin leaves. All but OutageClosed decide from a bucket
// of this host's own, which starts with the same part of the burst and may hold all of it.
const minPart = 0.01

// DefaultKeys is how many keys a class remembers where Class.Keys is 0.
const DefaultKeys = 1 << 16

// A Class is one bucket, and one more for each key.
type Class struct {
	Name     string
	Rate     shaper.Rate  // bits per second that are earned
	Burst    shaper.Size  // bytes that the bucket holds
	Requests RequestLimit // in the place of Rate and Burst, of a class that counts requests
	Keys     int          // remembered at once; 0 is DefaultKeys
	Shared   bool         // with the other hosts of the store
	OnOutage store.Outage // of a shared class
}

// A RequestLimit is how many requests a class earns and holds. 100 a second
// are 360,000 an hour.
type RequestLimit struct{ PerHour, Burst int64 }

// tokensPerRequest makes whole numbers of all: a request an hour is a token a second.
const tokensPerRequest = 3600

// maxTokens bounds bursts and rates, of which nobody needs more: eight times as much,
// in bits, is exact in a script's numbers, which have 53 bits, with a second's worth on top.
const maxTokens = min(1<<48, math.MaxInt)

// limits are a class's in tokens. A byte is one token.
type limits struct {
	unit  Unit
	each  int64 // tokens of one byte or request
	rate  shaper.Rate
	burst shaper.Size // tokens
}

func (c *Class) limits() (limits, error) {
	switch r := c.Requests; {
	case c.Name == "":
		return limits{}, errors.New("a class has no name")
	case r == RequestLimit{}:
		if c.Rate <= 0 || c.Burst <= 0 {
			return limits{}, fmt.Errorf("class %q: rate %v and burst %v: both have to be above zero", c.Name, c.Rate, c.Burst)
		}
		return limits{Bytes, 1, min(c.Rate, 8*maxTokens), min(c.Burst, maxTokens)}, nil
	case c.Rate != 0 || c.Burst != 0:
		return limits{}, fmt.Errorf("class %q counts requests and has a rate or burst in bytes too", c.Name)
	case r.PerHour <= 0 || r.Burst <= 0:
		return limits{}, fmt.Errorf("class %q: %d requests an hour and a burst of %d: both have to be above zero", c.Name, r.PerHour, r.Burst)
	default:
		perHour, burst := min(r.PerHour, maxTokens), min(r.Burst, maxTokens/tokensPerRequest)
		return limits{Requests, tokensPerRequest, shaper.Rate(8 * perHour), shaper.Size(burst * tokensPerRequest)}, nil
	}
}

// part is a part of the limits, but at least one byte or request at once.
func (l limits) part(f float64) limits {
	if f < 1 {
		l.rate = max(shaper.Rate(float64(l.rate)*f), 1)
		l.burst = max(shaper.Size(float64(l.burst)*f), shaper.Size(l.each))
	}
	return l
}

// window is how long an empty bucket takes to fill, rounded up to whole seconds.
func (l limits) window() time.Duration {
	bits := 8 * int64(l.burst)
	seconds := bits / int64(l.rate)
	if bits%int64(l.rate) != 0 {
		seconds++
	}
	return time.Duration(min(seconds, math.MaxInt64/int64(time.Second))) * time.Second
}
