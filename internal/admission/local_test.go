package admission

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"shaperd/shaper"
)

func newAdmission(t *testing.T, classes ...Class) *Admission {
	t.Helper()
	a := New()
	if err := a.Update(classes); err != nil {
		t.Fatal(err)
	}
	return a
}

func ask(t *testing.T, a *Admission, r Request) Decision {
	t.Helper()
	d, err := a.Take(t.Context(), r)
	if err != nil {
		t.Error(err)
	}
	return d
}

var web = Class{Name: "web", Rate: 8 * shaper.Kbit, Burst: 1000} // 1000 bytes a second

// What passes until a time is never more than the burst and what was earned, and
// when something is refused, one byte more would have been too much.
func TestExactlyWhatTheBucketHasIsGranted(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for _, key := range []string{"", "customer-17"} {
		for _, c := range []Class{
			web,
			{Name: "web", Rate: 123456789, Burst: 9999},
			{Name: "web", Rate: 7, Burst: 100},
			{Name: "web", Requests: RequestLimit{PerHour: 360000, Burst: 200}},
			{Name: "web", Requests: RequestLimit{PerHour: 7, Burst: 3}},
		} {
			t.Run(fmt.Sprintf("%+v key %q", c, key), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					random := rand.New(rand.NewPCG(seed, 0))
					a := newAdmission(t, c)
					l, _ := c.limits()
					limit := int64(l.burst) / l.each
					spent := int64(0) // tokens, of what there was since the bucket was full
					since := time.Now()
					for range 3000 {
						if spent == 0 {
							since = time.Now()
						}
						n := 1 + random.Int64N(limit)
						earned := int64(float64(time.Since(since)) * float64(l.rate) / 8e9)
						d := ask(t, a, Request{Class: "web", Cost: n, Key: key})
						if d.Granted {
							spent += n * l.each
							if spent > int64(l.burst)+earned+1 {
								t.Fatalf("%d tokens passed of %d", spent, int64(l.burst)+earned)
							}
							if spent <= earned { // it was full meanwhile
								spent = 0
							}
						} else {
							// Exact: one nanosecond before it is refused, and then granted.
							time.Sleep(d.RetryAfter - 1)
							if ask(t, a, Request{Class: "web", Cost: n, Key: key}).Granted {
								t.Fatalf("granted before %v had passed", d.RetryAfter)
							}
							time.Sleep(time.Nanosecond)
							if d := ask(t, a, Request{Class: "web", Cost: n, Key: key}); !d.Granted || d.Remaining > 0 {
								t.Fatalf("after the time to wait: %+v", d)
							}
							spent, since = int64(l.burst), time.Now()
						}
						if random.IntN(3) == 0 {
							d := ask(t, a, Request{Class: "web", Cost: 1, Key: key})
							time.Sleep(d.Reset)
							d = ask(t, a, Request{Class: "web", Cost: 1, Key: key})
							if !d.Granted || d.Remaining != limit-1 {
								t.Fatalf("after the time until it is full: %+v", d)
							}
							spent, since = l.each, time.Now()
						}
					}
				})
			})
		}
	}
}

func TestKeysHaveBucketsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(t, web)
		for _, key := range []string{"", "a", "b", strings.Repeat("c", MaxKey)} {
			if d := ask(t, a, Request{Class: "web", Cost: 1000, Key: key}); !d.Granted || d.Remaining != 0 || d.Reset != time.Second {
				t.Errorf("key %q: %+v", key, d)
			}
			if d := ask(t, a, Request{Class: "web", Cost: 1, Key: key}); d.Granted || d.RetryAfter != time.Millisecond {
				t.Errorf("key %q: %+v", key, d)
			}
		}
	})
}

