package lease

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"shaperd/internal/store"
	"shaperd/internal/store/storetest"
	"shaperd/shaper"
)

var web = Holder{Class: "web", Direction: "download", Link: "relay web"}

// A cluster's hosts run clients of a real Redis, in real time.
type cluster struct {
	t      testing.TB
	mu     sync.Mutex
	shares map[string]shaper.Rate // in force: of a host, a holder
	most   shaper.Rate            // in force together, ever
}

// A running client has traffic waiting, unless it is told otherwise.
type running struct {
	*Client
	stop    func()
	mu      sync.Mutex
	traffic func() Usage
	refuse  error // of Apply
}

func (r *running) look() Usage {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.traffic != nil {
		return r.traffic()
	}
	return Usage{Waiting: true}
}

func (c *cluster) run(host string, o store.Options, outage store.Outage, budgets ...Budget) *running {
	c.t.Helper()
	s, err := store.New(o)
	if err != nil {
		c.t.Fatal(err)
	}
	r := &running{}
	r.Client, err = New(s, Options{
		Cluster: "edge", Host: host, OnOutage: outage,
		Observe: func() map[Holder]Usage {
			all := map[Holder]Usage{}
			for _, b := range budgets {
				all[b.Holder] = r.look()
			}
			return all
		},
		Apply: func(shares map[Holder]shaper.Rate) error {
			r.mu.Lock()
			refuse := r.refuse
			r.mu.Unlock()
			if refuse != nil {
				return refuse
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			sum := shaper.Rate(0)
			for h, share := range shares {
				c.shares[host+h.Class] = share
			}
			for _, share := range c.shares {
				sum += share
			}
			c.most = max(c.most, sum)
			return nil
		},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			c.t.Errorf("Run = %v", err)
		}
		s.Close()
	})
	c.t.Cleanup(r.stop)
	r.Set(budgets)
	return r
}

func newCluster(t testing.TB) *cluster {
	return &cluster{t: t, shares: map[string]shaper.Rate{}}
}

func (r *running) await(t testing.TB, what string, done func(HolderStatus) bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		s := r.Status()
		if len(s.Holders) > 0 && done(s.Holders[0]) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still waiting for %s; status %+v", what, s)
		}
		select {
		case <-t.Context().Done():
		case <-time.After(10 * time.Millisecond): // between two looks, not before one
		}
	}
}

func has(state State, share shaper.Rate) func(HolderStatus) bool {
	return func(s HolderStatus) bool { return s.State == state && near(s.Share, share, share/50) }
}

func budget(rate shaper.Rate) Budget { return Budget{Holder: web, Rate: rate, Version: 1} }

func TestHostsShareARateThroughARealRedis(t *testing.T) {
	t.Parallel()
	r, c := storetest.Start(t), newCluster(t)
	o := store.Options{Backoff: DefaultPeriod, Addrs: []string{r.Addr()}}
	a, b := c.run("r1", o, store.OutageShare, budget(100*shaper.Mbit)), c.run("r2", o, store.OutageShare, budget(100*shaper.Mbit))
	a.await(t, "learning", has(Learning, 0))
	a.await(t, "half", has(Leased, 50*shaper.Mbit))
	b.await(t, "half", has(Leased, 50*shaper.Mbit))
	if s := a.Status(); s.Problem != "" || s.RoundTrip <= 0 || s.Holders[0].Left <= 0 || s.Holders[0].Holders != 2 {
		t.Errorf("status %+v", s)
	}
	r.Flush()
	a.await(t, "learning after the loss", has(Learning, 50*shaper.Mbit))
	a.await(t, "its half again", has(Leased, 50*shaper.Mbit))
	b.stop()
	a.await(t, "all", has(Leased, 100*shaper.Mbit))
	c.mu.Lock()
	delete(c.shares, "r2web")
	if c.most > 150*shaper.Mbit { // r2 is still counted after its end
		t.Errorf("%v were in force together", c.most)
	}
	c.mu.Unlock()
	a.stop()
	if n := r.Do("HLEN", Key("edge", "web", "download")); n != int64(1) {
		t.Errorf("%v fields after all have given back; want that of the time", n)
	}
}

