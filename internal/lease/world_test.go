package lease

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"shaperd/internal/store"
	"shaperd/internal/store/storetest"
	"shaperd/shaper"
)

// A world is hosts, and the network between them and one real Redis, in virtual
// time: the script is told the time.
type world struct {
	t      testing.TB
	redis  *storetest.Server
	store  *store.Store
	random *rand.Rand
	now    time.Duration // since the beginning
	events events
	count  int
	hosts  []*host
	key    string

	// Of the network and the server:
	delay, late  time.Duration // of a message at most; of one in ten
	lost, copied float64       // probabilities
	ahead        time.Duration // the server's clock
	down         bool
	drifts       float64 // of hosts' clocks, at most
	calls        int

	rate shaper.Rate
	most shaper.Rate // used together, ever
	each func()      // after each event
}

// A host runs a core as Client.turn does.
type host struct {
	w      *world
	name   string
	core   *core
	holder Holder
	budget Budget
	drift  float64
	skew   time.Duration
	busy   bool
	dead   bool
	cut    bool // from Redis

	demand  shaper.Rate
	using   shaper.Rate // at most, at this moment
	bytes   float64
	counted time.Duration // bytes until then
	waited  bool
	trips   []time.Duration // begun
}

var epoch = time.Unix(1_800_000_000, 0)

const testPatience = store.DefaultTimeout

