package main

import (
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"shaperd/internal/admin"
	"shaperd/internal/store/storetest"
)

// source is a server that sends without an end to whoever connects.
func source(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for zeros := make([]byte, 64<<10); ; {
					if _, err := c.Write(zeros); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// A member is a daemon of a cluster.
type member struct {
	*process
	addr string       // of its relay
	got  atomic.Int64 // bytes, by download
}

func sharedPolicy(redis, host, upstream, more string) string {
	return fmt.Sprintf(`
classes:
  - {name: mirror, default: true, rate: 8mbit, shared: true}
relays:
  - {name: web, listen: "127.0.0.1:0", upstream: %q, upload: 100mbit, download: 100mbit}
shared: {redis: %q, cluster: test, host: %s%s}
`, upstream, redis, host, more)
}

// cluster starts daemons that share 8 mbit.
func cluster(t *testing.T, redis string, n int) (all []*member) {
	t.Helper()
	upstream := source(t)
	for i := range n {
		policy := file(t, "shaperd.yaml", sharedPolicy(redis, fmt.Sprintf("r%d", i), upstream, ""))
		m := &member{process: start(t, nil, "run", "--config", policy)}
		m.addr = m.listen("relay listens")
		m.await("msg=ready")
		all = append(all, m)
	}
	return all
}

// reads downloads by way of the member until stop is called.
func (m *member) reads() (stop func()) {
	m.t.Helper()
	c, err := net.Dial("tcp", m.addr)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { c.Close() })
	go func() {
		for b := make([]byte, 64<<10); ; {
			n, err := c.Read(b)
			m.got.Add(int64(n))
			if err != nil {
				return
			}
		}
	}()
	return func() { c.Close() }
}

// share is what the member has of the budget of downloads.
func (m *member) share() admin.Share {
	m.t.Helper()
	s := m.status().Shared
	if s == nil {
		m.t.Fatal("nothing is shared")
	}
	for _, one := range s.Shares {
		if one.Link == "relay web download" {
			return one
		}
	}
	return admin.Share{}
}

// awaitShares waits until each member has its share, in mbit, but for 5 %.
func awaitShares(t *testing.T, all []*member, mbit ...float64) {
	t.Helper()
	storetest.Eventually(t, fmt.Sprint("shares ", mbit), func() bool {
		for i, m := range all {
			if s := m.share(); float64(s.Rate) < 0.95e6*mbit[i] || float64(s.Rate) > 1.05e6*mbit[i] || s.State != "leased" {
				return false
			}
		}
		return true
	})
}

func TestHostsShareABudget(t *testing.T) {
	redis := storetest.Start(t)
	began := time.Now()
	all := cluster(t, redis.URL(), 3)
	stop := all[0].reads()
	awaitShares(t, all, 7.84, 0.04, 0.04) // the idle ones have the floor
	if got := all[1].asks(0, "status"); !regexp.MustCompile(`mirror +40\.0kbit +of 8mbit `).MatchString(got) {
		t.Errorf("status of an idle host prints:\n%s", got)
	}
	all[1].reads()
	all[2].reads()
	all[0].reads()
	awaitShares(t, all, 8./3, 8./3, 8./3)
	stop()

	var sum int64
	for _, m := range all {
		sum += m.got.Load()
	}
	// What a host may send at once, when its share is 8 mbit: 10 ms of it.
	if most := int64(time.Since(began).Seconds()*1e6) + 3*10_000; sum > most || sum == 0 {
		t.Errorf("%d bytes in %v, more than 8 mbit", sum, time.Since(began))
	}
	if got := all[1].asks(0, "status"); !strings.Contains(got, "shared with cluster test, as host r1") || !strings.Contains(got, "mirror  relay web download  2.67mbit") {
		t.Errorf("status prints:\n%s", got)
	}
}

// A host's name is for those who read it: daemons of the same name are two.
func TestHostsOfTheSameNameAreTwo(t *testing.T) {
	redis, upstream := storetest.Start(t), source(t)
	var all []*member
	for range 2 {
		m := &member{process: start(t, nil, "run", "--config", file(t, "shaperd.yaml", sharedPolicy(redis.URL(), "r1", upstream, "")))}
		m.addr = m.listen("relay listens")
		m.await("msg=ready")
		m.reads()
		all = append(all, m)
	}
	awaitShares(t, all, 4, 4)
}

func TestShareStaysWhileRedisIsAway(t *testing.T) {
	redis := storetest.Start(t)
	all := cluster(t, redis.URL(), 2)
	for _, m := range all {
		m.reads()
	}
	awaitShares(t, all, 4, 4)
	redis.Kill()
	for _, m := range all {
		m.await("they have what on_outage says")
		storetest.Eventually(t, "the end of the lease", func() bool { return m.share().State == "outage" })
		before := m.got.Load()
		storetest.Eventually(t, "bytes without Redis", func() bool { return m.got.Load() > before })
		if s := m.status().Shared; s.Problem == "" || s.Shares[0].Rate > 4.2e6 || s.Shares[0].Holders != 2 {
			t.Errorf("without Redis: %+v", s)
		}
	}
	redis.Restart()
	awaitShares(t, all, 4, 4)
	for _, m := range all {
		m.await("the Redis has lost what it knew")
		m.await("Redis answers again")
		if s := m.status().Shared; s.Problem != "" {
			t.Errorf("with Redis again: %+v", s)
		}
	}
}

// Status says what an outage does: to shares, and to what programs ask for.
// Keys of somebody else are in the way: that is said, and not again and again.
func TestARedisThatDoesNotTakeAClassIsSaid(t *testing.T) {
	redis := storetest.Start(t)
	redis.Do("LPUSH", "shaperd:{test:mirror}:take:bucket", "x")
	p := start(t, nil, "run", "--config", file(t, "shaperd.yaml", sharedPolicy(redis.URL(), "r1", "127.0.0.1:1", "")))
	p.await("admission: the Redis does not take shared classes")
	before := redis.Calls("evalsha")
	renewals := p.status().Shared.Renewals
	storetest.Eventually(t, "some renewals", func() bool { return p.status().Shared.Renewals > renewals+4 })
	if n := redis.Calls("evalsha") - before; n > 3*int(p.status().Shared.Renewals-renewals+1) {
		t.Errorf("%d calls in %d renewals", n, p.status().Shared.Renewals-renewals)
	}
}

func TestStatusTellsOfAnOutage(t *testing.T) {
	redis := storetest.Start(t)
	policy := strings.Replace(sharedPolicy(redis.URL(), "r1", "127.0.0.1:1", ", on_outage: closed"), "classes:", "classes:\n  - {name: api, unit: requests, rate: 3600/s, burst: 9, shared: true}", 1)
	path := file(t, "shaperd.yaml", policy)
	p := start(t, nil, "run", "--config", path)
	p.await("msg=ready")
	has := func(pattern string) bool { return regexp.MustCompile(pattern).MatchString(p.asks(0, "status")) }
	storetest.Eventually(t, "a lease", func() bool { return has(`mirror +relay web download +80\.0kbit .* 8mbit +1 +leased\n`) })
	p.asks(0, "take", "api", "--requests", "1")
	if !has(`CLASS +RATE +BURST +OF +GRANTED +REFUSED\n +api +3600/s +9 +all hosts +1 +0\n`) {
		t.Errorf("status prints:\n%s", p.asks(0, "status"))
	}
	redis.Kill()
	p.asks(75, "take", "api", "--requests", "1", "--timeout", "0s")
	p.asks(75, "take", "api", "--requests", "1", "--timeout", "0s")
	storetest.Eventually(t, "the end of the lease", func() bool { return has(`mirror +relay web download +0bit `) })
	for _, pattern := range []string{
		`\n  mirror +0bit +of 8mbit `,
		`warning redis 127\.0\.0\.1:\d+: cannot connect \(connection refused\): start it\n +there, or correct the URL or its bind\n +warning until it answers, on_outage counts: closed\n`,
		`CLASS +RATE +BURST +OF +GRANTED +REFUSED +OUTAGE\n +api +3600/s +9 +nobody now +1 +0 +[1-9]\n`,
	} {
		if !has(pattern) {
			t.Errorf("without Redis status prints, want %s:\n%s", pattern, p.asks(0, "status"))
		}
	}
	write(t, path, strings.Replace(policy, "closed", "min", 1))
	p.asks(0, "reload")
	storetest.Eventually(t, "a failed renewal", func() bool { return has(`on_outage counts: min\n`) })
	if !has(`api +3600/s +9 +this host now `) {
		t.Errorf("with on_outage: min status prints:\n%s", p.asks(0, "status"))
	}
}

func TestNewestRateOfASharedClassIsTheClusters(t *testing.T) {
	redis := storetest.Start(t)
	all := cluster(t, redis.URL(), 2)
	all[0].asks(0, "set", "mirror", "--rate", "4mbit")
	storetest.Eventually(t, "the rate that was set on the other host", func() bool {
		s := all[1].share()
		return s.Budget == 4e6 && s.Disagreement
	})
	all[1].await("another rate than the cluster's newest")
	if got := all[1].asks(0, "status"); !strings.Contains(got, "warning class mirror on relay web download: another host's rate is newer") {
		t.Errorf("status prints:\n%s", got)
	}
	all[0].asks(0, "set", "mirror", "--reset")
	storetest.Eventually(t, "the rate of before", func() bool {
		s := all[1].share()
		return s.Budget == 8e6 && !s.Disagreement
	})
	for _, tt := range []struct{ args, want string }{
		{"mirror --rate 200mbit", "guaranteed 200mbit on relay web upload"},
		{"mirror --ceil 9mbit", "has no ceil"},
	} {
		if got := all[0].asks(1, append([]string{"set"}, strings.Fields(tt.args)...)...); !strings.Contains(got, tt.want) {
			t.Errorf("set %s prints %q, want %q", tt.args, got, tt.want)
		}
	}
}

// A reload that takes the class out of the cluster's hands, and back.
func TestReloadSharesAndNoMore(t *testing.T) {
	redis := storetest.Start(t)
	upstream := source(t)
	policy := file(t, "shaperd.yaml", sharedPolicy(redis.URL(), "r1", upstream, ""))
	m := &member{process: start(t, nil, "run", "--config", policy)}
	m.addr = m.listen("relay listens")
	m.await("msg=ready")
	m.reads()
	awaitShares(t, []*member{m}, 8)
	alone := strings.Replace(sharedPolicy(redis.URL(), "r1", upstream, ""), ", shared: true", "", 1)
	alone, _, _ = strings.Cut(alone, "shared:")
	write(t, policy, alone)
	m.asks(0, "reload")
	if s := m.status(); s.Shared != nil || s.Links[1].Classes[0].Rate != 8e6 {
		t.Errorf("after a reload without: %+v, %+v", s.Shared, s.Links)
	}
	before := m.got.Load()
	storetest.Eventually(t, "bytes", func() bool { return m.got.Load() > before })
	write(t, policy, sharedPolicy(redis.URL(), "r1", upstream, ", on_outage: closed"))
	m.asks(0, "reload")
	awaitShares(t, []*member{m}, 8)
	redis.Kill()
	storetest.Eventually(t, "nothing, as on_outage says", func() bool { s := m.share(); return s.Rate == 0 && s.State == "outage" })
	write(t, policy, sharedPolicy("redis://127.0.0.1:1", "r1", upstream, ", on_outage: open"))
	m.asks(0, "reload")
	storetest.Eventually(t, "all of the rate, as on_outage says", func() bool { s := m.share(); return s.Rate == 8e6 && s.State == "outage" })
}

// Sessions that drain use what their class has, also when no policy knows it any more.
func TestARelayThatDrainsKeepsItsShare(t *testing.T) {
	redis := storetest.Start(t)
	policy := file(t, "shaperd.yaml", sharedPolicy(redis.URL(), "r1", source(t), ""))
	m := &member{process: start(t, nil, "run", "--config", policy)}
	m.addr = m.listen("relay listens")
	m.await("msg=ready")
	m.reads()
	awaitShares(t, []*member{m}, 8)
	write(t, policy, strings.NewReplacer("mirror", "another", "web", "next").Replace(sharedPolicy(redis.URL(), "r1", "127.0.0.1:1", "")))
	m.asks(0, "reload")
	renewals := m.status().Shared.Renewals
	storetest.Eventually(t, "some renewals", func() bool { return m.status().Shared.Renewals > renewals+6 })
	if s := m.share(); s.Class != "mirror" || s.Rate < 7.6e6 {
		t.Errorf("after the reload: %+v", s)
	}
}

// A relay that was drained by hand and the one that a reload starts in its place
// divide the share by need; that the new one has no sessions takes nothing from the cluster's.
func TestARelayThatDrainsBesideItsSuccessorKeepsItsShare(t *testing.T) {
	redis := storetest.Start(t)
	all := cluster(t, redis.URL(), 2)
	for _, m := range all {
		m.reads()
	}
	awaitShares(t, all, 4, 4)
	all[0].asks(0, "drain", "web")
	all[0].asks(0, "reload")
	successor := func() int64 { return all[0].status().Links[1].Classes[0].Rate }
	storetest.Eventually(t, "the successor to have little", func() bool { return successor() < 4e5 })
	renewals := all[0].status().Shared.Renewals
	storetest.Eventually(t, "some renewals", func() bool { return all[0].status().Shared.Renewals > renewals+10 })
	if s := all[0].share(); s.Rate < 3.6e6 || successor() > 4e5 {
		t.Errorf("after the reload: %+v, and %d of it for the successor", s, successor())
	}
	all[0].addr = all[0].listen("relay listens")
	all[0].reads()
	storetest.Eventually(t, "the successor to have half", func() bool { return successor() > 18e5 })
}