func TestRedisComesAndGoes(t *testing.T) {
	for name, tt := range map[string]struct {
		away, back func(*storetest.Server)
		problem    string
	}{
		"killed": {(*storetest.Server).Kill, (*storetest.Server).Restart, "cannot connect"},
		"hangs":  {(*storetest.Server).Pause, (*storetest.Server).Resume, "no answer"},
		"replica": {func(s *storetest.Server) { s.Do("REPLICAOF", "127.0.0.1", "1") },
			func(s *storetest.Server) { s.Do("REPLICAOF", "NO", "ONE") }, "a replica, which cannot be written to"},
		"out of memory": {func(s *storetest.Server) { s.Do("CONFIG", "SET", "maxmemory", "1kb") },
			func(s *storetest.Server) { s.Do("CONFIG", "SET", "maxmemory", "0") }, "out of memory"},
		"wants a password": {func(s *storetest.Server) {
			s.Do("ACL", "SETUSER", "default", "resetpass", ">secret")
			s.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		}, func(s *storetest.Server) { s.Do("ACL", "SETUSER", "default", "nopass") }, "it wants a password"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, c := storetest.Start(t), newCluster(t)
			o := store.Options{Backoff: DefaultPeriod, Addrs: []string{r.Addr()}}
			a, b := c.run("r1", o, store.OutageShare, budget(100*shaper.Mbit)), c.run("r2", o, store.OutageMin, budget(100*shaper.Mbit))
			a.await(t, "half", has(Leased, 50*shaper.Mbit))
			b.await(t, "half", has(Leased, 50*shaper.Mbit))
			tt.away(r)
			a.await(t, "its fair share without Redis", has(AtOutage, 50*shaper.Mbit))
			b.await(t, "the floor without Redis", has(AtOutage, shaper.Mbit))
			if s := a.Status(); !strings.Contains(s.Problem, tt.problem) || s.Failures == 0 {
				t.Errorf("status %+v; want the problem %q", s, tt.problem)
			}
			tt.back(r)
			a.await(t, "half", has(Leased, 50*shaper.Mbit))
			b.await(t, "half", has(Leased, 50*shaper.Mbit))
			if s := a.Status(); s.Problem != "" {
				t.Errorf("problem %q once it is back", s.Problem)
			}
		})
	}
}