func newWorld(t testing.TB, rate shaper.Rate, seed uint64) *world {
	t.Helper()
	r := storetest.Start(t)
	s, err := store.New(store.Options{Addrs: []string{r.Addr()}, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	t.Logf("seed %d", seed)
	return &world{
		t: t, redis: r, store: s, random: rand.New(rand.NewPCG(seed, 0)), rate: rate, delay: 2 * time.Millisecond,
		key: Key("edge", "web", "download"), each: func() {},
	}
}

func (w *world) add(weight float64, o store.Outage, demand shaper.Rate) *host {
	h := &host{w: w, name: fmt.Sprintf("r%d", len(w.hosts)+1), demand: demand, holder: Holder{"web", "download", "relay web"}}
	h.drift = (2*w.random.Float64() - 1) * w.drifts
	h.skew = time.Duration(w.random.Int64N(int64(1000 * time.Hour)))
	h.budget = Budget{Holder: h.holder, Rate: w.rate, Version: 1}
	h.boot(weight, o)
	w.hosts = append(w.hosts, h)
	return h
}

// boot starts the daemon of a host.
func (h *host) boot(weight float64, o store.Outage) {
	options := Options{Cluster: "edge", Host: h.name, Weight: weight, Period: DefaultPeriod, OnOutage: o}
	h.core = newCore(options, testPatience)
	h.core.random = h.w.random.Float64
	h.core.epoch = fmt.Sprint(h.w.random.Uint64())
	h.core.set(h.clock(), []Budget{h.budget})
	h.busy, h.dead = false, false
	h.turn()
}

// die ends the daemon, and with it the traffic.
func (h *host) die(gracefully bool) {
	h.account()
	h.dead, h.using = true, 0
	if gracefully {
		h.core.set(h.clock(), nil)
		h.w.send(h.core.begin(h.clock()))
	}
	h.core = nil
}

// clock is the host's own time, which nobody else shares.
func (h *host) clock() time.Time {
	return epoch.Add(h.skew + h.w.now + time.Duration(float64(h.w.now)*h.drift))
}

// account counts the traffic until now.
func (h *host) account() {
	h.bytes += float64(min(h.using, h.demand)) / 8 * (h.w.now - h.counted).Seconds()
	h.counted = h.w.now
	h.waited = h.waited || h.demand > h.using
}

func (h *host) want(demand shaper.Rate) {
	h.account()
	h.demand = demand
	h.account()
}

// turn is Client.turn, whose calls that block are events.
func (h *host) turn() {
	if h.busy || h.dead {
		return
	}
	h.apply(func() {
		h.account()
		h.core.observe(h.clock(), map[Holder]Usage{h.holder: {Bytes: uint64(h.bytes), Waiting: h.waited}})
		h.waited = h.demand > h.using
		if !h.core.due(h.clock()) {
			h.wait()
			return
		}
		t := h.core.begin(h.clock())
		h.trips = append(h.trips, h.w.now)
		core := h.core
		h.busy = true
		done := func(err error) {
			if t == nil || h.core != core {
				return
			}
			for _, c := range t.calls {
				if err != nil {
					c.Err = err
				}
			}
			core.finish(h.clock(), t)
			t, h.busy = nil, false
			h.apply(h.wait)
		}
		answered := time.Duration(-1)
		if !h.cut {
			answered = h.w.send(t)
		}
		if answered < 0 || answered > testPatience {
			h.w.after(testPatience, func() { done(errors.New("no answer")) })
		} else {
			h.w.after(answered, func() { done(nil) })
		}
	})
}

func (h *host) wait() {
	core := h.core
	local := h.core.next(h.clock()).Sub(h.clock())
	h.w.after(max(local, time.Microsecond), func() {
		if h.core == core {
			h.turn()
		}
	})
}

// apply puts shares into force, which takes up to 10 ms, and goes on then.
func (h *host) apply(then func()) {
	shares := h.core.changes(h.clock())
	if shares == nil {
		then()
		return
	}
	core := h.core
	h.account()
	h.using = max(h.using, shares[h.holder])
	h.busy = true
	h.w.after(time.Duration(h.w.random.Int64N(int64(10*time.Millisecond))), func() {
		if h.core != core {
			return
		}
		h.account()
		h.using = shares[h.holder]
		h.account()
		h.core.inForce(h.clock(), shares)
		h.busy = false
		then()
	})
}

// send has the server run the calls of a trip, and returns when the answer is
// there; less than 0 when it will not be.
func (w *world) send(t *trip) time.Duration {
	if w.down {
		return -1
	}
	there, back := w.transit(), w.transit()
	if w.random.Float64() < w.lost {
		return -1
	}
	w.after(there, func() { w.serve(t.calls) })
	if w.random.Float64() < w.copied {
		later := make([]*store.Call, len(t.calls))
		for i, c := range t.calls {
			later[i] = &store.Call{Script: c.Script, Keys: c.Keys, Args: slices.Clone(c.Args)}
		}
		w.after(there+time.Duration(w.random.Int64N(int64(5*time.Second))), func() { w.serve(later) })
	}
	if w.random.Float64() < w.lost {
		return -1
	}
	return there + back
}

func (w *world) serve(calls []*store.Call) {
	if w.down || len(calls) == 0 {
		return
	}
	for _, c := range calls {
		c.Args[timeArgument] = epoch.Add(w.now + w.ahead).UnixMilli()
	}
	w.calls += len(calls)
	if err := w.store.Do(context.Background(), calls...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) transit() time.Duration {
	if w.late > 0 && w.random.IntN(10) == 0 {
		return time.Duration(w.random.Int64N(int64(w.late)))
	}
	return time.Duration(w.random.Int64N(int64(w.delay)))
}

// run lets time pass.
func (w *world) run(d time.Duration) {
	w.t.Helper()
	for end := w.now + d; ; {
		if len(w.events) == 0 || w.events[0].at > end {
			w.now = end
			return
		}
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.f()
		w.most = max(w.most, w.used())
		w.each()
		if w.t.Failed() {
			w.t.FailNow()
		}
	}
}

// used is what all hosts may be using at this moment.
func (w *world) used() (sum shaper.Rate) {
	for _, h := range w.hosts {
		sum += h.using
	}
	return sum
}

func (w *world) after(d time.Duration, f func()) {
	w.count++
	heap.Push(&w.events, event{w.now + d, w.count, f})
}

// never has the test fail once more than the rate is used.
func (w *world) never() {
	w.each = func() {
		if used := w.used(); used > w.rate {
			w.t.Errorf("at %v: %v are in use of %v: %s", w.now, used, w.rate, w.shares())
		}
	}
}

func (w *world) shares() (s string) {
	for _, h := range w.hosts {
		s += fmt.Sprintf("%s wants %v uses %v", h.name, h.demand, h.using)
		if h.core != nil {
			x := h.core.holdings[h.holder]
			s += fmt.Sprintf(" (grant %v target %v flags %d left %v)", x.answer.grant, x.answer.target, x.answer.flags, x.end.Sub(h.clock()))
		}
		s += "; "
	}
	return s
}

// An event is what happens at a time; those of one time in their order.
type event struct {
	at    time.Duration
	order int
	f     func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}