func TestWhatIsWrongWithARequestIsSaid(t *testing.T) {
	a := newAdmission(t, web, Class{Name: "api", Requests: RequestLimit{PerHour: 10, Burst: 5}})
	for _, tt := range []struct {
		r    Request
		want string
	}{
		{Request{Class: "wbe", Cost: 1}, `there is no class "wbe": did you mean web?`},
		{Request{Class: "nothing like it", Cost: 1}, `there is no class "nothing like it" that programs may ask for; one whose rate is a percentage needs admission.rate`},
		{Request{Class: "web", Cost: 0}, "a cost of 0: give 1 or more"},
		{Request{Class: "web", Cost: -1 << 63}, "a cost of -9223372036854775808: give 1 or more"},
		{Request{Class: "web", Cost: 1001}, `class "web": 1001 bytes are more than its burst of 1000: ask for less at a time, or give the class a larger burst`},
		{Request{Class: "api", Cost: 1<<63 - 1}, `class "api": 9223372036854775807 requests are more than its burst of 5: ask for less at a time, or give the class a larger burst`},
		{Request{Class: "web", Cost: 1, Unit: Requests}, `class "web" counts bytes, not requests`},
		{Request{Class: "api", Cost: 1, Unit: Bytes}, `class "api" counts requests, not bytes`},
		{Request{Class: "web", Cost: 1, Key: strings.Repeat("k", 257)}, "a key of 257 bytes: give 256 at most, a hash of a longer one"},
		{Request{Class: "web", Cost: 1, Wait: time.Minute}, "a wait of 1m0s: give 0 to 30s"},
	} {
		if _, err := a.Take(t.Context(), tt.r); err == nil || err.Error() != tt.want {
			t.Errorf("%+v:\n got %v\nwant %s", tt.r, err, tt.want)
		}
	}
	if d := ask(t, a, Request{Class: "web", Cost: 1000}); !d.Granted {
		t.Error("wrong requests have taken something")
	}
	if s := a.Stats(); s[1].TooLarge != 1 || s[0].TooLarge != 1 {
		t.Errorf("counted are %+v", s)
	}
}

func TestWhoWaitsIsServedInOrder(t *testing.T) {
	for _, key := range []string{"", "k"} {
		synctest.Test(t, func(t *testing.T) {
			a := newAdmission(t, web)
			ask(t, a, Request{Class: "web", Cost: 1000, Key: key})
			start := time.Now()
			var mu sync.Mutex
			var served []string
			for i := range 4 {
				go func() {
					d, err := a.Take(t.Context(), Request{Class: "web", Cost: 500, Key: key, Wait: 1600 * time.Millisecond})
					mu.Lock()
					defer mu.Unlock()
					served = append(served, fmt.Sprint(i, d.Granted, err, time.Since(start), d.RetryAfter))
				}()
				synctest.Wait()
			}
			if d := ask(t, a, Request{Class: "web", Cost: 1, Key: key}); d.Granted || d.RetryAfter != 1501*time.Millisecond {
				t.Errorf("behind those who wait: %+v", d)
			}
			if s := a.Stats()[0]; s.Waiting != 3 {
				t.Errorf("%d wait, want 3", s.Waiting)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait() // the race detector does not know that a sleep orders
			want := "[3 false <nil> 0s 2s 0 true <nil> 500ms 0s 1 true <nil> 1s 0s 2 true <nil> 1.5s 0s]"
			if fmt.Sprint(served) != want {
				t.Errorf("key %q: served are\n%v, want\n%v", key, served, want)
			}
		})
	}
}

// Who gives up takes nothing, and is in nobody's way.
func TestWhoGivesUpTakesNothing(t *testing.T) {
	for _, key := range []string{"", "k"} {
		synctest.Test(t, func(t *testing.T) {
			a := newAdmission(t, web)
			ask(t, a, Request{Class: "web", Cost: 1000, Key: key})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				_, err := a.Take(ctx, Request{Class: "web", Cost: 1000, Key: key, Wait: 2 * time.Second})
				ended <- err
			}()
			time.Sleep(900 * time.Millisecond)
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("the one who gave up got %v", err)
			}
			if d := ask(t, a, Request{Class: "web", Cost: 900, Key: key}); !d.Granted || d.Remaining != 0 {
				t.Errorf("after that: %+v", d)
			}
			if s := a.Stats()[0]; s.Waiting != 0 {
				t.Errorf("%d wait", s.Waiting)
			}
		})
	}
}

// A rate that is lowered while somebody waits: the wait ends in time, with nothing taken.
func TestAWaitEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(t, web)
		ask(t, a, Request{Class: "web", Cost: 1000})
		start, ended := time.Now(), make(chan Decision)
		go func() { ended <- ask(t, a, Request{Class: "web", Cost: 1000, Wait: time.Second}) }()
		synctest.Wait()
		slow := web
		slow.Rate = 8
		if err := a.Update([]Class{slow}); err != nil {
			t.Fatal(err)
		}
		if d := <-ended; d.Granted || time.Since(start) != time.Second || d.RetryAfter != 999*time.Second || d.Remaining != 1 {
			t.Errorf("after %v: %+v", time.Since(start), d)
		}
	})
}

func TestWaitersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(t, web)
		ask(t, a, Request{Class: "web", Cost: 1000})
		var wg sync.WaitGroup
		for range MaxWaiters {
			wg.Go(func() { ask(t, a, Request{Class: "web", Cost: 1, Wait: time.Second}) })
		}
		synctest.Wait()
		start := time.Now()
		if d := ask(t, a, Request{Class: "web", Cost: 1, Wait: time.Second}); d.Granted || time.Since(start) != 0 {
			t.Errorf("one too many waited %v: %+v", time.Since(start), d)
		}
		wg.Wait()
		if s := a.Stats()[0]; s.Waiting != 0 || s.Granted != MaxWaiters+1 || s.Refused != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestAnUpdateKeepsLevels(t *testing.T) {
	for _, key := range []string{"", "k"} {
		synctest.Test(t, func(t *testing.T) {
			a := newAdmission(t, web)
			ask(t, a, Request{Class: "web", Cost: 700, Key: key})
			faster := web
			faster.Rate, faster.Burst = 16*shaper.Kbit, 2000
			if err := a.Update([]Class{faster}); err != nil {
				t.Fatal(err)
			}
			if d := ask(t, a, Request{Class: "web", Cost: 301, Key: key}); d.Granted || d.Remaining != 300 || d.RetryAfter != 500*time.Microsecond || d.Limit != 2000 {
				t.Errorf("after the update: %+v", d)
			}
			if err := a.Update([]Class{faster, {Name: "bad"}}); err == nil {
				t.Error("a class without a rate is taken")
			}
			if err := a.Update([]Class{faster, faster}); err == nil {
				t.Error("a class twice is taken")
			}
			if err := a.Update([]Class{{Name: "web", Requests: RequestLimit{3600, 5}}}); err != nil {
				t.Fatal(err)
			}
			if d := ask(t, a, Request{Class: "web", Cost: 5, Key: key}); !d.Granted {
				t.Errorf("a class that counts something else: %+v", d)
			}
			if s := a.Stats()[0]; s.Granted != 2 || s.Refused != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// Full buckets are dropped for new keys; while none is full, a new key learns when one will be.
func TestKeysAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small := web
		small.Keys = 3
		a := newAdmission(t, small)
		ask(t, a, Request{Class: "web", Cost: 1000, Key: "slow"}) // the oldest, and the last to be full
		ask(t, a, Request{Class: "web", Cost: 400, Key: "middle"})
		ask(t, a, Request{Class: "web", Cost: 300, Key: "fast"})
		d := ask(t, a, Request{Class: "web", Cost: 1, Key: "new"})
		if d.Granted || d.RetryAfter != 300*time.Millisecond {
			t.Errorf("without room: %+v", d)
		}
		time.Sleep(d.RetryAfter - 1)
		if d := ask(t, a, Request{Class: "web", Cost: 1, Key: "new"}); d.Granted || d.RetryAfter != 1 {
			t.Errorf("a nanosecond too early: %+v", d)
		}
		time.Sleep(time.Nanosecond)
		if d := ask(t, a, Request{Class: "web", Cost: 1, Key: "new"}); !d.Granted || d.Remaining != 999 {
			t.Errorf("with room: %+v", d)
		}
		if d := ask(t, a, Request{Class: "web", Cost: 301, Key: "slow"}); d.Granted || d.Remaining != 300 {
			t.Errorf("one that is not full was dropped: %+v", d)
		}
		// Somebody waits on what is full next: it stays.
		ask(t, a, Request{Class: "web", Cost: 999, Key: "new"})
		go ask(t, a, Request{Class: "web", Cost: 1000, Key: "new", Wait: 5 * time.Second})
		synctest.Wait()
		time.Sleep(time.Second - 1)
		for i := range 3 {
			ask(t, a, Request{Class: "web", Cost: 1000, Key: fmt.Sprint("other", i)})
		}
		if s := a.Stats()[0]; s.Waiting != 1 || s.Keys != 3 {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if d := ask(t, a, Request{Class: "web", Cost: 1, Key: "new"}); d.Granted {
			t.Errorf("one that somebody waited on was dropped: %+v", d)
		}
	})
}

// A bucket that takes millennia to fill is not taken for full.
func TestAKeyThatFillsSlowlyIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(t, Class{Name: "web", Rate: 1, Burst: maxTokens, Keys: 1})
		time.Sleep(time.Second)
		for range 2 {
			ask(t, a, Request{Class: "web", Cost: maxTokens, Key: "a"}) // empties it
			if d := ask(t, a, Request{Class: "web", Cost: 1, Key: "b"}); d.Granted || !d.NoRoom || d.RetryAfter < 100*365*24*time.Hour {
				t.Errorf("without room: %+v", d)
			}
		}
	})
}

