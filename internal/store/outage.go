package store

import "fmt"

// An Outage is what a host does with what it shares while the server is away.
type Outage int

// Outages, in the words of the policy file.
const (
	OutageShare  Outage = iota // its fair share, as it was when the server was last heard of
	OutageMin                  // one percent of the rate, or the fair share if that is less
	OutageOpen                 // the whole rate, on every host
	OutageClosed               // nothing
)

var outages = [...]string{"share", "min", "open", "closed"}

// String returns the word of the policy file.
func (o Outage) String() string {
	if o < 0 || int(o) >= len(outages) {
		return fmt.Sprintf("Outage(%d)", int(o))
	}
	return outages[o]
}

// ParseOutage reads the word of the policy file.
func ParseOutage(s string) (Outage, error) {
	for i, word := range outages {
		if s == word {
			return Outage(i), nil
		}
	}
	return 0, fmt.Errorf("on_outage %q: share, min, open or closed is right", s)
}
