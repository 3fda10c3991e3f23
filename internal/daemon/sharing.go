package daemon

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"shaperd/configs"
	"shaperd/internal/admin"
	"shaperd/internal/lease"
	"shaperd/internal/metrics"
	"shaperd/internal/store"
	"shaperd/shaper"
)

// A sharing is the task that holds this host's shares of the cluster's budgets.
type sharing struct {
	*lease.Client
	readiness
	config  configs.Shared
	host    string
	leases  *store.Store
	takes   *store.Store // of admission: many at once, which must not keep a lease waiting
	running *running     // nil until started

	held  atomic.Pointer[map[lease.Holder]bool] // what it has shares of; nil before the first
	seen  map[source]sighting                   // by its own goroutine
	begin atomic.Int64                          // when the Redis is to know the classes of admission, in ns since 1970; 0 when it does
	knows bool                                  // the Redis knows what was granted
	told  string                                // what the log says is wrong
	odd   map[lease.Holder]bool                 // whose disagreement is in the log
}

// presence is a budget of nothing: its shares say how many hosts there are, which
// admission has to know when the Redis is away.
var presence = lease.Budget{Holder: lease.Holder{Class: "hosts", Direction: "admission", Link: "admission"}, Rate: shaper.Gbit}

func (s *sharing) Run(ctx context.Context) error {
	defer s.close()
	close(s.readiness)
	return s.Client.Run(ctx)
}

func (s *sharing) close() {
	s.leases.Close()
	s.takes.Close()
}

func (s *sharing) String() string { return "shared classes" }

