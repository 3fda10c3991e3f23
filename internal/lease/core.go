package lease

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"shaperd/internal/store"
	"shaperd/shaper"
)

// looks is how often the traffic is observed in a period.
const looks = 4

// A core decides what is asked and what is in force, for all holders of a host.
// It does no I/O, and the time is a parameter: Run brings both, tests as well.
type core struct {
	o       Options
	lease   time.Duration
	margin  time.Duration // between the lease's end here and on the server
	epoch   string        // of this process's life
	created uint64        // holdings, to name them

	holdings map[Holder]*holding
	released []*store.Call // to be sent with the next round trip
	random   func() float64

	pace    pace
	sent    time.Time // the last round trip
	renew   time.Time // when the next one is wanted
	look    time.Time // when the traffic is to be observed
	renewed uint64    // round trips that were answered
	failed  uint64
	problem error // of the last round trip, or of Apply
	trip    time.Duration
}

func newCore(o Options, patience time.Duration) *core {
	lease := periods * o.Period
	return &core{
		o: o, lease: lease, margin: patience + lease/20, epoch: strconv.FormatUint(rand.Uint64(), 36),
		holdings: map[Holder]*holding{}, random: rand.Float64,
	}
}

// set says what is held. Leases of what stays are kept.
func (c *core) set(now time.Time, budgets []Budget) {
	kept := map[Holder]bool{}
	for _, b := range budgets {
		kept[b.Holder] = true
		if h := c.holdings[b.Holder]; h != nil {
			if h.budget != b {
				h.budget = b
				c.want(now)
			}
			continue
		}
		c.created++
		id := fmt.Sprintf("%s/%s/%s.%d", c.o.Host, b.Link, c.epoch, c.created)
		c.holdings[b.Holder] = &holding{budget: b, id: id}
		c.want(now)
	}
	for k, h := range c.holdings {
		if !kept[k] {
			c.release(h)
			delete(c.holdings, k)
		}
	}
}

func (c *core) release(h *holding) {
	if h.seq == 0 {
		return
	}
	r, _ := h.request(h.since.at, c.o.Weight, c.lease, c.o.OnOutage)
	r.release = true
	c.released = append(c.released, r.call(c.key(h)))
}

func (c *core) key(h *holding) string {
	return Key(c.o.Cluster, h.budget.Class, h.budget.Direction)
}

// want has the next round trip begin at a time, or before.
func (c *core) want(at time.Time) {
	if c.renew.IsZero() || at.Before(c.renew) {
		c.renew = at
	}
}

// observe takes note of the traffic.
func (c *core) observe(now time.Time, usage map[Holder]Usage) {
	c.look = now.Add(c.o.Period / looks)
	for k, h := range c.holdings {
		if h.observe(now, usage[k]) {
			c.want(now)
		}
	}
}

// changes returns the shares that ought to be in force and are not.
func (c *core) changes(now time.Time) map[Holder]shaper.Rate {
	var all map[Holder]shaper.Rate
	for k, h := range c.holdings {
		if r := h.due(now, c.o.OnOutage, c.lease); r != h.share || !h.applied {
			if all == nil {
				all = map[Holder]shaper.Rate{}
			}
			all[k] = r
		}
	}
	return all
}

// inForce takes note that the shares are. What others wait for is told them at once.
func (c *core) inForce(now time.Time, shares map[Holder]shaper.Rate) {
	for k, r := range shares {
		h := c.holdings[k]
		if r < h.share && h.leased(now) {
			c.want(now)
		}
		h.share, h.applied = r, true
	}
}

// due tells whether a round trip is to begin.
func (c *core) due(now time.Time) bool {
	return !now.Before(c.renew) && !now.Before(c.pace.ready()) && len(c.holdings)+len(c.released) > 0
}

// next is when something has to be done.
func (c *core) next(now time.Time) time.Time {
	at := c.look
	consider := func(t time.Time) {
		if t.Before(at) {
			at = t
		}
	}
	if len(c.holdings)+len(c.released) > 0 {
		if ready := c.pace.ready(); ready.After(c.renew) {
			consider(ready)
		} else {
			consider(c.renew)
		}
	}
	for _, h := range c.holdings {
		for _, t := range [...]time.Time{h.end, h.end.Add(c.lease)} {
			if h.answered > 0 && t.After(now) {
				consider(t)
			}
		}
	}
	return at
}

// A trip is one round trip under way.
type trip struct {
	sent     time.Time
	calls    []*store.Call // those that give back come first: others may have that at once
	holdings []*holding    // of the last calls
	until    []mark
}

// begin makes the requests of a round trip.
func (c *core) begin(now time.Time) *trip {
	c.pace.begin(now)
	c.sent = now
	c.renew = now.Add(c.o.Period - time.Duration(c.random()*float64(c.o.Period)/10)) // so that hosts do not ask all at once
	t := &trip{sent: now, calls: c.released}
	for _, h := range c.holdings {
		r, until := h.request(now, c.o.Weight, c.lease, c.o.OnOutage)
		t.calls = append(t.calls, r.call(c.key(h)))
		t.holdings, t.until = append(t.holdings, h), append(t.until, until)
	}
	if c.o.HostTime {
		for _, call := range t.calls {
			call.Args[timeArgument] = now.UnixMilli()
		}
	}
	c.released = nil
	return t
}

// finish takes the answers of a round trip.
func (c *core) finish(now time.Time, t *trip) {
	c.problem = nil
	renewals := t.calls[len(t.calls)-len(t.holdings):]
	for i, h := range t.holdings {
		a, err := answer{}, renewals[i].Err
		if err == nil {
			a, err = parse(renewals[i].Value)
		}
		if err != nil {
			h.failed, h.told = true, false
			if c.problem == nil { // of others it may only be that the connection has ended
				c.problem = err
			}
			continue
		}
		h.take(a, t.sent, c.margin, t.until[i])
		if a.again > 0 {
			c.want(t.sent.Add(a.again + c.o.Period/10)) // they have to apply it first
		}
	}
	if c.problem != nil {
		c.failed++
		c.want(t.sent.Add(c.o.Period / 2))
		return
	}
	c.renewed++
	c.trip = now.Sub(t.sent)
}
