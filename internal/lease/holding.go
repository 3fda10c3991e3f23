package lease

import (
	"time"

	"shaperd/internal/store"
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

	// Of the traffic:
	looks [recent]mark // the latest, oldest first
	since mark         // that the last answered request was made of
	told  bool         // the last request said that traffic waits,
	used  shaper.Rate  // or that so much is used
}

// recent is the number of looks that tell what the traffic does now: half a
// period passes between the first and the last of them.
const recent = looks/2 + 1

// A mark is what a look at the traffic saw.
type mark struct {
	at      time.Time
	bytes   uint64
	waiting bool
}

// rate is the mean from one mark to a later one.
func (m mark) rate(to mark) shaper.Rate {
	elapsed := to.at.Sub(m.at)
	if elapsed <= 0 || to.bytes < m.bytes {
		return 0
	}
	return shaper.Rate(float64(to.bytes-m.bytes) * 8 / elapsed.Seconds())
}

func (h *holding) leased(now time.Time) bool { return h.answered > 0 && now.Before(h.end) }

// due is the share that ought to be in force.
func (h *holding) due(now time.Time, o store.Outage, lease time.Duration) shaper.Rate {
	switch {
	case h.leased(now):
		return h.answer.grant
	case h.answered == 0 && !h.failed:
		return 0 // Redis has not been asked yet
	}
	var r shaper.Rate
	switch o {
	case store.OutageOpen:
		return h.budget.Rate
	case store.OutageShare:
		r = h.fair()
	case store.OutageMin:
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
// once: traffic waits that the last request did not tell of, while the share is
// less than the fair one; or much of what it told of has ended, and others may
// have that.
func (h *holding) observe(now time.Time, u Usage) (urgent bool) {
	look := mark{now, u.Bytes, u.Waiting}
	if h.since.at.IsZero() || u.Bytes < h.latest().bytes { // at first, or the counter began anew
		h.looks, h.since = [recent]mark{look, look, look}, look
	}
	copy(h.looks[:], h.looks[1:])
	h.looks[recent-1] = look
	if u.Waiting {
		return !h.told && h.share < h.fair()
	}
	if h.answer.flags&flagWanted == 0 || h.waiting() {
		return false
	}
	before := h.used
	if h.told {
		before = h.share
	}
	falling := h.looks[recent-2].rate(look) < h.looks[0].rate(look)*7/8 // one request says where it ends
	return !falling && h.demand() < before*7/8 && before > h.rate()/floor
}

func (h *holding) latest() mark { return h.looks[recent-1] }

// waiting tells whether traffic waits, or did recently.
func (h *holding) waiting() bool {
	return h.looks[recent-1].waiting || h.looks[recent-2].waiting
}

// demand is the mean rate since the last answered request, or what it is by now
// if that is more, or much less.
func (h *holding) demand() shaper.Rate {
	mean, now := h.since.rate(h.latest()), h.looks[0].rate(h.latest())
	if now < mean*7/8 {
		return now
	}
	return max(mean, now)
}

// request says what the holder has and wants; until is what it was made of.
func (h *holding) request(now time.Time, weight float64, lease time.Duration, o store.Outage) (r request, until mark) {
	h.seq++
	h.told, h.used = h.waiting(), h.demand()
	r = request{
		id: h.id, seq: h.seq, lease: lease, rate: h.budget.Rate, version: h.budget.Version, weight: weight,
		held: h.share, claim: h.share, demand: h.used, waiting: h.told,
	}
	switch {
	case h.leased(now):
		r.answered = h.answered
	case o == store.OutageOpen:
		r.claim = min(h.share, h.fair())
	}
	return r, h.latest()
}

// take takes the answer to the last request, which was sent at a time.
func (h *holding) take(a answer, sent time.Time, margin time.Duration, until mark) {
	h.answered, h.answer, h.failed = h.seq, a, false
	h.end = sent.Add(a.valid - margin)
	h.since = until
}
