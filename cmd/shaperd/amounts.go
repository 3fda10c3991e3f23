package main

import (
	"fmt"

	"shaperd/internal/admin"
	"shaperd/internal/figures"
	"shaperd/shaper"
)

// Short names for what tables are made of.
var (
	bits      = figures.Bits
	bytesOf   = figures.Bytes
	count     = figures.Count
	percentOf = figures.Percent
	bar       = figures.Bar
	short     = figures.Age
)

// rateOrNone writes a configured rate, exactly; 0 is none.
func rateOrNone(n int64) string {
	if n == 0 {
		return "-"
	}
	return shaper.Rate(n).String()
}

// spell writes the rates of a class or a link.
func spell(r admin.Rates) string {
	if r.PerHour > 0 {
		return fmt.Sprintf("%s burst %d", perTime(r.PerHour), r.Burst)
	}
	text := rateOrNone(r.Rate)
	if r.Ceil > 0 && r.Ceil != r.Rate {
		text += " up to " + rateOrNone(r.Ceil)
	}
	if r.Burst > 0 {
		text += " burst " + shaper.Size(r.Burst).String()
	}
	return text
}