// A Redis that was away for long comes back empty, and one host has become idle
// meanwhile: whoever finds it first must not be granted what others still use.
func TestHostsFindRedisBeforeItHasLearned(t *testing.T) {
	t.Parallel()
	r, c := storetest.Start(t), newCluster(t)
	o := store.Options{Backoff: DefaultPeriod, Addrs: []string{r.Addr()}}
	var all []*running
	for i := range 8 { // so many that with longer pauses one is nearly always late
		all = append(all, c.run(fmt.Sprint("r", i), o, store.OutageShare, budget(80*shaper.Mbit)))
	}
	for _, h := range all {
		h.await(t, "an eighth", has(Leased, 10*shaper.Mbit))
	}
	r.Kill()
	for _, h := range all {
		h.await(t, "its fair share", has(AtOutage, 10*shaper.Mbit))
		h.await(t, "pauses as long as they become", func(HolderStatus) bool { return h.Status().Failures >= 30 })
	}
	all[0].mu.Lock()
	all[0].traffic = func() Usage { return Usage{} }
	all[0].mu.Unlock()
	c.mu.Lock()
	c.most = 0
	c.mu.Unlock()
	r.Restart()
	for _, h := range all[1:] {
		h.await(t, "a seventh", has(Leased, 11300*shaper.Kbit))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.most > 80*shaper.Mbit {
		t.Errorf("%v were in force together", c.most)
	}
}

// What is said is the server's answer, not that it closed the connection after it.
func TestAMissingPasswordIsNamed(t *testing.T) {
	t.Parallel()
	r, c := storetest.Start(t, "--requirepass", "right"), newCluster(t)
	var budgets []Budget
	for _, class := range []string{"a", "b", "c"} {
		b := budget(100 * shaper.Mbit)
		b.Class = class
		budgets = append(budgets, b)
	}
	a := c.run("r1", store.Options{Backoff: DefaultPeriod, Addrs: []string{r.Addr()}}, store.OutageShare, budgets...)
	storetest.Eventually(t, "an answer", func() bool { return a.Status().Failures > 1 })
	if s := a.Status(); !strings.Contains(s.Problem, "it wants a password") {
		t.Errorf("problem %q", s.Problem)
	}
}

func TestAWrongPasswordIsAnOutageFromTheStart(t *testing.T) {
	t.Parallel()
	r, c := storetest.Start(t, "--requirepass", "right"), newCluster(t)
	path := t.TempDir() + "/password"
	write := func(password string) {
		if err := os.WriteFile(path, []byte(password), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("wrong")
	a := c.run("r1", store.Options{Backoff: DefaultPeriod, Addrs: []string{r.Addr()}, PasswordFile: path}, store.OutageShare, budget(100*shaper.Mbit))
	a.await(t, "the floor", has(AtOutage, shaper.Mbit))
	if s := a.Status(); !strings.Contains(s.Problem, "correct the password file") {
		t.Errorf("problem %q", s.Problem)
	}
	write("right")
	a.await(t, "everything", has(Leased, 100*shaper.Mbit))
}

func TestAFailoverIsSurvived(t *testing.T) {
	t.Parallel()
	s, c := storetest.StartSentinels(t), newCluster(t)
	o := store.Options{Backoff: DefaultPeriod, Addrs: []string{s.Addr()}, Sentinel: s.Name}
	a, b := c.run("r1", o, store.OutageShare, budget(100*shaper.Mbit)), c.run("r2", o, store.OutageShare, budget(100*shaper.Mbit))
	a.await(t, "half", has(Leased, 50*shaper.Mbit))
	b.await(t, "half", has(Leased, 50*shaper.Mbit))
	s.Failover()
	renewed := a.Status().Renewals
	a.await(t, "an answer of the new master", func(h HolderStatus) bool { return a.Status().Renewals > renewed && h.State != AtOutage })
	a.await(t, "half", has(Leased, 50*shaper.Mbit))
	b.await(t, "half", has(Leased, 50*shaper.Mbit))
	if s.Replica.Do("EXISTS", Key("edge", "web", "download")) != int64(1) {
		t.Error("the new master holds nothing")
	}
}

func TestTrafficCostsNoMoreThanFourRoundTripsASecond(t *testing.T) {
	t.Parallel()
	r, c := storetest.Start(t), newCluster(t)
	var budgets []Budget
	for i := range 3 {
		b := budget(100 * shaper.Mbit)
		b.Class = fmt.Sprint("class", i)
		budgets = append(budgets, b)
	}
	started := time.Now()
	a := c.run("r1", store.Options{Backoff: DefaultPeriod, Addrs: []string{r.Addr()}}, store.OutageShare, budgets...)
	a.mu.Lock()
	bytes, n := uint64(0), 0
	a.traffic = func() Usage { // as restless as can be
		n++
		bytes += 1 << 20
		return Usage{Bytes: bytes, Waiting: n/9%2 == 0}
	}
	a.mu.Unlock()
	a.await(t, "renewals", func(HolderStatus) bool { return a.Status().Renewals >= 12 })
	calls, elapsed := r.Calls("evalsha"), time.Since(started)
	if most := int(3 * mostTrips * (elapsed.Seconds() + 1)); calls > most {
		t.Errorf("%d calls of the script for 3 budgets in %v; want %d at most", calls, elapsed, most)
	}
	if s := a.Status(); calls > 3*int(s.Renewals+s.Failures+1) {
		t.Errorf("%d calls in %d round trips of 3 budgets", calls, s.Renewals)
	}
}

func TestAShareThatCannotBeAppliedIsNotCountedAsInForce(t *testing.T) {
	t.Parallel()
	r, c := storetest.Start(t), newCluster(t)
	a := c.run("r1", store.Options{Backoff: DefaultPeriod, Addrs: []string{r.Addr()}}, store.OutageShare, budget(100*shaper.Mbit))
	a.await(t, "everything", has(Leased, 100*shaper.Mbit))
	a.mu.Lock()
	a.refuse = errors.New("device is gone")
	a.mu.Unlock()
	b := c.run("r2", store.Options{Backoff: DefaultPeriod, Addrs: []string{r.Addr()}}, store.OutageShare, budget(100*shaper.Mbit))
	a.await(t, "a target of half", func(h HolderStatus) bool { return h.Target <= 50*shaper.Mbit })
	renewed := b.Status().Renewals
	b.await(t, "some renewals", func(h HolderStatus) bool {
		if h.Share != 0 {
			t.Errorf("r2 has %v while r1 uses all", h.Share)
		}
		return b.Status().Renewals > renewed+3
	})
	if s := a.Status(); s.Holders[0].Share != 100*shaper.Mbit || s.Problem != "apply shares: device is gone" {
		t.Errorf("status %+v", s)
	}
	a.mu.Lock()
	a.refuse = nil
	a.mu.Unlock()
	b.await(t, "half", has(Leased, 50*shaper.Mbit))
}

func TestOptionsOfAHostAreChecked(t *testing.T) {
	s, err := store.New(store.Options{Backoff: DefaultPeriod, Addrs: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	good := Options{Cluster: "edge", Host: "r1", Observe: func() map[Holder]Usage { return nil }, Apply: func(map[Holder]shaper.Rate) error { return nil }}
	for want, change := range map[string]func(*Options){
		"shared classes: a cluster and a host need names":                                          func(o *Options) { o.Host = "" },
		"shared classes: Observe and Apply are needed":                                             func(o *Options) { o.Apply = nil },
		"shared classes: weight -1: 0.001 to 1000 is right":                                        func(o *Options) { o.Weight = -1 },
		"shared classes: a request may take 100ms, which is more than half of the period of 100ms": func(o *Options) { o.Period = 100 * time.Millisecond },
		"shared classes: period 500ms or outage Outage(9) is not right":                            func(o *Options) { o.OnOutage = 9 },
	} {
		o := good
		change(&o)
		if _, err := New(s, o); err == nil || err.Error() != want {
			t.Errorf("New = %v; want %s", err, want)
		}
	}
	if _, err := New(s, good); err != nil {
		t.Error(err)
	}
	slow, err := store.New(store.Options{Addrs: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := New(slow, good); err == nil || err.Error() != "shared classes: the store may pause for 3s, which is more than the period of 500ms" {
		t.Errorf("New with long pauses = %v", err)
	}
}