// A table that was large becomes small again.
func TestKeysThatAreFullGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(t, web)
		for i := range 1000 {
			ask(t, a, Request{Class: "web", Cost: 1, Key: fmt.Sprint("old", i)})
		}
		time.Sleep(time.Second)
		for i := range 500 {
			ask(t, a, Request{Class: "web", Cost: 1, Key: fmt.Sprint("new", i)})
		}
		if s := a.Stats()[0]; s.Keys != 500 {
			t.Errorf("%d keys", s.Keys)
		}
	})
}

// A million keys take no more memory than the number allowed.
func TestAMillionKeysTakeBoundedMemory(t *testing.T) {
	const perKey = 1 << 10 // with a key of the longest kind
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	a := newAdmission(t, Class{Name: "web", Rate: 8, Burst: 1000})
	before := heap()
	padding := strings.Repeat("x", MaxKey-8)
	granted := 0
	for i := range 1_000_000 {
		if ask(t, a, Request{Class: "web", Cost: 1000, Key: fmt.Sprintf("%s%08d", padding, i)}).Granted {
			granted++
		}
	}
	used := heap() - before
	t.Logf("%d granted, %d keys, %d bytes each", granted, a.Stats()[0].Keys, used/DefaultKeys)
	if granted != DefaultKeys || a.Stats()[0].Keys != DefaultKeys {
		t.Errorf("%d granted, %+v", granted, a.Stats())
	}
	if used > DefaultKeys*perKey {
		t.Errorf("%d bytes for each key", used/DefaultKeys)
	}
}

func TestADecisionWithoutAKeyAllocatesNothing(t *testing.T) {
	a := newAdmission(t, Class{Name: "web", Rate: shaper.Gbit, Burst: 1 << 30})
	for _, cost := range []int64{1, 1 << 30} {
		if n := testing.AllocsPerRun(1000, func() { ask(t, a, Request{Class: "web", Cost: cost}) }); n != 0 {
			t.Errorf("cost %d: %v allocations", cost, n)
		}
	}
}

// With many at once, not one more passes than there is.
func TestManyAtOnceTakeNoMoreThanThereIs(t *testing.T) {
	for _, key := range []string{"", "k"} {
		a := newAdmission(t, Class{Name: "api", Requests: RequestLimit{PerHour: 1, Burst: 1000}})
		var granted sync.Map
		var wg sync.WaitGroup
		for g := range 16 {
			wg.Go(func() {
				n := 0
				for range 200 {
					if ask(t, a, Request{Class: "api", Cost: 1, Key: key}).Granted {
						n++
					}
				}
				granted.Store(g, n)
			})
		}
		wg.Wait()
		sum := 0
		for _, n := range granted.Range {
			sum += n.(int)
		}
		if sum != 1000 {
			t.Errorf("%d of 3200 passed, want 1000", sum)
		}
	}
}

func BenchmarkTake(b *testing.B) {
	for _, key := range []string{"", "customer-17"} {
		b.Run("key="+key, func(b *testing.B) {
			a := New()
			if err := a.Update([]Class{{Name: "web", Rate: 100 * shaper.Gbit, Burst: shaper.GiB}}); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Take(b.Context(), Request{Class: "web", Cost: 1000, Key: key}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A policy may have rates and bursts that nobody can use up: they are not refused.
func TestMoreThanAnybodyNeedsIsTaken(t *testing.T) {
	a := newAdmission(t, Class{Name: "web", Rate: math.MaxInt64, Burst: math.MaxInt64}, Class{Name: "api", Requests: RequestLimit{PerHour: math.MaxInt64, Burst: math.MaxInt64}})
	for _, name := range []string{"web", "api"} {
		if d := ask(t, a, Request{Class: name, Cost: 1}); !d.Granted || d.Remaining < 1<<30 {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
