package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"shaperd/configs"
	"shaperd/shaper"
)

// kernelLinks are those of the demo's policy.
func kernelLinks(t *testing.T) []shaper.Link {
	t.Helper()
	p, err := configs.Parse("kernel.yaml", kernelPolicy)
	if err != nil {
		t.Fatal(err)
	}
	return []shaper.Link{p.Interfaces[0].Egress, p.Interfaces[0].Ingress}
}

// kernelDemoAt is a demo at a time, in which each class has had what it was promised.
func kernelDemoAt(t *testing.T, now time.Duration) *kernelDemo {
	t.Helper()
	d := &kernelDemo{begins: []time.Duration{0, 7500 * time.Millisecond, 13500 * time.Millisecond}, total: 16 * time.Second}
	for n, link := range kernelLinks(t) {
		dir := &direction{name: []string{"upload", "download"}[n], link: link}
		for i := range link.Classes {
			dir.flows = append(dir.flows, &flows{class: &link.Classes[i]})
		}
		for at := kernelSample; at <= now; at += kernelSample {
			d.step = 0
			for d.step < len(kernelPhases) && at >= d.begins[d.step+1] {
				d.step++
			}
			quiet := kernelPhases[min(d.step, len(kernelPhases)-1)].quiet
			dir.expect(promises(link, func(class string) bool { return class != quiet }))
			for i, f := range dir.flows {
				f.samples = append(f.samples, sample{at, dir.promised[i].total()})
			}
		}
		d.directions = append(d.directions, dir)
	}
	return d
}

func TestKernelFrames(t *testing.T) {
	for _, tt := range []struct {
		name, style   string
		at            time.Duration
		width, height int
	}{
		{"all-60", "plain", 5 * time.Second, 60, 24},
		{"all-80", "plain", 5 * time.Second, 80, 24},
		{"all-120", "plain", 5 * time.Second, 120, 40},
		{"quiet-80-color", "color", 11 * time.Second, 80, 24},
		{"quiet-80-ascii", "ascii", 11 * time.Second, 80, 24},
		{"repair-80", "plain", 15500 * time.Millisecond, 80, 24},
		{"low-80", "plain", 11 * time.Second, 80, 15},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines := kernelDemoAt(t, tt.at).frame(tt.at).render(styles[tt.style], tt.width, tt.height)
			golden(t, "kernel-"+tt.name+".txt", strings.Join(lines, "\n")+"\n")
			mustFit(t, lines, tt.style, tt.width, tt.height)
		})
	}
}

// mustFit reports lines that a terminal of that size has no room for.
func mustFit(t *testing.T, lines []string, style string, width, height int) {
	t.Helper()
	if len(lines) > height {
		t.Errorf("%d lines on %d", len(lines), height)
	}
	for _, l := range lines {
		if n := utf8.RuneCountInString(l); style != "color" && n > width {
			t.Errorf("%d columns on %d: %s", n, width, l)
		}
	}
}

func TestKernelFramesOfAnySizeAreDrawn(t *testing.T) {
	mustFitAnySize(t, kernelDemoAt(t, 14*time.Second).frame(14*time.Second))
}

// mustFitAnySize draws a frame on terminals of many sizes.
func mustFitAnySize(t *testing.T, f moment) {
	t.Helper()
	for width := range 150 {
		height := width % 40
		mustFit(t, f.render(style{false, blocks}, width, height), "plain", max(width, minWidth), max(height, 1))
	}
}

// linesOf is what a demo of a length prints where it is not on a terminal.
func linesOf(length time.Duration, at func(now time.Duration) moment) string {
	var out bytes.Buffer
	v := newView(&out, false)
	v.open()
	for now := time.Duration(0); now < length; now += 100 * time.Millisecond {
		if v.due(now) {
			v.draw(at(now))
		}
	}
	v.close()
	return out.String()
}

func TestKernelLinesTellASecondEach(t *testing.T) {
	golden(t, "kernel-lines.txt", linesOf(16*time.Second, func(now time.Duration) moment { return kernelDemoAt(t, now).frame(now) }))
	var none bytes.Buffer
	v := newView(&none, true)
	v.open()
	v.draw(kernelDemoAt(t, time.Second).frame(time.Second))
	v.close()
	if none.Len() > 0 {
		t.Errorf("a view that is to be quiet says %q", &none)
	}
}

