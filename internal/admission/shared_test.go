package admission

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"shaperd/internal/store"
	"shaperd/internal/store/storetest"
	"shaperd/shaper"
)

// host is an Admission on a real server, as a daemon of the cluster is.
func host(t *testing.T, redis *storetest.Server, classes ...Class) *Admission {
	t.Helper()
	s, err := store.New(store.Options{Addrs: []string{redis.Addr()}, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	a := newAdmission(t, classes...)
	a.SetStore(s, "edge")
	return a
}

// aged makes the server's data set of a class one that was made long ago: all buckets are full.
func aged(redis *storetest.Server, c Class) {
	l, _ := c.limits()
	redis.Do("SET", "shaperd:{edge:"+c.Name+"}:take:made", fmt.Sprintf("0 0 %d %d 0", l.rate, bitsPerToken*int64(l.burst)))
}

func now(redis *storetest.Server) int64 {
	parts := redis.Do("TIME").([]any)
	s, _ := strconv.ParseInt(parts[0].(string), 10, 64)
	us, _ := strconv.ParseInt(parts[1].(string), 10, 64)
	return s*1_000_000 + us
}

// slow earns a request in an hour: what passes is what the bucket had.
var slow = Class{Name: "api", Requests: RequestLimit{PerHour: 1, Burst: 1000}, Shared: true}

// 16 clients on 4 hosts together get what one bucket has, not one more and not one less.
func TestManyHostsTakeExactlyWhatOneBucketHas(t *testing.T) {
	redis := storetest.Start(t)
	aged(redis, slow)
	for _, key := range []string{"", "customer-17"} {
		var granted atomic.Int64
		var wg sync.WaitGroup
		var hosts []*Admission
		for range 4 {
			hosts = append(hosts, host(t, redis, slow))
		}
		for client := range 16 {
			wg.Go(func() {
				for range 100 {
					if d := ask(t, hosts[client%4], Request{Class: "api", Cost: 1, Key: key}); d.Granted {
						granted.Add(1)
					} else if d.Alone {
						t.Error("decided alone")
					}
				}
			})
		}
		wg.Wait()
		if granted.Load() != 1000 {
			t.Errorf("key %q: %d of 1600 passed, want 1000", key, granted.Load())
		}
	}
}

// While tokens are earned, no more passes than the burst and what the server's own time allows.
func TestManyHostsTakeNoMoreThanIsEarned(t *testing.T) {
	redis := storetest.Start(t)
	fast := Class{Name: "web", Rate: 8*123457*8 + 3, Burst: 3000, Shared: true}
	aged(redis, fast)
	var granted atomic.Int64
	var wg sync.WaitGroup
	start := now(redis)
	for range 4 {
		a := host(t, redis, fast)
		for range 4 {
			wg.Go(func() {
				for i := range 500 {
					n := int64(100 + i%1400)
					if ask(t, a, Request{Class: "web", Cost: n}).Granted {
						granted.Add(n)
					}
				}
			})
		}
	}
	wg.Wait()
	elapsed := now(redis) - start
	most := int64(fast.Burst) + int64(fast.Rate)*elapsed/8_000_000
	if granted.Load() > most {
		t.Errorf("%d bytes passed in %d µs, at most %d may", granted.Load(), elapsed, most)
	}
	if granted.Load() < most/2 {
		t.Errorf("only %d of %d bytes passed", granted.Load(), most)
	}
}

// A bucket that has expired is full, and expires when it is full, not before.
func TestABucketExpiresWhenItIsFull(t *testing.T) {
	redis := storetest.Start(t)
	c := Class{Name: "web", Rate: 8 * shaper.Kbit, Burst: 100_000, Shared: true}
	aged(redis, c)
	a := host(t, redis, c)
	d := ask(t, a, Request{Class: "web", Cost: 50_000, Key: "k"})
	if !d.Granted || d.Remaining != 50_000 || d.Reset != 50*time.Second || d.Window != 100*time.Second {
		t.Errorf("%+v", d)
	}
	ttl := redis.Do("PTTL", "shaperd:{edge:web}:take:key:k").(int64)
	if ttl > 50_001 || ttl < 40_000 {
		t.Errorf("it expires in %d ms, full it is in 50 s", ttl)
	}
	redis.Do("DEL", "shaperd:{edge:web}:take:key:k") // as if it had expired
	if d := ask(t, a, Request{Class: "web", Cost: 100_000, Key: "k"}); !d.Granted {
		t.Errorf("one that expired: %+v", d)
	}
}

// A data set that is lost mints nothing: all buckets start empty and are full
// when they had the time to be.
func TestALostDataSetMintsNothing(t *testing.T) {
	redis := storetest.Start(t)
	aged(redis, slow)
	a := host(t, redis, slow)
	for _, lose := range []func(){redis.Flush, redis.Restart} {
		aged(redis, slow)
		if !ask(t, a, Request{Class: "api", Cost: 1000}).Granted {
			t.Error("a full bucket refuses")
		}
		lose()
		for _, key := range []string{"", "a", "b"} {
			storetest.Eventually(t, "an empty bucket", func() bool {
				d, err := a.Take(t.Context(), Request{Class: "api", Cost: 1, Key: key})
				if err == nil && d.Granted && !d.Alone {
					t.Errorf("key %q: granted after the loss: %+v", key, d)
				}
				return err == nil && !d.Alone && d.RetryAfter > 50*time.Minute && d.RetryAfter <= time.Hour
			})
		}
	}
}

// The keys of all hosts together are bounded, as they are in one process.
func TestSharedKeysAreBounded(t *testing.T) {
	redis := storetest.Start(t)
	c := Class{Name: "api", Requests: RequestLimit{PerHour: 3600, Burst: 1000}, Shared: true, Keys: 3}
	aged(redis, c)
	hosts := []*Admission{host(t, redis, c), host(t, redis, c)}
	for i, cost := range []int64{1000, 500, 400} {
		if !ask(t, hosts[i%2], Request{Class: "api", Cost: cost, Key: strconv.Itoa(i)}).Granted {
			t.Error("refused with room")
		}
	}
	for _, a := range hosts {
		if d := ask(t, a, Request{Class: "api", Cost: 1, Key: "new"}); d.Granted || d.RetryAfter > 402*time.Second || d.RetryAfter < 300*time.Second {
			t.Errorf("without room: %+v", d)
		}
		if d := ask(t, a, Request{Class: "api", Cost: 1, Key: "2"}); !d.Granted {
			t.Errorf("a key that is known: %+v", d)
		}
	}
	redis.Do("ZADD", "shaperd:{edge:api}:take:keys", "1", "2") // as if it had been full for long
	if d := ask(t, hosts[0], Request{Class: "api", Cost: 1, Key: "new"}); !d.Granted {
		t.Errorf("with room: %+v", d)
	}
	if n := redis.Do("ZCARD", "shaperd:{edge:api}:take:keys"); n != int64(3) {
		t.Errorf("%v keys", n)
	}
}

// Who waits for a shared class gets the tokens once they are earned, one after the other.
func TestWhoWaitsForASharedClassIsServed(t *testing.T) {
	redis := storetest.Start(t)
	a := host(t, redis, Class{Name: "web", Rate: 8 * shaper.Mbit, Burst: 10_000, Shared: true})
	start := now(redis) // empty, since it is new
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if d := ask(t, a, Request{Class: "web", Cost: 10_000, Wait: MaxWait}); !d.Granted {
				t.Errorf("%+v", d)
			}
		})
	}
	wg.Wait()
	if elapsed := now(redis) - start; elapsed < 160_000 {
		t.Errorf("160000 bytes in %d µs, at a byte a µs", elapsed)
	}
	if s := a.Stats()[0]; s.Granted != 16 || s.Waiting != 0 || len(a.lookup("web").lines.byKey) != 0 {
		t.Errorf("%+v", s)
	}
}

