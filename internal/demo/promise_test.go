package demo

import (
	"math"
	"testing"

	"shaperd/shaper"
)

func TestPromisesFollowHTB(t *testing.T) {
	const m = shaper.Mbit
	class := func(name string, rate, ceil shaper.Rate, priority uint8) shaper.Class {
		return shaper.Class{Name: name, Rate: rate, Ceil: ceil, Priority: priority}
	}
	for _, tt := range []struct {
		name    string
		link    shaper.Rate
		classes []shaper.Class
		quiet   string
		want    []float64 // mbit
		reasons []string
	}{
		{
			"the spare goes by guarantees inside a priority", 100 * m,
			[]shaper.Class{class("a", 30*m, 100*m, 1), class("b", 10*m, 100*m, 1)}, "",
			[]float64{75, 25}, []string{"30 own + 45 of 60 spare", "10 own + 15 of 60 spare"},
		},
		{
			"who reaches its ceil leaves the rest to those beside it", 100 * m,
			[]shaper.Class{class("a", 30*m, 40*m, 1), class("b", 10*m, 100*m, 1), class("c", 10*m, 100*m, 1)}, "",
			[]float64{40, 30, 30}, []string{"30 own + 10 borrowed = ceil", "10 own + 20 of 50 spare", "10 own + 20 of 50 spare"},
		},
		{
			"ceils are reached one after another", 100 * m,
			[]shaper.Class{class("a", 10*m, 15*m, 1), class("b", 10*m, 30*m, 1), class("c", 10*m, 0, 1)}, "",
			[]float64{15, 30, 55}, []string{"10 own + 5 borrowed = ceil", "10 own + 20 borrowed = ceil", "10 own + 45 of 70 spare"},
		},
		{
			"the lowest priority number borrows first", 100 * m,
			[]shaper.Class{class("late", 20*m, 100*m, 7), class("first", 10*m, 50*m, 0)}, "",
			[]float64{50, 50}, []string{"20 own + 30 of 30 spare", "10 own + 40 borrowed = ceil"},
		},
		{
			"nobody is starved of its guarantee", 100 * m,
			[]shaper.Class{class("greedy", 10*m, 100*m, 0), class("last", 20*m, 100*m, 7)}, "",
			[]float64{80, 20}, []string{"10 own + 70 of 70 spare", "20 own, nothing to borrow"},
		},
		{
			"without a higher ceil there is no loan", 100 * m,
			[]shaper.Class{class("capped", 20*m, 20*m, 0), class("other", 12500*shaper.Kbit, 25*m, 3)}, "",
			[]float64{20, 25}, []string{"20 own = ceil", "12.5 own + 12.5 borrowed = ceil"},
		},
		{
			"the guarantee of a quiet class is lent", 100 * m,
			[]shaper.Class{class("quiet", 60*m, 100*m, 0), class("other", 20*m, 100*m, 3)}, "quiet",
			[]float64{0, 100}, []string{"sends nothing", "20 own + 80 borrowed = ceil"},
		},
		{
			"ceils can leave a part of the link unused", 100 * m,
			[]shaper.Class{class("a", 10*m, 30*m, 0), class("b", 10*m, 40*m, 0)}, "",
			[]float64{30, 40}, []string{"10 own + 20 borrowed = ceil", "10 own + 30 borrowed = ceil"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := promises(shaper.Link{Rate: tt.link, Classes: tt.classes}, func(class string) bool { return class != tt.quiet })
			for i, p := range got {
				if math.Abs(p.total()/1e6-tt.want[i]) > 1e-9 || p.reason() != tt.reasons[i] {
					t.Errorf("%s: %v mbit, %q; want %v, %q", p.class.Name, p.total()/1e6, p.reason(), tt.want[i], tt.reasons[i])
				}
			}
		})
	}
}

// What the demo shows has to be worth seeing: a full link, all ways to be limited, and a class that gains.
func TestTheDemosPolicyPromisesAFullLinkInEachPhase(t *testing.T) {
	cfg, err := loadPolicy()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]float64{{40, 105, 20, 35}, {40, 0, 20, 140}, {40, 105, 20, 35}}
	for i, phase := range phases {
		for k, p := range promises(cfg.Download, func(class string) bool { return class != phase.quiet }) {
			if got := p.total() / 1e6; math.Abs(got-want[i][k]) > 1e-9 {
				t.Errorf("%s, %s: %v mbit, want %v", phase.name, p.class.Name, got, want[i][k])
			}
		}
	}
	for _, c := range cfg.Download.Classes {
		if connections[c.Name] < 2 {
			t.Errorf("class %s has %d connections: nothing to be fair to", c.Name, connections[c.Name])
		}
	}
}
