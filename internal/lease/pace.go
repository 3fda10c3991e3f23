package lease

import "time"

// mostTrips is the number of round trips in any second.
const mostTrips = 4

// A pace keeps round trips to mostTrips a second.
type pace struct {
	trips [mostTrips]time.Time // the latest, around next
	next  int
}

// ready is when the next round trip may begin.
func (p *pace) ready() time.Time {
	if t := p.trips[p.next]; !t.IsZero() {
		return t.Add(time.Second)
	}
	return time.Time{}
}

func (p *pace) begin(now time.Time) {
	p.trips[p.next] = now
	p.next = (p.next + 1) % mostTrips
}