// Those who ask without waiting take nothing that somebody waits for.
func TestWhoWaitsForASharedClassIsNotOvertaken(t *testing.T) {
	redis := storetest.Start(t)
	a := host(t, redis, Class{Name: "web", Rate: 8 * shaper.Kbit, Burst: 30_000, Shared: true}) // 1000 bytes a second
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := a.Take(ctx, Request{Class: "web", Cost: 25_000, Wait: MaxWait})
		left <- err
	}()
	lines := a.lookup("web").lines
	storetest.Eventually(t, "somebody to wait", func() bool {
		lines.mu.Lock()
		defer lines.mu.Unlock()
		return lines.byKey[""] != nil && lines.byKey[""].head != nil
	})
	start := now(redis)
	for now(redis) < start+50_000 { // in which 50 bytes are earned
		for _, wait := range []time.Duration{0, time.Second} { // too short
			if d := ask(t, a, Request{Class: "web", Cost: 1, Wait: wait}); d.Granted || d.Alone || d.RetryAfter < time.Second || d.RetryAfter > 25001*time.Millisecond {
				t.Fatalf("one who overtakes: %+v", d)
			}
		}
	}
	if d := ask(t, a, Request{Class: "web", Cost: 1, Key: "k"}); d.Alone || d.RetryAfter > time.Second {
		t.Errorf("another bucket: %+v", d)
	}
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if d := ask(t, a, Request{Class: "web", Cost: 1}); !d.Granted {
		t.Errorf("once nobody waits: %+v", d)
	}
}

