package shaper

import (
	"math"
	"sync/atomic"
	"time"
)

// A lane is the token bucket while nobody waits: one word, changed by compare
// and swap. It counts in a unit that makes both a byte and what a nanosecond
// earns whole numbers, so a refill is one multiplication and rounds nothing:
//
//	unit = gcd(rate, 8e9) / 8e9 byte
//
// It serves one rate and one burst for a bounded time. After that, or when
// anything else has to change, it is closed for good and what was left is
// settled under the lock; a new lane may then be opened.
//
// No byte is granted twice. Every grant is a swap of spent from v to w with
// w ≤ earned(t), where t is the granter's reading of the clock, and a granter
// whose v reaches back further than a full bucket first moves up to
// earned(t) − full. So what is granted from the reading t1 to the reading t2
// is at most earned(t2) − earned(t1) + full, in whatever order the threads run.
// Closing swaps in a value that no granter accepts: a late one changes nothing.
type lane struct {
	spent atomic.Int64 // earned − spent is the level, as yet without the upper bound

	start   time.Duration // of the bucket's clock; earned is 0 there
	horizon time.Duration // how long after start earned still fits
	perNano int64         // units earned in a nanosecond
	perByte int64         // units in a byte
	full    int64         // units in the burst
	burst   int64         // bytes
	rate    Rate
}

const (
	laneClosed = math.MaxInt64
	laneUnits  = 1 << 61 // bounds earned, full and a debt each, so that their differences fit an int64

	// A rate that would need a new lane more often than this stays under the lock. So does a burst above
	// laneUnits: 288 MB at a rate like 123456789 bit/s, 288 GB at whole kbits, 288 TB at whole mbits.
	leastHorizon = time.Millisecond
)

// openLane returns a lane that holds credit + rem/8e9 bytes at start, or nil if the numbers do not fit one.
func openLane(rate Rate, burst, credit int64, rem uint64, start time.Duration) *lane {
	unit := gcd(gcd(perByte, uint64(rate)), rem)
	l := &lane{start: start, perNano: int64(rate) / int64(unit), perByte: int64(perByte / unit), burst: burst, rate: rate}
	l.horizon = time.Duration(laneUnits / l.perNano)
	if most := laneUnits / l.perByte; burst > most || credit > most || credit <= -most || l.horizon < leastHorizon {
		return nil
	}
	l.full = burst * l.perByte
	l.spent.Store(-(credit*l.perByte + int64(rem/unit)))
	return l
}

// A verdict is what became of a request.
type verdict uint8

const (
	granted verdict = iota
	short           // of tokens: later perhaps
	tooMuch         // more than the burst
	moved           // the state is not here: ask under the lock
)

// take takes n bytes, all or none.
func (l *lane) take(n int64, now time.Duration) verdict {
	dt := max(now-l.start, 0) // a clock read before the lane was opened earns nothing
	if dt > l.horizon {
		return moved
	}
	if n > l.burst {
		return tooMuch
	}
	earned, cost := int64(dt)*l.perNano, n*l.perByte
	for {
		spent := l.spent.Load()
		if spent == laneClosed {
			return moved
		}
		base := max(spent, earned-l.full) // a full bucket earns nothing
		if earned-base < cost {
			return short
		}
		if l.spent.CompareAndSwap(spent, base+cost) {
			return granted
		}
	}
}

// level returns what the lane holds now, as credit + rem/8e9 bytes at the time at; false when it is closed.
// Beyond the horizon at lies before now.
func (l *lane) level(now time.Duration) (credit int64, rem uint64, at time.Duration, ok bool) {
	spent := l.spent.Load()
	if spent == laneClosed {
		return 0, 0, 0, false
	}
	credit, rem, at = l.split(spent, now)
	return credit, rem, at, true
}

// close ends the lane and returns what it held. Only the first call may use the result.
func (l *lane) close(now time.Duration) (credit int64, rem uint64, at time.Duration) {
	return l.split(l.spent.Swap(laneClosed), now)
}

func (l *lane) split(spent int64, now time.Duration) (credit int64, rem uint64, at time.Duration) {
	dt := min(max(now-l.start, 0), l.horizon)
	units := min(int64(dt)*l.perNano-spent, l.full)
	credit = units / l.perByte
	if credit*l.perByte > units {
		credit-- // below zero, when others read the clock later and took what was earned meanwhile
	}
	unit := perByte / uint64(l.perByte)
	return credit, uint64(units-credit*l.perByte) * unit, l.start + dt
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
