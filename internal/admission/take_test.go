package admission

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"shaperd/internal/store/storetest"
	"shaperd/shaper"
)

// The time to wait is exact: with the bucket as it was so long ago it is granted,
// and not a microsecond before.
func TestTheTimeToWaitIsExact(t *testing.T) {
	redis := storetest.Start(t)
	for _, rate := range []shaper.Rate{7, 8 * shaper.Kbit, 123456789, 400 * shaper.Gbit} {
		c := Class{Name: "web", Rate: rate, Burst: 1 << 40, Shared: true}
		aged(redis, c)
		l, _ := c.limits()
		for _, rem := range []int64{0, 1, 999_999} {
			for _, missing := range []int64{1, 8_000, 123_456_789} {
				wait := earns(&class{limits: l}, missing, rem)
				for early, want := range map[time.Duration]int64{0: 1, time.Microsecond: 0} {
					// The bucket lacks so many bits, and was so as long ago as the time to wait.
					redis.Do("SET", "shaperd:{edge:web}:take:bucket", fmt.Sprintf("%d %d 0 %d", 10_000_000_000-missing, rem, rate))
					got := at(redis, c, 10_000_000_000, wait-early)
					if got != want {
						t.Errorf("rate %v, %d bits and %d millionths, %v less %v: %d, want %d", rate, missing, rem, wait, early, got, want)
					}
				}
			}
		}
	}
}

// at runs the script with a clock of its own: the time since 1970.
func at(redis *storetest.Server, c Class, cost int64, t time.Duration) (granted int64) {
	granted, _ = lives(redis, c, cost, t)
	return granted
}

// lives is at, and how long the bucket lives.
func lives(redis *storetest.Server, c Class, cost int64, t time.Duration) (granted int64, life time.Duration) {
	us := t.Microseconds()
	source := strings.Replace(takeSource, "redis.call('TIME')", fmt.Sprintf("{%d, %d}", us/1_000_000, us%1_000_000), 1)
	source = strings.Replace(source, "level, rem}", "level, redis.call('PTTL', KEYS[1])}", 1)
	v := redis.Do("EVAL", source, 2, "shaperd:{edge:web}:take:bucket", "shaperd:{edge:web}:take:made",
		int64(c.Rate), 8*int64(c.Burst), cost).([]any)
	return v[0].(int64), time.Duration(v[2].(int64) * 1e6)
}

// Nothing drifts: what is taken as it is earned, at odd times, is the rate to the bit.
func TestNothingIsLostBetweenDecisions(t *testing.T) {
	redis := storetest.Start(t)
	c := Class{Name: "web", Rate: 123456789, Burst: 1 << 30, Shared: true}
	aged(redis, c)
	var clock, granted int64 // µs, bits
	for i := range int64(2000) {
		clock += 1 + i*7919%1013
		want := int64(c.Rate)*clock/1_000_000 - granted
		if want == 0 {
			continue
		}
		if at(redis, c, want+1, time.Duration(clock)*time.Microsecond) != 0 {
			t.Fatalf("after %d µs: a bit more than the rate is granted", clock)
		}
		if at(redis, c, want, time.Duration(clock)*time.Microsecond) != 1 {
			t.Fatalf("after %d µs: the last bit of %d is refused", clock, want)
		}
		granted += want
	}
}

// A clock that is set back stops earning for no longer than a moment, and mints nothing.
func TestAClockThatIsSetBack(t *testing.T) {
	redis := storetest.Start(t)
	c := Class{Name: "web", Rate: 8, Burst: 100, Shared: true} // a byte a second
	aged(redis, c)
	for i, step := range []struct {
		seconds, bytes, want int64
	}{
		{1000, 100, 1}, {1001, 2, 0}, {1001, 1, 1},
		{500, 1, 0}, {501, 2, 0}, {501, 1, 1}, {502, 1, 1}, {502, 1, 0},
	} {
		if got := at(redis, c, 8*step.bytes, time.Duration(step.seconds)*time.Second); got != step.want {
			t.Errorf("step %d, %+v: %d", i, step, got)
		}
	}
	// So does the marker of the data set.
	redis.Do("DEL", "shaperd:{edge:web}:take:bucket")
	redis.Do("SET", "shaperd:{edge:web}:take:made", "900000000 0 8 800 900000000")
	if at(redis, c, 8, 600*time.Second) != 0 || at(redis, c, 8, 601*time.Second) != 1 || at(redis, c, 8, 601*time.Second) != 0 {
		t.Error("a marker of the future")
	}
}

// marker is when the data set was made, in seconds.
func marker(redis *storetest.Server) (made int64) {
	_, _ = fmt.Sscan(redis.Do("GET", "shaperd:{edge:web}:take:made").(string), &made) // else 0
	return made / 1_000_000
}

