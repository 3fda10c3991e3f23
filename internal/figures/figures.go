package figures

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Bits writes bits per second.
func Bits(n float64) string { return scaled(n, 1000, "bit", "kbit", "mbit", "gbit", "tbit") }

// Bytes writes bytes.
func Bytes(n uint64) string {
	return scaled(float64(n), 1024, "B", "KiB", "MiB", "GiB", "TiB", "PiB")
}

// Count writes how many.
func Count(n uint64) string {
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

// Percent is how much of whole a part is; a dash where there is nothing.
func Percent(part, whole uint64) string {
	if part == 0 || whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*float64(part)/float64(whole))
}

// Bar draws n against most in as many cells, in eighths.
func Bar(n float64, most int64, cells int) string {
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

// Age writes a time with its two largest units.
func Age(d time.Duration) string {
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
