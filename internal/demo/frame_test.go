package demo

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write what is expected anew")

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s has changed: go test ./internal/demo -update, and look at the difference\n%s", path, got)
	}
}

// ratesFrame is a moment of the phase, in which each class has what it is promised times a factor.
func ratesFrame(t *testing.T, step int, factor float64) frame {
	t.Helper()
	cfg, err := loadPolicy()
	if err != nil {
		t.Fatal(err)
	}
	f := frame{elapsed: 7300 * time.Millisecond, total: DefaultLength, step: step, link: float64(cfg.Download.Rate), connections: 32}
	for _, p := range promises(cfg.Download, func(class string) bool { return class != phases[step].quiet }) {
		f.rates = append(f.rates, liveRate{p, p.total() * factor, connections[p.class.Name]})
	}
	return f
}

func burstsFrame(t *testing.T) frame {
	f := ratesFrame(t, 0, 1)
	f.step, f.elapsed, f.rates, f.bursts = len(phases), 13*time.Second, nil, sampleReport().Bursts
	f.bursts[3].Measured = 0
	return f
}

// styles are the ways in which a terminal may want it.
var styles = map[string]style{"plain": {false, blocks}, "color": {true, blocks}, "ascii": {false, ascii}}

func TestFrames(t *testing.T) {
	for _, tt := range []struct {
		name, style   string
		frame         frame
		width, height int
	}{
		{"all-60", "plain", ratesFrame(t, 0, 0.99), 60, 24},
		{"all-80", "plain", ratesFrame(t, 0, 0.99), 80, 24},
		{"all-120", "plain", ratesFrame(t, 0, 0.99), 120, 40},
		{"all-80-color", "color", ratesFrame(t, 0, 0.99), 80, 24},
		{"quiet-80", "plain", ratesFrame(t, 1, 1), 80, 24},
		{"quiet-80-ascii", "ascii", ratesFrame(t, 1, 1), 80, 24},
		{"behind-80", "plain", ratesFrame(t, 2, 0.3), 80, 24}, // as when it begins
		{"low-80", "plain", ratesFrame(t, 0, 1), 80, 17},
		{"bursts-80", "plain", burstsFrame(t), 80, 24},
		{"bursts-60", "plain", burstsFrame(t), 60, 24},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines := tt.frame.render(styles[tt.style], tt.width, tt.height)
			golden(t, "frame-"+tt.name+".txt", strings.Join(lines, "\n")+"\n")
			if len(lines) > tt.height {
				t.Errorf("%d lines on %d", len(lines), tt.height)
			}
			for _, l := range lines {
				if n := utf8.RuneCountInString(l); tt.style != "color" && n > tt.width {
					t.Errorf("%d columns on %d: %s", n, tt.width, l)
				}
			}
		})
	}
}

// A terminal may be of any size, and rates may be above what is promised.
func TestFramesOfAnySizeAreDrawn(t *testing.T) {
	frames := []frame{burstsFrame(t)}
	for _, factor := range []float64{0, 0.001, 1, 1.5} {
		frames = append(frames, ratesFrame(t, 0, factor), ratesFrame(t, 1, factor))
	}
	for i := range frames {
		mustFitAnySize(t, &frames[i])
	}
}

func TestLinesTellASecondEach(t *testing.T) {
	var out bytes.Buffer
	v := newView(&out, false)
	v.open()
	for now := time.Duration(0); now < 5*time.Second; now += 20 * time.Millisecond {
		if !v.due(now) {
			continue
		}
		f := ratesFrame(t, int(now/(2*time.Second)), 0.99)
		f.elapsed = now
		v.draw(&f)
	}
	bursts := burstsFrame(t)
	v.draw(&bursts)
	v.close()
	golden(t, "lines.txt", out.String())
}

func TestStyleOfATerminal(t *testing.T) {
	for _, tt := range []struct {
		env   map[string]string
		color bool
		own   string
	}{
		{nil, true, "█"},
		{map[string]string{"NO_COLOR": "1"}, false, "█"},
		{map[string]string{"LANG": "de_DE.UTF-8"}, true, "█"},
		{map[string]string{"LANG": "C.utf8"}, true, "█"},
		{map[string]string{"LANG": "C"}, true, "#"},
		{map[string]string{"LANG": "en_US.UTF-8", "LC_ALL": "POSIX"}, true, "#"},
		{map[string]string{"LANG": "en_US.UTF-8", "LC_CTYPE": "en_US.ISO-8859-1", "NO_COLOR": "1"}, false, "#"},
	} {
		if s := styleOf(func(key string) string { return tt.env[key] }); s.color != tt.color || s.own != tt.own {
			t.Errorf("%v: color %v, bars of %s", tt.env, s.color, s.own)
		}
	}
}

// sampleReport is that of a demo in which each class got what it was promised.
func sampleReport() report {
	var r report
	for i, measured := range [][]float64{{39.98e6, 105.1e6, 20e6, 34.9e6}, {40.01e6, 0, 20.01e6, 139.9e6}, {40e6, 104.8e6, 19.99e6, 35.2e6}} {
		cfg, err := loadPolicy()
		if err != nil {
			panic(err)
		}
		p := phaseResult{Phase: phases[i].name, Seconds: 3.4}
		for k, promise := range promises(cfg.Download, func(class string) bool { return class != phases[i].quiet }) {
			p.Classes = append(p.Classes, newClassResult(&promise, connections[promise.class.Name], measured[k], 0.9996))
		}
		r.Phases = append(r.Phases, p)
	}
	r.Bursts = []burstResult{
		{"interactive", 128 << 10, 129_700, "its burst"}, {"web", 192 << 10, 190_000, "its burst"},
		{"backup", 10_000, 9_500, "leaky: one turn"}, {"bulk", 160 << 10, 158_000, "its burst"},
	}
	return r
}

func TestReports(t *testing.T) {
	good, bad := sampleReport(), sampleReport()
	bad.Phases[2].Classes[1].Measured, bad.Phases[2].Classes[1].Off = 102.7e6, -2.19
	bad.Bursts[3].Measured = 168_000
	for _, tt := range []struct {
		name, style string
		report      report
		width       int
	}{
		{"60", "plain", good, 60},
		{"80", "plain", good, 80},
		{"120", "plain", good, 120},
		{"off-80", "plain", bad, 80},
		{"off-80-color", "color", bad, 80},
	} {
		t.Run(tt.name, func(t *testing.T) {
			golden(t, "report-"+tt.name+".txt", strings.Join(tt.report.table(styles[tt.style], tt.width), "\n")+"\n")
		})
	}
	if err := good.err(); err != nil {
		t.Errorf("a report in order: %v", err)
	}
	want := `off by more than 2 %: web by -2.2 % in "web is back"; the burst of bulk by +2.5 %`
	if err := bad.err(); fmt.Sprint(err) != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

func TestABurstThatIsSmallerIsNotWrong(t *testing.T) {
	r := sampleReport()
	r.Bursts[0].Measured = 1000
	if err := r.err(); err != nil {
		t.Error(err)
	}
}