// Whatever policies hosts have, and in whatever order they come: nothing is earned at
// another rate than that of who used the bucket last, and what has expired is never taken to have more than
// a bucket that is kept for ever.
func TestAnotherPolicyMintsNothing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	redis := storetest.Start(t)
	policies := []Class{ // bits a second, bytes
		{Rate: 800, Burst: 1000}, {Rate: 80, Burst: 1000}, {Rate: 800, Burst: 10_000}, // then slower, and larger
		{Rate: 80_000, Burst: 100_000}, {Rate: 8, Burst: 10}, {Rate: 8000, Burst: 500}, // as long to fill, and sooner
	}
	clock, c, granted := time.Duration(1e6)*time.Second, policies[0], 0
	level, rate, written, expires := int64(0), c.Rate, clock, clock // of the bucket that is kept; its level in millionths of a bit
	for range 4000 {
		if random.IntN(5) == 0 {
			c = policies[random.IntN(len(policies))]
		}
		clock += time.Duration(random.Int64N([]int64{1e6, 1e8, 1e9}[random.IntN(3)])) * time.Microsecond
		if clock >= expires {
			redis.Do("DEL", "shaperd:{edge:web}:take:bucket")
		}
		burst := 8 * int64(c.Burst)
		have := min(level+(clock-written).Microseconds()*int64(rate), burst*1e6)
		cost := 1 + random.Int64N(burst)
		ok, life := lives(redis, c, cost, clock)
		switch {
		case ok == 1 && have < cost*1e6:
			t.Fatalf("at %v: %d bits are granted of %d, at rate %d and burst %d", clock, cost, have/1e6, c.Rate, c.Burst)
		case ok == 1:
			granted++
			have -= cost * 1e6
		case c.Rate == rate:
			continue
		}
		level, rate, written = have, c.Rate, clock
		if life >= 0 {
			expires = clock + life - time.Millisecond
		}
	}
	if granted < 100 {
		t.Errorf("only %d were granted", granted)
	}
}

// A new rate counts from when somebody comes with it, whether it gets something or not.
func TestAnotherRateCountsFromNowOn(t *testing.T) {
	redis := storetest.Start(t)
	slow := Class{Name: "web", Rate: 8, Burst: 1000}
	fast := Class{Name: "web", Rate: 800, Burst: 1000}
	aged(redis, slow)
	for i, step := range []struct {
		c                   Class
		second, bytes, want int64
	}{
		{slow, 10_000, 1000, 1},
		{fast, 10_005, 6, 0}, {fast, 10_005, 5, 1}, // and not 500
		{fast, 10_006, 100, 1},
		{fast, 10_007, 101, 0}, {slow, 10_008, 102, 0}, {slow, 10_010, 3, 1}, // not 102: it may have been slow since 10,006
	} {
		if got := at(redis, step.c, 8*step.bytes, time.Duration(step.second)*time.Second); got != step.want {
			t.Errorf("step %d, %+v: %d", i, step, got)
		}
	}
}

// Keys that are refused take no places, with a new rate neither.
func TestARefusedKeyTakesNoPlace(t *testing.T) {
	redis := storetest.Start(t)
	for _, rate := range []shaper.Rate{8, 16} {
		a := host(t, redis, Class{Name: "web", Rate: rate, Burst: 1000, Keys: 3, Shared: true})
		for i := range 5 {
			if d := ask(t, a, Request{Class: "web", Cost: 1000, Key: fmt.Sprint("k", i)}); d.Granted || d.NoRoom {
				t.Errorf("rate %v, key %d: %+v", rate, i, d)
			}
		}
		if n := redis.Do("ZCARD", "shaperd:{edge:web}:take:keys"); n != int64(0) {
			t.Errorf("rate %v: %v keys", rate, n)
		}
	}
}

// After a change of policy, a bucket that is not there has what it had before: it was full.
func TestWhatExpiredIsFullWithAnotherPolicyToo(t *testing.T) {
	redis := storetest.Start(t)
	fast := Class{Name: "web", Rate: 800, Burst: 1000}   // full in 10 s
	slow := Class{Name: "web", Rate: 80, Burst: 1000}    // in 100 s
	large := Class{Name: "web", Rate: 800, Burst: 10000} // in 100 s
	aged(redis, fast)
	for i, step := range []struct {
		c             Class
		second, bytes int64
	}{
		{fast, 10_000, 1000}, {slow, 10_001, 1000}, {slow, 10_002, 1000}, {fast, 10_003, 1000},
		{large, 10_010, 1000}, {large, 10_020, 1100}, // it earns at the lowest rate
		{large, 12_000, 10_000}, {fast, 12_001, 1000},
	} {
		redis.Do("DEL", "shaperd:{edge:web}:take:bucket") // it has expired
		has := int64(0)
		for _, bit := range []int64{8192, 4096, 2048, 1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1} { // by asking
			if has+bit <= int64(step.c.Burst) && granted(redis, step.c, has+bit, step.second) {
				has += bit
			}
		}
		if has != step.bytes {
			t.Errorf("step %d, at %d: %d bytes, want %d", i, step.second, has, step.bytes)
		}
	}
	made := marker(redis)
	for second := int64(13_000); second < 15_000; second += 7 { // both all the time
		granted(redis, fast, 1, second)
		granted(redis, slow, 1, second+1)
		granted(redis, large, 1, second+2)
	}
	if marker(redis) > 13_002 {
		t.Errorf("hosts that differ have the marker made anew, from %d", made)
	}
}

// granted asks a bucket that has expired.
func granted(redis *storetest.Server, c Class, bytes, second int64) bool {
	redis.Do("DEL", "shaperd:{edge:web}:take:bucket")
	return at(redis, c, 8*bytes, time.Duration(second)*time.Second) == 1
}
