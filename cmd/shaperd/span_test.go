package main

import (
	"testing"
	"time"
)

func TestTimesMayBeDays(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "1d": day, "2d12h": 60 * time.Hour, "1.5d": 36 * time.Hour, "365d": 365 * day,
	} {
		var s span
		if err := s.Set(text); err != nil || time.Duration(s) != want {
			t.Errorf("%s is %v, %v, want %v", text, time.Duration(s), err, want)
		}
	}
	for _, text := range []string{"", "0s", "500ms", "-1d", "1d-1h-24h", "d", "1", "1x", "1dd", "1h1d", "NaNd", "Infd", "366d", "1e9d"} {
		if err := new(span).Set(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// A weekday alone is not clear a week ahead.
func TestTimesFarAheadHaveADate(t *testing.T) {
	now := time.Date(2026, 3, 6, 12, 0, 0, 0, time.UTC)
	for in, want := range map[time.Duration]string{
		time.Hour: "Fri 13:00:00", 5 * 24 * time.Hour: "Wed 12:00:00", 7 * 24 * time.Hour: "Fri 2026-03-13 12:00:00",
	} {
		if got := when(now.Add(in), now); got != want {
			t.Errorf("in %v: %s, want %s", in, got, want)
		}
	}
}
