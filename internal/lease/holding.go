package lease

import (
	"time"

	"shaperd/shaper"
)

// floor is a hundredth: what an idle holder keeps, and one that knows nothing of
// the others begins with.
const floor = 100

// A holding is this host's side of one lease. The time is a parameter.
type holding struct {
	budget Budget
	id     string

	share   shaper.Rate // in force
	applied bool        // a share was ever put into force

	// Of the last answer:
	answered uint64 // its sequence number; 0 for none yet
	end      time.Time
	answer   answer
	failed   bool // the last request was not answered

	seq uint64 // of the last request

	// Of the traffic since the last answered request:
	bytes, counted uint64 // now, and then
	since          time.Time
	waited         bool
	waits          bool // at the last look
	told           bool // the last request said that it waits
}

// A usage of the time between two requests, to be subtracted when the later one
// is answered.
type reported struct {
	bytes uint64
	at    time.Time
}

func (h *holding) leased(now time.Time) bool { return h.answered > 0 && now.Before(h.end) }

// due is the share that ought to be in force.
func (h *holding) due(now time.Time, o Outage, lease time.Duration) shaper.Rate {
	switch {
	case h.leased(now):
		return h.answer.grant
	case h.answered == 0 && !h.failed:
		return 0 // Redis has not been asked yet
	}
	var r shaper.Rate
	switch o {
	case Open:
		return h.budget.Rate
	case Share:
		r = h.fair()
	case Min:
		r = min(h.fair(), h.rate()/floor)
	}
	if h.answered > 0 && now.Before(h.end.Add(lease)) {
		return min(r, h.answer.grant) // until all others' leases have ended too
	}
	return r
}

// rate is the cluster's, as far as this host knows.
func (h *holding) rate() shaper.Rate {
	if h.answered > 0 && h.answer.version >= h.budget.Version {
		return h.answer.rate
	}
	return h.budget.Rate
}

// fair is the share of the rate that it has when all hosts have traffic waiting;
// the floor as long as it knows of no others.
func (h *holding) fair() shaper.Rate {
	if h.answered == 0 || h.answer.rate == 0 {
		return h.budget.Rate / floor
	}
	return shaper.Rate(float64(h.rate()) * (float64(h.answer.fair) / float64(h.answer.rate)))
}

// observe takes note of the traffic. It tells whether that is reason to renew at
// once: traffic waits that the last request did not tell of, and the share is
// less than the fair one.
func (h *holding) observe(now time.Time, u Usage) (urgent bool) {
	if h.since.IsZero() || u.Bytes < h.counted { // at first, or the counter began anew
		h.counted, h.since = u.Bytes, now
	}
	h.bytes, h.waits = u.Bytes, u.Waiting
	h.waited = h.waited || u.Waiting
	return u.Waiting && !h.told && h.share < h.fair()
}

// request says what the holder has and wants.
func (h *holding) request(now time.Time, weight float64, lease time.Duration, o Outage) (request, reported) {
	h.seq++
	r := request{
		id: h.id, seq: h.seq, lease: lease, rate: h.budget.Rate, version: h.budget.Version, weight: weight,
		held: h.share, claim: h.share, waiting: h.waited,
	}
	switch {
	case h.leased(now):
		r.answered = h.answered
	case o == Open:
		r.claim = min(h.share, h.fair())
	}
	if elapsed := now.Sub(h.since); elapsed > 0 {
		r.demand = shaper.Rate(float64(h.bytes-h.counted) * 8 / elapsed.Seconds())
	}
	h.told = h.waited
	return r, reported{h.bytes, now}
}

// take takes the answer to the last request, which was sent at a time.
func (h *holding) take(a answer, sent time.Time, margin time.Duration, rep reported) {
	h.answered, h.answer, h.failed = h.seq, a, false
	h.end = sent.Add(a.valid - margin)
	h.counted, h.since, h.waited = rep.bytes, rep.at, h.waits
}
