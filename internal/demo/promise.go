package demo

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"shaperd/shaper"
)

// A promise is what the policy gives a class while certain classes have more to
// send than they get. Rates are in bits per second.
type promise struct {
	class    *shaper.Class
	quiet    bool    // it has nothing to send
	own      float64 // of its guarantee
	borrowed float64
	spare    float64 // what there was to borrow for the classes of its priority
}

// promises applies HTB's rules to a link whose classes are not nested and all
// have a guarantee: each class that sends has its guarantee; what is left of the
// link goes to those that have the lowest priority number, in proportion to
// their guarantees and up to their ceils, then to the next priority.
func promises(link shaper.Link, sends func(class string) bool) []promise {
	spare := float64(link.Rate)
	all := make([]promise, len(link.Classes))
	for i := range link.Classes {
		p := &all[i]
		p.class = &link.Classes[i]
		if p.quiet = !sends(p.class.Name); !p.quiet {
			p.own = float64(p.class.Rate)
			spare -= p.own
		}
	}
	for priority := range uint8(8) {
		var borrowers []*promise
		for i := range all {
			if p := &all[i]; !p.quiet && p.class.Priority == priority {
				p.spare = spare
				borrowers = append(borrowers, p)
			}
		}
		spare = lend(spare, borrowers)
	}
	return all
}

// lend shares spare among the borrowers and returns what they leave.
func lend(spare float64, borrowers []*promise) float64 {
	for len(borrowers) > 0 {
		weights := 0.0
		for _, p := range borrowers {
			weights += float64(p.class.Rate)
		}
		perWeight := spare / weights
		var wantMore []*promise
		for _, p := range borrowers {
			if p.room() > perWeight*float64(p.class.Rate) {
				wantMore = append(wantMore, p)
				continue
			}
			p.borrowed = p.room()
			spare -= p.borrowed
		}
		if len(wantMore) == len(borrowers) { // nobody reaches a ceil
			for _, p := range borrowers {
				p.borrowed = perWeight * float64(p.class.Rate)
			}
			return 0
		}
		borrowers = wantMore
	}
	return spare
}

// room is what the class may borrow at most.
func (p *promise) room() float64 {
	if p.class.Ceil == 0 {
		return math.Inf(1)
	}
	return float64(p.class.Ceil) - p.own
}

func (p *promise) total() float64 { return p.own + p.borrowed }

// reason says how the promise comes about, in mbit.
func (p *promise) reason() string {
	switch {
	case p.quiet:
		return "sends nothing"
	case p.borrowed == 0 && p.room() == 0:
		return inMbit(p.own) + " own = ceil"
	case p.borrowed == 0:
		return inMbit(p.own) + " own, nothing to borrow"
	case p.borrowed == p.room():
		return fmt.Sprintf("%s own + %s borrowed = ceil", inMbit(p.own), inMbit(p.borrowed))
	}
	return fmt.Sprintf("%s own + %s of %s spare", inMbit(p.own), inMbit(p.borrowed), inMbit(p.spare))
}

// inMbit writes a rate as briefly as one decimal allows: "45", "12.5".
func inMbit(rate float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(rate/1e6, 'f', 1, 64), ".0")
}
