package demo

import (
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"shaperd/shaper"
)

// The whole of it, but shorter: what rates it measures in that time is not the test's business.
func TestKernelDemoShapesBothWaysAndShowsTheRepair(t *testing.T) {
	program := filepath.Join(t.TempDir(), "shaperd")
	if out, err := exec.Command("go", "build", "-o", program, "shaperd/cmd/shaperd").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var out strings.Builder
	err := runKernel(t.Context(), &out, program, time.Second, time.Second)
	if off := (*OffError)(nil); err != nil && !errors.As(err, &off) {
		t.Fatal(err)
	}
	for _, want := range []string{
		`(?m)^upload  `, `(?m)^download  `, `(?m)^  voice .* 4 own \+ 4 borrowed = ceil$`, `(?m)^  bulk .* 20 own \+ 9 of 27 spare$`,
		`behind the daemon's back: repaired after \d+ ms`, `[▁-█]{4}`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("nothing of the form %q in:\n%s", want, &out)
		}
	}
}

func TestKernelFrame(t *testing.T) {
	row := func(name string, rate shaper.Rate, samples ...float64) kernelRow {
		return kernelRow{promise{class: &shaper.Class{Name: name, Rate: rate, Ceil: rate}, own: float64(rate)}, samples}
	}
	f := kernelFrame{
		elapsed: 3 * time.Second, total: 16 * time.Second, steps: []string{"upload", "download", "repair"}, step: 1,
		about: "From the server to the client.", link: 10e6,
		rows: []kernelRow{row("voice", 4*shaper.Mbit, 0, 2e6, 4e6, 4e6, 4e6, 4e6, 8e6), row("bulk", 6*shaper.Mbit, 6e6, 6e6, 6e6, 6e6)},
	}
	got := strings.Join(f.render(style{glyphs: blocks}, 80, 24), "\n")
	want := ` shaperd demo --kernel: a router shapes between client and server

 ✓ upload ▸ download   repair                                          3 of 16 s
   From the server to the client.

 voice       ▁▄▇▇▇▇█                                            5.0 of 4.0 mbit
             4 own = ceil; priority 0

 bulk        ▇▇▇▇                                               6.0 of 6.0 mbit
             6 own = ceil; priority 0

 link        ██████████████████████████████████████████████   11.0 of 10.0 mbit

 time goes to the right; a line at ▇ is what the policy promises`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if lines := f.render(style{glyphs: ascii}, 80, 5); len(lines) != 5 {
		t.Errorf("%d lines where there is room for 5", len(lines))
	}
}
