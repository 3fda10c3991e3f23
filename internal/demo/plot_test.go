package demo

import (
	"strings"
	"testing"
	"time"
)

// levels is a plot of so many seconds whose rates, a second each, are given in tenths of the top.
func levels(total int, tenths ...float64) plot {
	p := plot{top: 10, total: time.Duration(total) * time.Second}
	for i, v := range tenths {
		p.samples = append(p.samples, sample{time.Duration(i)*time.Second + time.Second/2, v})
	}
	return p
}

func TestPlots(t *testing.T) {
	for _, tt := range []struct {
		name          string
		plot          plot
		width, height int
		want          string
	}{
		{"steps", levels(8, 0, 1.25, 2.5, 3.75, 5, 6.25, 7.5, 8.75), 4, 2, "  ⢀⣴|⢀⣴⣿⣿"},
		{"one line", levels(4, 2.5, 5, 7.5, 10), 2, 1, "⣠⣾"},
		{"not over yet", levels(8, 10, 10, 10), 4, 1, "⣿⡇  "},
		{"a trace is seen", levels(4, 0.01, 0, 0.01, 0), 2, 1, "⡀⡀"},
		{"too much is cut off", levels(2, 30, 10), 1, 2, "⣿|⣿"},
		{"fewer samples than columns", levels(2, 5, 10), 2, 1, "⢠⣼"},
		{"more samples than columns", levels(8, 0, 10, 0, 10, 10, 10, 10, 10), 2, 1, "⣤⣿"},
		{"nothing promised", plot{total: time.Second, samples: []sample{{0, 5}}}, 2, 1, "  "},
		{"nothing yet", levels(4), 3, 2, "   |   "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(tt.plot.draw(style{glyphs: blocks}, tt.width, tt.height), "|"); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
	p := levels(8, 0, 0, 2.5, 2.5, 5, 5, 10, 10)
	if got := strings.Join(p.draw(style{glyphs: ascii}, 4, 2), "|"); got != "   #| :##" {
		t.Errorf("in ASCII %q", got)
	}
}
