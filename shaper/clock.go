package shaper

import (
	"math"
	"math/bits"
	"time"
)

// The byte clock. A rate of r bits/s earns r·dt/8e9 bytes in dt nanoseconds.
// Both functions below are exact: what does not make a whole byte stays in a
// remainder, counted in units of 1/8e9 byte, and is carried to the next call.

// perByte is how many bit·nanoseconds per second make one byte.
const perByte = 8_000_000_000

// earn returns the whole bytes that r earns in dt with the remainder rem
// carried in, and the remainder to carry out. A negative dt earns nothing.
// What exceeds an int64 saturates at its maximum.
func earn(r Rate, dt time.Duration, rem uint64) (n int64, left uint64) {
	if dt <= 0 || r <= 0 {
		return 0, rem
	}
	hi, lo := bits.Mul64(uint64(r), uint64(dt))
	lo, carry := bits.Add64(lo, rem, 0)
	hi += carry
	if hi == 0 {
		n := lo / perByte
		return saturate(n), lo - n*perByte
	}
	if hi >= perByte {
		return math.MaxInt64, 0
	}
	q, left := bits.Div64(hi, lo, perByte)
	return saturate(q), left
}

// timeToEarn returns the shortest time after which earn(r, t, rem) returns at
// least n bytes; math.MaxInt64 when r earns nothing or it takes longer than that.
func timeToEarn(r Rate, n int64, rem uint64) time.Duration {
	if n <= 0 {
		return 0
	}
	if r <= 0 {
		return math.MaxInt64
	}
	hi, lo := bits.Mul64(uint64(n), perByte)
	lo, borrow := bits.Sub64(lo, rem, 0)
	hi -= borrow
	lo, carry := bits.Add64(lo, uint64(r)-1, 0)
	hi += carry
	if hi == 0 {
		return time.Duration(saturate(lo / uint64(r)))
	}
	if hi >= uint64(r) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(r))
	return time.Duration(saturate(q))
}

func saturate(n uint64) int64 {
	if n > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(n)
}
