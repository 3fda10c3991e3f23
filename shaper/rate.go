package shaper

import (
	"fmt"
	"strings"
)

// Rate is a bandwidth in bits per second.
type Rate int64

// Decimal units of Rate, as tc names them.
const (
	Bit  Rate = 1
	Kbit      = 1000 * Bit
	Mbit      = 1000 * Kbit
	Gbit      = 1000 * Mbit
	Tbit      = 1000 * Gbit
)

var rates = quantity{
	kind: "rate", whole: "bits per second", example: "10mbit", factor: rateFactor,
	format: func(n int64) string { return Rate(n).String() },
}

// ParseRate reads a rate such as "1.5mbit". Upper and lower case are alike but for what is said below.
//
//	bit kbit mbit gbit tbit                 bits per second, powers of 1000, as in tc; "/s" may follow
//	kibit mibit gibit tibit                 the same in powers of 1024
//	byte/s kbyte/s mbyte/s gbyte/s tbyte/s  bytes per second, powers of 1000: 1mbyte/s is 8mbit
//	kibyte/s mibyte/s gibyte/s tibyte/s     the same in powers of 1024
//	kb/s mb/s kib/s ...                     short for kbyte/s, mbyte/s, kibyte/s, ...; also KB/s, but not Kb/s
//	(nothing)                               bits per second, as in tc
//
// Every other text is a *UnitError: what may mean bits or bytes (mbps, Mb/s, mb, m), a fraction
// of a bit, a number above what a Rate holds, a sign, a space. Nothing is rounded.
func ParseRate(s string) (Rate, error) {
	n, err := rates.parse(s)
	return Rate(n), err
}

// String returns the rate in the largest decimal unit that divides it, as in "1500kbit"; ParseRate reads it back.
func (r Rate) String() string {
	return formatUnits(int64(r), 1000, "bit", "kbit", "mbit", "gbit", "tbit")
}

// MarshalText implements encoding.TextMarshaler.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler; it is ParseRate.
func (r *Rate) UnmarshalText(b []byte) (err error) {
	*r, err = ParseRate(string(b))
	return err
}

func rateFactor(number, unit string) (f int64, reason, hint string) {
	prefix, f, base := cutPrefix(unit)
	either := func() (int64, string, string) {
		return 0, fmt.Sprintf("%q means bits to some tools and bytes to others", unit),
			fmt.Sprintf("write %s%sbit for bits or %[1]s%[2]sbyte/s for bytes", number, strings.ToLower(prefix))
	}
	switch strings.ToLower(base) {
	case "bit", "bit/s":
		return f, "", ""
	case "byte/s":
		return 8 * f, "", ""
	case "b/s":
		if base[0] == 'b' && (prefix == "" || prefix != strings.ToLower(prefix)) {
			return either() // b/s, Mb/s: there a small b is mostly a bit
		}
		return 8 * f, "", ""
	case "b", "bps":
		return either()
	case "":
		if prefix == "" {
			return f, "", ""
		}
		return either()
	}
	return 0, fmt.Sprintf("unknown unit %q", unit),
		"use bit, kbit, mbit, gbit, tbit, or byte/s, kbyte/s, mbyte/s for bytes"
}

// cutPrefix splits a unit into k, ki, m, mi, ..., what that multiplies by, and the rest.
func cutPrefix(unit string) (prefix string, f int64, base string) {
	if unit == "" {
		return "", 1, ""
	}
	power := strings.IndexByte("kmgt", unit[0]|0x20) + 1
	if power == 0 {
		return "", 1, unit
	}
	n, step := 1, int64(1000)
	if len(unit) > 1 && unit[1]|0x20 == 'i' {
		n, step = 2, 1024
	}
	f = 1
	for range power {
		f *= step
	}
	return unit[:n], f, unit[n:]
}