// newSharing makes the task that the policy wants; nil for none. It asks nothing yet.
func (d *daemon) newSharing(p *configs.Policy) (*sharing, error) {
	if p.Shared.Cluster == "" {
		return nil, nil
	}
	host, err := os.Hostname()
	if host = cmp.Or(p.Shared.Host, host); host == "" {
		return nil, fmt.Errorf("%s: shared: name this host with the key host: %w", p.Name, err)
	}
	outage, err := store.ParseOutage(p.Shared.OnOutage)
	if err != nil {
		return nil, err
	}
	leases, err := store.New(store.Options(p.Shared.Redis))
	if err != nil {
		return nil, fmt.Errorf("%s: shared: %w", p.Name, err)
	}
	takes, err := store.New(store.Options(p.Shared.Redis))
	if err != nil { // a file that has changed since
		leases.Close()
		return nil, fmt.Errorf("%s: shared: %w", p.Name, err)
	}
	s := &sharing{readiness: make(readiness), config: p.Shared, host: host, leases: leases, takes: takes, odd: map[lease.Holder]bool{}}
	s.Client, err = lease.New(leases, lease.Options{
		Cluster: p.Shared.Cluster, Host: host, Weight: float64(p.Shared.Weight), Period: p.Shared.Period, OnOutage: outage,
		Observe: func() map[lease.Holder]lease.Usage { return d.observe(s) },
		Apply:   func(now map[lease.Holder]shaper.Rate) error { return d.applyShares(s, now) },
	})
	if err != nil {
		s.close()
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	return s, nil
}

// moveSharing shares with s from now on, or with nobody.
func (d *daemon) moveSharing(s *sharing) {
	if s != nil {
		d.admission.SetStore(s.takes, s.config.Cluster)
	} else {
		d.admission.SetStore(nil, "")
	}
	if d.sharing != nil { // nobody is sent to its stores any more, which it closes
		if err := d.reshape(shares{}); err != nil { // first: others have these shares when it has given them back
			d.Log.Error("shares of shared classes", "error", err)
		}
		d.sharing.running.stop() // what comes of it later is not applied
	}
	d.shares, d.budgets = shares{}, nil
	d.sharing = s
	d.shared.Store(s)
	if s != nil {
		s.running = d.tasks.start(s)
		d.tasks.awaitReady(s)
		d.Log.Info("budgets are shared", "cluster", s.config.Cluster, "host", s.host)
	}
}

// rebudget tells what this host shares: the policy has changed, or a relay has ended.
func (d *daemon) rebudget() {
	if d.sharing == nil {
		return
	}
	links := d.policy.Links()
	for _, r := range d.retired() {
		links = append(links, &r.config.Upload, &r.config.Download)
	}
	d.budgets = budgetsOf(links, d.policy.Modified, d.budgets, time.Now())
	all := d.budgets
	if slices.ContainsFunc(d.policy.Admission.Classes, func(c configs.AdmissionClass) bool { return c.Shared }) {
		all = append(slices.Clone(all), presence)
	}
	held := map[lease.Holder]bool{}
	for _, b := range d.budgets {
		held[b.Holder] = true
	}
	d.sharing.held.Store(&held)
	d.divided = nil
	d.sharing.begin.Store(time.Now().UnixNano())
	d.sharing.Set(all)
	if err := d.reshape(d.shares); err != nil {
		d.Log.Error("shares of shared classes", "error", err)
	}
}

// applyShares puts shares of s into force, for its own goroutine.
func (d *daemon) applyShares(s *sharing, some map[lease.Holder]shaper.Rate) error {
	return d.own(d.tasks.ctx, func() error {
		if s != d.sharing {
			return nil
		}
		all := shares{}
		for _, b := range d.budgets {
			all[b.Holder] = d.shares[b.Holder]
		}
		maps.Copy(all, some)
		return d.reshape(all)
	})
}

// reshape gives the datapaths the shares, and changes nothing else.
func (d *daemon) reshape(next shares) error {
	if err := d.kernel.reshape(d.policy, next); err != nil {
		return err
	}
	d.shares = next
	for _, r := range slices.Concat(d.relays, d.retired()) {
		now := next.relay(r.config, d.part(r))
		links := [2]shaper.Link{now.Upload, now.Download}
		if reflect.DeepEqual(links, r.links) {
			continue
		}
		if err := r.SetRates(now.Upload, now.Download); err != nil {
			return err
		}
		r.links = links
	}
	return nil
}

// retired are the relays that accept nobody any more and have sessions.
func (d *daemon) retired() []*relay {
	return slices.DeleteFunc(slices.Clone(d.ending), (*relay).gone)
}

// complain logs what is wrong, once, and when the Redis is well again. Admission
// learns this host's part of the cluster.
func (d *daemon) complain(s *sharing) {
	st := s.Status()
	for _, h := range st.Holders {
		if h.Holder == presence.Holder && h.Fair > 0 {
			d.admission.SetShare(float64(h.Fair) / float64(h.Rate))
		}
		if h.Disagrees && !s.odd[h.Holder] {
			d.Log.Warn("shared class: this host's policy has another rate than the cluster's newest, which is in force",
				"class", h.Class, "link", linkOf(h.Holder), "rate", h.LocalRate, "cluster", h.Rate)
		}
		s.odd[h.Holder] = h.Disagrees
	}
	problem := st.Problem
	if problem == "" && st.Renewals > 0 {
		d.begin(s)
		learning := slices.ContainsFunc(st.Holders, func(h lease.HolderStatus) bool { return h.State == lease.Learning })
		if learning && s.knows {
			d.Log.Warn("shared classes: the Redis has lost what it knew: no share grows until all leases of before have ended")
		}
		s.knows = !learning
	}
	switch {
	case problem != "" && s.told == "":
		d.Log.Warn("shared classes: they have what on_outage says", "on_outage", s.config.OnOutage, "error", problem)
	case problem == "" && s.told != "":
		d.Log.Info("shared classes: Redis answers again")
	}
	s.told = problem
}

// begin has the Redis know the classes of admission, again and again if it has to.
func (d *daemon) begin(s *sharing) {
	const again = 10 * time.Second
	at := s.begin.Load()
	if at == 0 || time.Now().UnixNano() < at {
		return
	}
	next := int64(0)
	if err := d.admission.Begin(d.tasks.ctx); err != nil && d.tasks.ctx.Err() == nil {
		next = time.Now().Add(again).UnixNano()
		d.Log.Warn("admission: the Redis does not take shared classes", "again_in", again, "error", err)
	}
	s.begin.CompareAndSwap(at, next) // unless a reload wants it at once
}

// onLinks are the shares that a link has.
func onLinks(s *lease.Status) []lease.HolderStatus {
	return slices.DeleteFunc(s.Holders, func(h lease.HolderStatus) bool { return h.Holder == presence.Holder })
}

// sharingSnapshot returns how the shares of this host are; nil where it shares
// nothing. Any goroutine may call it.
func (d *daemon) sharingSnapshot() *metrics.Sharing {
	s := d.shared.Load()
	if s == nil {
		return nil
	}
	st := s.Status()
	out := &metrics.Sharing{Up: st.Problem == "" && st.Renewals > 0, Renewals: st.Renewals, Failures: st.Failures, RoundTrip: st.RoundTrip}
	for _, h := range onLinks(&st) {
		out.Shares = append(out.Shares, metrics.Share{
			Class: h.Class, Link: linkOf(h.Holder), Rate: h.Share, Budget: h.Rate, Leased: h.State == lease.Leased, Disagrees: h.Disagrees,
		})
	}
	return out
}

// sharingStatus is how the shares of this host are, for the status; nil where there are none.
func (d *daemon) sharingStatus() *admin.Shared {
	s := d.shared.Load()
	if s == nil {
		return nil
	}
	st := s.Status()
	out := &admin.Shared{
		Cluster: s.config.Cluster, Host: s.host, Problem: st.Problem, OnOutage: s.config.OnOutage,
		RoundTripMs: float64(st.RoundTrip.Microseconds()) / 1e3, Renewals: st.Renewals, Failures: st.Failures, Shares: []admin.Share{},
	}
	for _, h := range onLinks(&st) {
		out.Shares = append(out.Shares, admin.Share{
			Class: h.Class, Link: linkOf(h.Holder), Rate: int64(h.Share), Budget: int64(h.Rate), Holders: h.Holders, State: string(h.State),
			Seconds: h.Left.Seconds(), Disagreement: h.Disagrees,
		})
	}
	return out
}
