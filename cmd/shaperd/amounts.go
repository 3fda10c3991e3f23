package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"shaperd/internal/admin"
	"shaperd/shaper"
)

// Amounts as people read them: three digits and a unit.

// bits writes bits per second.
func bits(n float64) string { return scaled(n, 1000, "bit", "kbit", "mbit", "gbit", "tbit") }

// bytesOf writes bytes.
func bytesOf(n uint64) string {
	return scaled(float64(n), 1024, "B", "KiB", "MiB", "GiB", "TiB", "PiB")
}

// count writes how many.
func count(n uint64) string {
	return strings.TrimSuffix(scaled(float64(n), 1000, " ", " k", " M", " G", " T", " P"), " ")
}

func scaled(n, step float64, units ...string) string {
	i := 0
	for n >= step*0.9995 && i < len(units)-1 {
		n, i = n/step, i+1
	}
	switch {
	case i == 0 || n >= 99.95:
		return strconv.FormatFloat(n, 'f', 0, 64) + units[i]
	case n >= 9.995:
		return strconv.FormatFloat(n, 'f', 1, 64) + units[i]
	}
	return strconv.FormatFloat(n, 'f', 2, 64) + units[i]
}

// rateOrNone writes a configured rate, exactly; 0 is none.
func rateOrNone(n int64) string {
	if n == 0 {
		return "-"
	}
	return shaper.Rate(n).String()
}

// spell writes the rates of a class or a link.
func spell(r admin.Rates) string {
	text := rateOrNone(r.Rate)
	if r.Ceil > 0 && r.Ceil != r.Rate {
		text += " up to " + rateOrNone(r.Ceil)
	}
	if r.Burst > 0 {
		text += " burst " + shaper.Size(r.Burst).String()
	}
	return text
}

// percentOf is how much of whole a part is.
func percentOf(part, whole uint64) string {
	if part == 0 || whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*float64(part)/float64(whole))
}

// bar draws n against most in as many cells, in eighths.
func bar(n float64, most int64, cells int) string {
	if most <= 0 {
		return ""
	}
	eighths := min(int(n/float64(most)*float64(8*cells)+0.5), 8*cells)
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text + strings.Repeat("·", cells-(eighths+7)/8)
}

func sum(all map[string]uint64) (n uint64) {
	for _, one := range all {
		n += one
	}
	return n
}

// short writes a time with its two largest units.
func short(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}