// While another host takes all that is earned, one who waits does not have its own host starve.
func TestWhoWaitsInVainKeepsNobodyBackForEver(t *testing.T) {
	redis := storetest.Start(t)
	c := Class{Name: "web", Rate: 80 * shaper.Kbit, Burst: 2000, Shared: true} // 10 bytes a ms
	a, b := host(t, redis, c), host(t, redis, c)
	ctx, leave := context.WithCancel(t.Context())
	var others sync.WaitGroup
	others.Go(func() {
		for ctx.Err() == nil {
			_, _ = b.Take(ctx, Request{Class: "web", Cost: 10})
		}
	})
	others.Go(func() { _, _ = a.Take(ctx, Request{Class: "web", Cost: 2000, Wait: MaxWait}) })
	storetest.Eventually(t, "somebody to wait", func() bool { return a.Stats()[0].Waiting == 1 })
	storetest.Eventually(t, "another one's turn", func() bool {
		return ask(t, a, Request{Class: "web", Cost: 1}).Granted && a.Stats()[0].Waiting == 1
	})
	leave()
	others.Wait()
}

// Who waits alone, in an outage, goes on waiting at the store once that answers.
func TestWhoWaitsInAnOutageGoesBackToTheStore(t *testing.T) {
	redis := storetest.Start(t)
	c := Class{Name: "web", Rate: 8 * shaper.Mbit, Burst: 10_000, Shared: true, OnOutage: store.OutageMin} // alone 10 bytes a ms
	aged(redis, c)
	a := host(t, redis, c)
	redis.Kill()
	served := make(chan Decision)
	go func() { served <- ask(t, a, Request{Class: "web", Cost: 10_000, Wait: MaxWait}) }()
	storetest.Eventually(t, "somebody to wait", func() bool { return a.Stats()[0].Waiting == 1 })
	redis.Restart()
	storetest.Eventually(t, "the store", func() bool { return !ask(t, a, Request{Class: "web", Cost: 1, Key: "k"}).Alone })
	if d := <-served; !d.Granted || d.Alone {
		t.Errorf("%+v", d)
	}
}

func (a *Admission) lookup(name string) *class { return (*a.classes.Load())[name] }

