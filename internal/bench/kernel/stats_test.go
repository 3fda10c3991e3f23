package main

import (
	"strings"
	"testing"
	"time"

	"shaperd/configs"
	"shaperd/shaper"
)

// steady are packets of 1,250 bytes, one each ms: 10 mbit.
func steady(packets int) (list []arrival) {
	for i := range packets {
		list = append(list, arrival{time.Duration(i) * time.Millisecond, 1250, 1})
	}
	return list
}

func TestSteadyPacketsHaveNoSpread(t *testing.T) {
	if got := spread(steady(1000)); got > time.Nanosecond {
		t.Errorf("a spread of %s", got)
	}
	if got := busiest(steady(1000), 10*time.Millisecond); got != 12500 {
		t.Errorf("%d bytes in 10 ms at 12500 each", got)
	}
}

// Ten packets at once each 10 ms: nine gaps of nothing, and one of 10 ms.
func TestLumpsAreSpread(t *testing.T) {
	var list []arrival
	for i := range 1000 {
		list = append(list, arrival{time.Duration(i) * 10 * time.Millisecond, 12500, 10})
	}
	if got := spread(list).Round(time.Microsecond); got != 3*time.Millisecond {
		t.Errorf("a spread of %s, want 3ms", got)
	}
	if got := busiest(list, 11*time.Millisecond); got != 25000 {
		t.Errorf("%d bytes in 11 ms, want two lumps", got)
	}
}

func TestMedian(t *testing.T) {
	if got := median([]int{9, 1, 5}); got != 5 {
		t.Errorf("of three: %d", got)
	}
	if got := median([]int{9, 1, 5, 7}); got != 7 {
		t.Errorf("of four: %d", got)
	}
}

// The file has the same policy as the values.
func TestManyClassesAreAValidPolicy(t *testing.T) {
	c, text := many()
	p, err := configs.Parse("many.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	egress, own := p.Interfaces[0].Egress, c.Interfaces[0].Egress
	if len(egress.Classes) != manyClasses || len(p.Rules.List) != manyRules || p.Rules.Default != c.Rules.Default || egress.Rate != own.Rate {
		t.Errorf("%d classes, %d rules, default %s, %s", len(egress.Classes), len(p.Rules.List), p.Rules.Default, egress.Rate)
	}
	for i := range egress.Classes {
		if g, w := egress.Classes[i], own.Classes[i]; g.Rate != w.Rate || g.Ceil != w.Ceil || g.Name != w.Name || g.Priority != w.Priority || g.Default != w.Default {
			t.Fatalf("class %d: %+v, want %+v", i, g, w)
		}
	}
}

func TestPlainTCIsTheSamePolicy(t *testing.T) {
	want := `qdisc replace dev eth0 root handle 1: htb default 10
class add dev eth0 parent 1: classid 1:1 htb rate 1gbit
class add dev eth0 parent 1:1 classid 1:10 htb rate 250mbit ceil 1gbit
class add dev eth0 parent 1:1 classid 1:11 htb rate 250mbit ceil 1gbit
`
	if got := plain(link(borrowing, shaper.Gbit)); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestOthersAreWhatTheProcessorsDidForNobodyOfOurs(t *testing.T) {
	if got := busy("cpu  100 20 30 4000 50 60 70 8 0 0\ncpu0 1 2 3\n"); got != 1580*time.Millisecond {
		t.Errorf("busy for %s, want 1.58s", got)
	}
	if got := busy("nonsense"); got != 0 {
		t.Errorf("busy for %s", got)
	}
	begin := time.Now()
	before := usage{at: begin, all: 10 * time.Second, ours: time.Second, cores: 2}
	now := usage{at: begin.Add(10 * time.Second), all: 18 * time.Second, ours: 4 * time.Second, cores: 2}
	if got := before.others(now); got != 0.25 {
		t.Errorf("others had %v of the processors, want a quarter", got)
	}
	if now := usageNow(); now.all <= 0 || now.ours <= 0 {
		t.Errorf("now %+v", now)
	}
}

func TestOptions(t *testing.T) {
	o, err := parse([]string{"-only", "rates,loss", "-quick"})
	if err != nil || len(o.only) != 2 || o.rounds != 2 {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := parse([]string{"-only", "rate"}); err == nil || !strings.Contains(err.Error(), "there is no such part; there are rates, leaky, classify, apply, loss") {
		t.Errorf("%v", err)
	}
	if o, err := parse(nil); err != nil || len(o.only) != len(parts) {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestReports(t *testing.T) {
	b := &bench{}
	b.add("rate", "1 %", "2 %", "± 1 %", true)
	b.add("cost", "5 ns", "", "", false)
	b.add("loss", "3", "", "0", false)
	if got := b.missed(); got != 1 {
		t.Errorf("%d missed, want 1: no target, none missed", got)
	}
	text := b.markdownText()
	for _, want := range []string{"| measured | shaperd | plain tc | target |  |\n|---|---|---|---|---|\n", "| rate | 1 % | 2 % | ± 1 % | met |\n", "| cost | 5 ns |  |  |  |\n", "| loss | 3 |  | 0 | missed |\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}
