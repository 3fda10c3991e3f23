package demo

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// sharedDemoAt is a demo at a time, in which each relay has had what it was promised.
func sharedDemoAt(t *testing.T, now time.Duration) *sharedDemo {
	t.Helper()
	class, err := sharedClass()
	if err != nil {
		t.Fatal(err)
	}
	d := &sharedDemo{class: class, steps: sharedSteps}
	for _, s := range d.steps {
		d.begins = append(d.begins, d.total)
		d.total += s.settle + s.length
	}
	for i := range relays {
		d.hosts = append(d.hosts, &host{name: fmt.Sprint("relay", i+1)})
	}
	d.promised = promisedShares(float64(class.Budget), &d.steps[0])
	for at := kernelSample; at <= now; at += kernelSample {
		for d.step < len(d.steps)-1 && at >= d.begins[d.step+1] {
			d.step++
		}
		d.promised = promisedShares(float64(class.Budget), &d.steps[d.step])
		for i, h := range d.hosts {
			h.samples = append(h.samples, sample{at, d.promised[i]})
		}
	}
	return d
}

func TestSharedFrames(t *testing.T) {
	for _, tt := range []struct {
		name, style   string
		at            time.Duration
		width, height int
	}{
		{"first-80", "plain", 0, 80, 24},
		{"four-60", "plain", 8 * time.Second, 60, 24},
		{"four-80", "plain", 8 * time.Second, 80, 24},
		{"away-80-color", "color", 16 * time.Second, 80, 24},
		{"away-80-ascii", "ascii", 16 * time.Second, 80, 24},
		{"back-80", "plain", 24 * time.Second, 80, 24},
		{"back-120", "plain", 24 * time.Second, 120, 40},
		{"low-80", "plain", 11 * time.Second, 80, 12},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines := sharedDemoAt(t, tt.at).frame(tt.at).render(styles[tt.style], tt.width, tt.height)
			golden(t, "shared-"+tt.name+".txt", strings.Join(lines, "\n")+"\n")
			mustFit(t, lines, tt.style, tt.width, tt.height)
		})
	}
}

func TestSharedFramesOfAnySizeAreDrawn(t *testing.T) {
	d := sharedDemoAt(t, 20*time.Second)
	d.hosts[1].samples[199].rate *= 3 // above the rate
	mustFitAnySize(t, d.frame(20*time.Second))
}

func TestSharedLinesTellASecondEach(t *testing.T) {
	golden(t, "shared-lines.txt", linesOf(25*time.Second, func(now time.Duration) moment { return sharedDemoAt(t, now).frame(now) }))
}

// sharedSampleReport is that of a demo in which each relay got a little less than it was promised.
func sharedSampleReport() sharedReport {
	r := sharedReport{Rate: 30e6, Burst: 64 << 10}
	for i := range sharedSteps {
		s := sharedStepResult{Step: sharedSteps[i].name, Seconds: sharedSteps[i].length.Seconds()}
		for n, promised := range promisedShares(r.Rate, &sharedSteps[i]) {
			s.add(fmt.Sprint("relay", n+1), promised, promised*0.99)
		}
		s.Most, s.AtMost = 371_000, r.atMost()
		r.Steps = append(r.Steps, s)
	}
	return r
}

func TestSharedReports(t *testing.T) {
	good, bad := sharedSampleReport(), sharedSampleReport()
	off := &bad.Steps[1].Relays[2]
	off.Measured, off.Off = off.Promised*0.9, -10
	bad.Steps[4].Most = 452_000
	for _, tt := range []struct {
		name, style string
		report      sharedReport
	}{{"report", "plain", good}, {"report-color", "color", good}, {"report-off", "plain", bad}} {
		t.Run(tt.name, func(t *testing.T) {
			lines := tt.report.table(styles[tt.style])
			golden(t, "shared-"+tt.name+".txt", strings.Join(lines, "\n")+"\n")
			mustFit(t, lines, tt.style, 80, 24)
		})
	}
	if err := good.err(); err != nil {
		t.Errorf("a report in order: %v", err)
	}
	want := `off by more than 8 %: relay3 by -10.0 % in "one wants 4"; the sum by 11464 bytes above what may pass in 100 ms in "Redis is back"`
	if fmt.Sprint(bad.err()) != want {
		t.Errorf("%v\nwant %s", bad.err(), want)
	}
}

func TestTheEndOfSharesHasThePictureAndTheTable(t *testing.T) {
	d := sharedDemoAt(t, 25*time.Second)
	d.report = sharedSampleReport()
	var out bytes.Buffer
	if err := d.print(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "shared-end.txt", out.String())
}

func TestARateIsDividedByDemand(t *testing.T) {
	for _, tt := range []struct{ wants, shares []float64 }{
		{[]float64{all, 0, 0}, []float64{30, 0, 0}},
		{[]float64{all, all, all}, []float64{10, 10, 10}},
		{[]float64{4, all, all}, []float64{4, 13, 13}},
		{[]float64{all, 12, 4}, []float64{14, 12, 4}},
		{[]float64{1, 2, 3}, []float64{1, 2, 3}},
		{nil, nil},
	} {
		if got := divide(30, tt.wants); !slices.Equal(got, tt.shares) {
			t.Errorf("30 for those who want %v: %v, want %v", tt.wants, got, tt.shares)
		}
	}
}

func TestStepsWithoutRoomNameTheCurrentOne(t *testing.T) {
	p := painter{style: style{false, blocks}}
	p.steps([]string{"a long name", "another long name", "the last"}, 1, 3*time.Second, 9*time.Second, 40)
	if want := " ▸ another long name (2 of 3)   3 of 9 s"; p.lines[0] != want {
		t.Errorf("%q\nwant %q", p.lines[0], want)
	}
}
