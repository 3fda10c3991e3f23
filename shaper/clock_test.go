package shaper

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

// logUniform returns a number from 1 to most with every magnitude as likely as any other.
func logUniform(r *rand.Rand, most int64) int64 {
	return min(most, int64(math.Exp(r.Float64()*math.Log(float64(most))))+r.Int64N(2))
}

// earnedExactly is rate·dt + rem in units of 1/8e9 byte.
func earnedExactly(r Rate, dt time.Duration, rem uint64) *big.Int {
	v := new(big.Int).Mul(big.NewInt(int64(r)), big.NewInt(int64(dt)))
	return v.Add(v, new(big.Int).SetUint64(rem))
}

func TestEarnIsExactAtEveryMagnitude(t *testing.T) {
	random := seeded(t)
	for range 200_000 {
		r := Rate(logUniform(random, math.MaxInt64))
		dt := time.Duration(logUniform(random, math.MaxInt64))
		rem := random.Uint64N(perByte)
		q, m := new(big.Int).QuoRem(earnedExactly(r, dt, rem), big.NewInt(perByte), new(big.Int))
		n, left := earn(r, dt, rem)
		if q.IsInt64() && (n != q.Int64() || left != m.Uint64()) || !q.IsInt64() && n != math.MaxInt64 {
			t.Fatalf("%d bit/s in %d ns with %d: %d, %d; want %v, %v", r, dt, rem, n, left, q, m)
		}
	}
}

func TestTimeToEarnIsTheShortestThatSuffices(t *testing.T) {
	random := seeded(t)
	for range 200_000 {
		r := Rate(logUniform(random, math.MaxInt64))
		n := logUniform(random, math.MaxInt64)
		rem := random.Uint64N(perByte)
		want := new(big.Int).Mul(big.NewInt(n), big.NewInt(perByte))
		want.Sub(want, new(big.Int).SetUint64(rem))
		want.Add(want, big.NewInt(int64(r)-1)).Quo(want, big.NewInt(int64(r)))
		got := timeToEarn(r, n, rem)
		if want.IsInt64() && int64(got) != want.Int64() || !want.IsInt64() && got != math.MaxInt64 {
			t.Fatalf("%d bytes at %d bit/s with %d: %d ns, want %v", n, r, rem, got, want)
		}
	}
}

func TestEarnInPiecesIsEarnAtOnce(t *testing.T) {
	random := seeded(t)
	for _, r := range []Rate{8 * Kbit, 56_001, 10 * Mbit, 123_456_789, Gbit, 399_999_999_999, 400 * Gbit} {
		var sum int64
		var rem uint64
		var at time.Duration
		for at < 3*time.Hour {
			var n int64
			dt := time.Duration(logUniform(random, int64(time.Minute)))
			n, rem = earn(r, dt, rem)
			sum, at = sum+n, at+dt
		}
		if once, left := earn(r, at, 0); sum != once || rem != left {
			t.Errorf("%v over %v: %d and %d in pieces, %d and %d at once", r, at, sum, rem, once, left)
		}
	}
}

func TestNothingEarnsNothing(t *testing.T) {
	for _, c := range []struct {
		r  Rate
		dt time.Duration
	}{{0, time.Second}, {-1, time.Second}, {Mbit, 0}, {Mbit, -time.Second}} {
		if n, left := earn(c.r, c.dt, 7); n != 0 || left != 7 {
			t.Errorf("%d bit/s in %v: %d bytes and %d", c.r, c.dt, n, left)
		}
	}
	for _, c := range []struct {
		r    Rate
		n    int64
		want time.Duration
	}{{Mbit, 0, 0}, {Mbit, -1, 0}, {0, 0, 0}, {0, 1, math.MaxInt64}, {-1, 1, math.MaxInt64}} {
		if got := timeToEarn(c.r, c.n, 7); got != c.want {
			t.Errorf("%d bytes at %d bit/s: %v, want %v", c.n, c.r, got, c.want)
		}
	}
}
