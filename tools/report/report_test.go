package report

import (
	"io"
	"strings"
	"testing"
)

const (
	passes = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"quiet\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.1}
`
	fails = `{"Action":"output","Package":"p","Test":"TestB","Output":"got 1, want 2\n"}
{"Action":"fail","Package":"p","Test":"TestB"}
`
	skips = `{"Action":"output","Package":"p","Test":"TestC","Output":"needs root\n"}
{"Action":"skip","Package":"p","Test":"TestC"}
`
	crashes = `{"Action":"output","Package":"p","Test":"TestD","Output":"panic: stack\n"}
{"Action":"fail","Package":"p","Elapsed":1}
`
	ends   = `{"Action":"pass","Package":"p","Elapsed":1}` + "\n"
	noneIn = `{"Action":"skip","Package":"empty"}` + "\n"
	broken = `{"Action":"build-output","ImportPath":"p","Output":"x.go:1:1: undefined: y\n"}
{"Action":"build-fail","ImportPath":"p"}
{"Action":"fail","Package":"p"}
`
)

func TestPrint(t *testing.T) {
	for _, tt := range []struct {
		name, events string
		ok           bool
		shows        []string
		hides        string
	}{
		{"all pass", passes + ends, true, []string{"ok    p", "1 passed, 0 failed, 0 skipped"}, "quiet"},
		{"a package without tests is no skip", passes + ends + noneIn, true, []string{"empty", "0 skipped"}, "quiet"},
		{"a failure shows its output", passes + fails, false, []string{"got 1, want 2", "1 passed, 1 failed"}, "quiet"},
		{"a skip fails", passes + skips + ends, false, []string{"needs root", "1 skipped"}, "quiet"},
		{"a crash shows the test it was in", passes + crashes, false, []string{"panic: stack", "FAIL  p"}, "quiet"},
		{"a package that does not build", broken, false, []string{"x.go:1:1: undefined: y", "FAIL  p"}, "ok"},
		{"no test at all", noneIn, false, []string{"0 passed"}, "ok"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			ok, err := Print(strings.NewReader(tt.events), &out)
			if ok != tt.ok || err != nil {
				t.Errorf("Print = %v, %v, want %v", ok, err, tt.ok)
			}
			for _, want := range tt.shows {
				if !strings.Contains(out.String(), want) {
					t.Errorf("output lacks %q:\n%s", want, out.String())
				}
			}
			if strings.Contains(out.String(), tt.hides) {
				t.Errorf("output shows %q:\n%s", tt.hides, out.String())
			}
		})
	}
	if _, err := Print(strings.NewReader("not JSON"), io.Discard); err == nil {
		t.Error("garbage was read without an error")
	}
}