// Another store, as a reload sets it: what is under way in the old one, which is
// closed then, and what waits, is decided by the new one.
func TestAnotherStoreIsNoOutage(t *testing.T) {
	old, next := storetest.Start(t), storetest.Start(t)
	c := Class{Name: "web", Rate: 8 * shaper.Mbit, Burst: 100_000, Shared: true, OnOutage: store.OutageClosed}
	aged(old, c)
	aged(next, c)
	a, b := host(t, old, c), host(t, next, c)
	for _, r := range []Request{{Class: "web", Cost: 100_000}, {Class: "web", Cost: 100_000, Key: "k"}} {
		if d := ask(t, a, r); !d.Granted {
			t.Fatalf("%+v", d)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if d := ask(t, a, Request{Class: "web", Cost: 99_000, Key: "k", Wait: MaxWait}); !d.Granted {
			t.Errorf("who waits: %+v", d)
		}
	})
	storetest.Eventually(t, "somebody to wait", func() bool { return a.Stats()[0].Waiting == 1 })
	old.Pause()
	wg.Go(func() {
		if d := ask(t, a, Request{Class: "web", Cost: 50_000}); !d.Granted {
			t.Errorf("under way: %+v", d)
		}
	})
	was := a.cluster.Load()
	storetest.Eventually(t, "a request to be under way", func() bool { return len(was.gate) > 0 })
	a.SetStore(b.cluster.Load().store, "edge")
	was.store.Close()
	wg.Wait()
}

