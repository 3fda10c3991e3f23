package main

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// A span is a time that something lasts, as a flag: Go's durations, and days
// before them, such as 2d or 1d12h.
type span time.Duration

const longest = 365 * 24 * time.Hour // that the daemon takes

// Type names the kind of flag.
func (*span) Type() string { return "time" }

func (s *span) String() string { return time.Duration(*s).String() }

// Set reads a flag's value.
func (s *span) Set(text string) error {
	var all time.Duration
	rest := text
	if days, after, ok := strings.Cut(text, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || !(n >= 0 && n < 1e4) {
			return errors.New("write a time such as 90s, 1h30m or 2d")
		}
		all, rest = time.Duration(n*24*float64(time.Hour)), after
	}
	if rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil {
			return errors.New("write a time such as 90s, 1h30m or 2d")
		}
		all += d
	}
	if all < time.Second || all > longest {
		return errors.New("give a second to 365d")
	}
	*s = span(all)
	return nil
}