// kernelSampleReport is that of a demo in which each class got a little less than it was promised.
func kernelSampleReport(t *testing.T) kernelReport {
	r := kernelReport{Repair: repairResult{"tc qdisc del dev wan0 root", 0.1214}}
	for _, k := range kernelPhases {
		p := kernelPhaseResult{Phase: k.name, Seconds: k.length.Seconds()}
		for n, link := range kernelLinks(t) {
			d := directionResult{Direction: []string{"upload", "download"}[n]}
			for i, promised := range promises(link, func(class string) bool { return class != k.quiet }) {
				c := kernelClassResult{Class: link.Classes[i].Name, Promised: promised.total(), Measured: promised.total() * 0.998, Reason: promised.reason()}
				if !promised.quiet {
					c.Off = percentOff(c.Measured, c.Promised)
				}
				d.Classes = append(d.Classes, c)
			}
			p.Directions = append(p.Directions, d)
		}
		r.Phases = append(r.Phases, p)
	}
	return r
}

func TestKernelReports(t *testing.T) {
	good, bad := kernelSampleReport(t), kernelSampleReport(t)
	off := &bad.Phases[1].Directions[0].Classes[3]
	off.Measured, off.Off = off.Promised*0.97, -3
	for _, tt := range []struct {
		name, style string
		report      kernelReport
	}{{"report", "plain", good}, {"report-color", "color", good}, {"report-off", "plain", bad}} {
		t.Run(tt.name, func(t *testing.T) {
			lines := tt.report.table(styles[tt.style])
			golden(t, "kernel-"+tt.name+".txt", strings.Join(lines, "\n")+"\n")
			mustFit(t, lines, tt.style, 80, 24)
		})
	}
	if err := good.err(); err != nil {
		t.Errorf("a report in order: %v", err)
	}
	if want := `off by more than 2 %: bulk by -3.0 % in "web is quiet", upload`; fmt.Sprint(bad.err()) != want {
		t.Errorf("%v\nwant %s", bad.err(), want)
	}
}

func TestTheEndHasThePictureAndTheTable(t *testing.T) {
	d := kernelDemoAt(t, 16*time.Second)
	d.report = kernelSampleReport(t)
	var out bytes.Buffer
	if err := d.print(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "kernel-end.txt", out.String())
}

var programDir string

func TestMain(m *testing.M) {
	var err error
	if programDir, err = os.MkdirTemp("", "shaperd-demo-test-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(programDir)
	os.Exit(code)
}

// buildOnce builds the program, with what is compiled already for the tests.
var buildOnce = sync.OnceValues(func() (string, error) {
	program := filepath.Join(programDir, "shaperd")
	build := []string{"build", "-o", program, "shaperd/cmd/shaperd"}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		build = slices.Insert(build, 1, "-race")
	}
	out, err := exec.Command("go", build...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, err
})

func shaperdForTest(t *testing.T) string {
	t.Helper()
	program, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// A whole demo on the kernel, too short for exact rates, with a promise that no link could keep.
func TestAKernelClassThatDoesNotGetItsPromiseIsAnError(t *testing.T) {
	tooMuch := func(link shaper.Link, sends func(string) bool) []promise {
		all := promises(link, sends)
		all[0].own = 2 * float64(link.Rate)
		return all
	}
	short := []kernelPhase{kernelPhases[0], kernelPhases[1]}
	for i := range short {
		short[i].settle, short[i].length = time.Second, 2*time.Second // a retransmission after the repair takes one
	}
	var out bytes.Buffer
	err := runKernel(t.Context(), &out, KernelOptions{Program: shaperdForTest(t), JSON: true}, short, tooMuch)
	var off *OffError
	if !errors.As(err, &off) || !strings.Contains(off.What, `voice by -`) {
		t.Fatalf("error %v, want that voice is off", err)
	}
	var r kernelReport
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v in %s", err, &out)
	}
	if r.Repair.Seconds <= 0 || len(r.Phases) != len(short) {
		t.Fatalf("%d phases, repaired in %v s", len(r.Phases), r.Repair.Seconds)
	}
	for i, p := range r.Phases {
		for _, d := range p.Directions {
			for _, c := range d.Classes {
				if c.Class != short[i].quiet && c.Measured <= 0 {
					t.Errorf("%q, %s: nothing of %s arrived", p.Phase, d.Direction, c.Class)
				}
			}
		}
	}
}

func TestADaemonThatDoesNotStartIsAnErrorWithItsWords(t *testing.T) {
	err := runKernel(t.Context(), &bytes.Buffer{}, KernelOptions{Program: "/bin/false"}, kernelPhases, promises)
	if want := "the daemon on the router ended:\n"; fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestAnInterruptedKernelDemoLeavesTheTerminalAsItWas(t *testing.T) {
	program := shaperdForTest(t)
	mustLeaveTheTerminal(t, "7/8 of the height", func(ctx context.Context, out *os.File) error {
		return runKernel(ctx, out, KernelOptions{Program: program}, kernelPhases, promises)
	})
}
