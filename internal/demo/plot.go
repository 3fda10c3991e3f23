package demo

import (
	"math"
	"strings"
	"time"
)

// A plot is rates over time as an area: two samples in each character's width,
// four levels in its height.
type plot struct {
	top     float64       // what fills it to the top
	total   time.Duration // what its width stands for
	samples []sample
}

const (
	dotsAcross = 2
	dotsDown   = 4
)

// brailleDots are the bits of a braille character (U+2800) that fill one of its
// columns from below, by how many dots.
var brailleDots = [dotsAcross][dotsDown + 1]rune{{0, 0x40, 0x44, 0x46, 0x47}, {0, 0x80, 0xa0, 0xb0, 0xb8}}

// draw returns the plot's lines, the upper one first.
func (p *plot) draw(s style, width, height int) []string {
	columns := p.columns(width * dotsAcross)
	lines := make([]string, height)
	for row := range height {
		below := (height - 1 - row) * dotsDown
		var b strings.Builder
		for cell := range width {
			var heights [dotsAcross]int
			for i := range heights {
				heights[i] = p.dots(columns[cell*dotsAcross+i], height*dotsDown) - below
			}
			b.WriteRune(s.area(heights))
		}
		lines[row] = b.String()
	}
	return lines
}

// area returns the character that has so many dots in its columns; more than it has fill it.
func (s style) area(heights [dotsAcross]int) rune {
	if s.glyphs == ascii {
		return rune(" .:##"[min(max(heights[0], 0), dotsDown)])
	}
	r := rune(0x2800)
	for i, h := range heights {
		r |= brailleDots[i][min(max(h, 0), dotsDown)]
	}
	if r == 0x2800 {
		return ' ' // not every font has a braille character without dots
	}
	return r
}

// dots returns how many of all dots a rate fills: one at least if anything came.
func (p *plot) dots(rate float64, all int) int {
	if rate <= 0 || p.top <= 0 {
		return 0
	}
	return min(max(int(math.Round(rate/p.top*float64(all))), 1), all)
}

// columns returns the mean rate in each of n parts of the total time. One
// without a sample has that of the one before, up to the last sample.
func (p *plot) columns(n int) []float64 {
	sums, counts := make([]float64, n), make([]int, n)
	last := -1
	for _, s := range p.samples {
		i := min(int(float64(s.at)/float64(p.total)*float64(n)), n-1)
		sums[i] += s.rate
		counts[i]++
		last = max(last, i)
	}
	for i := range n {
		switch {
		case counts[i] > 0:
			sums[i] /= float64(counts[i])
		case i > 0 && i <= last:
			sums[i] = sums[i-1]
		}
	}
	return sums
}
