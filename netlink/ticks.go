package netlink

import (
	"math"
	"math/bits"
	"strconv"

	"shaperd/shaper"
)

// The kernel keeps a burst as the time that it takes at the rate, in ticks of
// 64 ns that fill 32 bits (275 s).
const (
	tick      = 64 // ns
	maxTicks  = math.MaxUint32
	secondsNs = 1e9
)

// ticks returns the time that n bytes take at the rate, rounded up, and false
// when it does not fit.
func ticks(n shaper.Size, r shaper.Rate) (uint32, bool) {
	perSecond := bytesPerSecond(r)
	if perSecond == 0 {
		return maxTicks, false
	}
	hi, lo := bits.Mul64(uint64(n), secondsNs/tick)
	if hi >= perSecond {
		return maxTicks, false
	}
	t, rest := bits.Div64(hi, lo, perSecond)
	if rest > 0 {
		t++
	}
	return uint32(min(t, maxTicks)), t <= maxTicks
}

// ticksToSize returns the bytes that pass at the rate in the time, to the nearest.
func ticksToSize(t uint32, r shaper.Rate) shaper.Size {
	hi, lo := bits.Mul64(uint64(t), bytesPerSecond(r))
	n, rest := bits.Div64(hi, lo, secondsNs/tick)
	if rest >= secondsNs/tick/2 {
		n++
	}
	return shaper.Size(n)
}

// sameBurst reports whether two bursts are the same at the rate but for
// rounding: the kernel's to ticks, or tc's to whole microseconds.
func sameBurst(a, b shaper.Size, r shaper.Rate) bool {
	tolerance := shaper.Size(bytesPerSecond(r)/1e6) + 2 + max(a, b)>>20
	return a-b <= tolerance && b-a <= tolerance
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// sizeText writes a size as tc takes it, in bytes.
func sizeText(s shaper.Size) string { return decimal(int64(s)) + "b" }