// What each way of being away leads to, for each policy.
func TestWhileTheStoreIsAwayAHostDecidesAlone(t *testing.T) {
	ways := []struct {
		name string
		away func(*storetest.Server)
	}{
		{"killed", func(r *storetest.Server) { r.Kill() }},
		{"paused", func(r *storetest.Server) { r.Pause() }},
		{"wrong password", func(r *storetest.Server) {
			r.Do("CONFIG", "SET", "requirepass", "secret")
			r.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		}},
		{"read-only", func(r *storetest.Server) { r.Do("REPLICAOF", "127.0.0.1", "1") }},
		{"out of memory", func(r *storetest.Server) { r.Do("CONFIG", "SET", "maxmemory", "1") }},
	}
	policies := []struct {
		policy store.Outage
		first  int64 // requests that pass at once, of a burst of 1000
	}{{store.OutageOpen, 1000}, {store.OutageShare, 250}, {store.OutageMin, 10}, {store.OutageClosed, 0}}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			redis := storetest.Start(t)
			s, err := store.New(store.Options{Addrs: []string{redis.Addr()}})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			a := New()
			a.SetStore(s, "edge")
			a.SetShare(0.25)
			var classes []Class
			for i, p := range policies {
				c := slow
				c.Name, c.OnOutage = fmt.Sprint("class", i), p.policy
				classes = append(classes, c)
				aged(redis, c)
			}
			if err := a.Update(classes); err != nil {
				t.Fatal(err)
			}
			for _, c := range classes {
				if d := ask(t, a, Request{Class: c.Name, Cost: 1}); !d.Granted || d.Alone {
					t.Errorf("before: %+v", d)
				}
			}
			way.away(redis)
			for _, key := range []string{"", "k"} {
				for i, p := range policies {
					granted := int64(0)
					for range 1001 {
						d, err := a.Take(t.Context(), Request{Class: classes[i].Name, Cost: 1, Key: key})
						outage, closed := errors.AsType[*OutageError](err)
						switch {
						case p.policy == store.OutageClosed:
							if !closed || outage.RetryAfter <= 0 || outage.Err == nil {
								t.Fatalf("closed: %+v, %v", d, err)
							}
						case err != nil || !d.Alone:
							t.Fatalf("%+v, %v", d, err)
						case d.Granted:
							granted++
						}
					}
					if granted != p.first {
						t.Errorf("policy %v key %q: %d pass, want %d", p.policy, key, granted, p.first)
					}
				}
			}
			for i, s := range a.Stats() {
				if p := policies[i].policy; p == store.OutageClosed && s.Outage != 2002 || p != store.OutageClosed && s.Alone != 2002 {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}

// Outages that follow each other closely do not each start with a burst.
func TestOutagesInARowMintNothing(t *testing.T) {
	redis := storetest.Start(t)
	aged(redis, slow)
	a := New()
	a.cluster.Store(host(t, redis).cluster.Load())
	a.SetShare(0.5)
	if err := a.Update([]Class{slow}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{500, 0, 0} {
		a.cluster.Store(nil)
		granted := int64(0)
		for range 1000 {
			if ask(t, a, Request{Class: "api", Cost: 1}).Granted {
				granted++
			}
		}
		if granted != want {
			t.Errorf("outage %d: %d pass, want %d", i, granted, want)
		}
		a.cluster.Store(host(t, redis).cluster.Load())
		if d := ask(t, a, Request{Class: "api", Cost: 1}); !d.Granted || d.Alone {
			t.Errorf("back again: %+v", d)
		}
	}
}

// Many at once wait for the store's connections here, not in the store, where that
// would look like a server that does not answer.
func TestManyAtOnceDoNotCrowdTheStore(t *testing.T) {
	redis := storetest.Start(t)
	aged(redis, slow)
	a := host(t, redis, slow)
	cl := a.cluster.Load()
	if !ask(t, a, Request{Class: "api", Cost: 1}).Granted {
		t.Fatal("a full bucket refuses")
	}
	redis.Pause()
	var wg sync.WaitGroup
	for range 800 {
		wg.Go(func() {
			if d := ask(t, a, Request{Class: "api", Cost: 1}); !d.Granted || d.Alone {
				t.Errorf("%+v", d)
			}
		})
	}
	pool := cl.store.Client().PoolStats
	storetest.Eventually(t, "all connections to be in use", func() bool { return pool().IdleConns == 0 && int(pool().TotalConns) == cap(cl.gate) })
	redis.Resume()
	wg.Wait()
	if pool().WaitCount != 0 || pool().Timeouts != 0 {
		t.Errorf("%d waited for a connection, %d in vain", pool().WaitCount, pool().Timeouts)
	}
}

// Who waits too long for others is refused: the store is not away.
func TestACrowdIsRefused(t *testing.T) {
	redis := storetest.Start(t)
	aged(redis, slow)
	s, err := store.New(store.Options{Addrs: []string{redis.Addr()}, Timeout: time.Millisecond}) // to wait ten of them
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a := newAdmission(t, slow)
	a.SetStore(s, "edge")
	gate := a.cluster.Load().gate
	for range cap(gate) {
		gate <- struct{}{}
	}
	if d := ask(t, a, Request{Class: "api", Cost: 1}); d.Granted || d.Alone || d.RetryAfter != 10*time.Millisecond {
		t.Errorf("%+v", d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Take(ctx, Request{Class: "api", Cost: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("one who leaves gets %v", err)
	}
}

func BenchmarkTakeShared(b *testing.B) {
	redis := storetest.Start(b)
	s, err := store.New(store.Options{Addrs: []string{redis.Addr()}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	a := New()
	a.SetStore(s, "edge")
	if err := a.Update([]Class{{Name: "web", Rate: 100 * shaper.Gbit, Burst: shaper.GiB, Shared: true}}); err != nil {
		b.Fatal(err)
	}
	for _, key := range []string{"", "customer-17"} {
		b.Run("key="+key, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Take(b.Context(), Request{Class: "web", Cost: 1000, Key: key}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A reload while somebody waits: what is earned from then on is earned at the new
// rate, also where the class is no longer shared.
func TestWhoWaitsFollowsAReload(t *testing.T) {
	for name, next := range map[string]Class{
		"slower":     {Name: "web", Rate: 8, Burst: 100_000, Shared: true},
		"not shared": {Name: "web", Rate: 8, Burst: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			a := host(t, storetest.Start(t), Class{Name: "web", Rate: 80 * shaper.Kbit, Burst: 100_000, Shared: true})
			answers := make(chan Decision)
			errs := make(chan error)
			go func() {
				d, err := a.Take(t.Context(), Request{Class: "web", Cost: 90_000, Wait: MaxWait})
				if err != nil {
					errs <- err
				} else {
					answers <- d
				}
			}()
			storetest.Eventually(t, "somebody to wait", func() bool { return a.Stats()[0].Waiting == 1 })
			if err := a.Update([]Class{next}); err != nil {
				t.Fatal(err)
			}
			select {
			case d := <-answers:
				if d.Granted || next.Shared && d.RetryAfter < time.Hour || !next.Shared {
					t.Errorf("%+v", d)
				}
			case err := <-errs:
				if large, ok := errors.AsType[*TooLargeError](err); !ok || next.Shared || large.Limit != 1000 {
					t.Error(err)
				}
			}
		})
	}
}
