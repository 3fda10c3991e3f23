package admission

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A store that comes and goes does not have all keys gone through at each change:
// an outage ends when the store has answered for a while.
func TestAnOutageEndsWhenTheStoreHasSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := web.limits() // 1000 bytes a second, and as much at once
		o := newAlone(l, 100, 0.1)
		holds := func(what string, want int64) {
			t.Helper()
			if got := int64(o.keys.limits.burst); got != want {
				t.Errorf("%s: buckets hold %d, want %d", what, got, want)
			}
		}
		holds("at first", 100)
		for range 1000 {
			o.failed()
			holds("away", 1000)
			time.Sleep(time.Millisecond)
			o.answered()
			holds("back, but for how long", 1000)
			time.Sleep(settled - 1)
		}
		o.answered()
		holds("a nanosecond too early", 1000)
		time.Sleep(time.Nanosecond)
		o.answered()
		holds("settled", 100)
	})
}

// Where nobody asked after the store had come back, the next outage starts with no
// more than another would.
func TestAnOutageAfterAQuietTimeMintsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := web.limits()
		for _, key := range []string{"", "k"} {
			o := newAlone(l, 100, 0.1)
			b := o.bucket
			level := func() int64 {
				if key != "" {
					held, _ := o.keys.hold(key)
					defer o.keys.release(held)
					b = held.TokenBucket
				}
				return int64(b.Tokens())
			}
			o.failed()
			if n := level(); n != 100 {
				t.Errorf("key %q: an outage starts with %d", key, n)
			}
			o.answered()
			time.Sleep(time.Hour)
			if n := level(); n != 1000 {
				t.Errorf("key %q: an hour has earned %d", key, n)
			}
			o.failed()
			if n := level(); n != 100 {
				t.Errorf("key %q: the next outage starts with %d", key, n)
			}
		}
	})
}

// What a store that comes and goes costs, with many keys.
func BenchmarkAFlappingStore(b *testing.B) {
	l, _ := web.limits()
	o := newAlone(l, 10_000, 0.1)
	for i := range 10_000 {
		o.keys.take(fmt.Sprint(i), 1)
	}
	for b.Loop() {
		o.failed()
		o.answered()
	}
}
