package admin

// Shared is how this host shares the budgets of classes with others.
type Shared struct {
	Cluster     string  `json:"cluster"`
	Host        string  `json:"host"`              // this one's name in it
	Problem     string  `json:"problem,omitempty"` // of the Redis
	OnOutage    string  `json:"on_outage"`
	RoundTripMs float64 `json:"round_trip_ms"` // of the last renewal
	Renewals    uint64  `json:"renewals"`
	Failures    uint64  `json:"failures"` // of renewals
	Shares      []Share `json:"shares"`
}

// Share is a shared class on one link of this host. Rates are in bits per second.
type Share struct {
	Class        string  `json:"class"`
	Link         string  `json:"link"`
	Rate         int64   `json:"rate"`         // that this host may send now
	Budget       int64   `json:"budget"`       // of all hosts together, as the cluster has it
	Holders      int     `json:"holders"`      // of the budget: links of this host and of others; 0 until Redis has answered
	State        string  `json:"state"`        // leased, learning or outage
	Seconds      float64 `json:"seconds_left"` // of the lease
	Disagreement bool    `json:"disagreement"` // this host's policy has another rate than the cluster's newest
}

// Of returns the share of a class on a link; nil where it is not shared.
func (s *Shared) Of(link, class string) *Share {
	if s == nil {
		return nil
	}
	for i := range s.Shares {
		if one := &s.Shares[i]; one.Link == link && one.Class == class {
			return one
		}
	}
	return nil
}

// Part is the rate that a class on the link has of the share: all of it, or of two
// relays of a name, one of which drains, a part. It may be nothing, and no class's
// rate is.
func (s *Share) Part(c *Class) int64 { return min(s.Rate, c.Rate) }

// Admission is what programs asked of a class.
type Admission struct {
	Class    string `json:"class"`
	Unit     string `json:"unit"`               // bytes or requests
	Rate     int64  `json:"rate,omitempty"`     // of unit bytes: bits per second
	PerHour  int64  `json:"per_hour,omitempty"` // of unit requests
	Burst    int64  `json:"burst"`              // bytes or requests
	Shared   bool   `json:"shared"`             // with other hosts
	Granted  uint64 `json:"granted"`            // takes, as those that follow
	Refused  uint64 `json:"refused"`            // there was not enough
	TooLarge uint64 `json:"too_large"`          // they asked for more than the burst
	Outage   uint64 `json:"outage"`             // the Redis was away, and on_outage is closed
	Keys     int    `json:"keys"`               // with a bucket of their own on this host
	Waiting  int    `json:"waiting"`
}
