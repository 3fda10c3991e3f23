package main

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"shaperd/tools/report"
)

const (
	passes  = "\x16=== RUN   TestA\n\x16--- PASS: TestA (0.01s)\n\x16PASS\n"
	fails   = "\x16=== RUN   TestB\nno newline\x16--- FAIL: TestB (0.00s)\n\x16FAIL\n"
	crashes = "\x16=== RUN   TestC\npanic: stack"
)

func TestEvents(t *testing.T) {
	for _, tt := range []struct {
		name, stream string
		ok           bool
		shows        []string
	}{
		{"both pass", passes + "\x1e0\n" + passes + "\x1e0\n", true, []string{"ok    one", "ok    two", "2 passed"}},
		{"the next package runs after one that fails", fails + "\x1e1\n" + passes + "\x1e0\n", false, []string{"FAIL  one", "exit status 1", "ok    two"}},
		{"a crash shows what the program wrote", crashes + "\x1e2\n" + passes + "\x1e0\n", false, []string{"panic: stack", "exit status 2", "FAIL  one", "ok    two"}},
		{"the exit code counts, not what is printed", passes + "\x1e3\n" + passes + "\x1e0\n", false, []string{"exit status 3", "FAIL  one", "ok    two"}},
		{"the machine stops", crashes, false, []string{"panic: stack", "LAST WORDS", "FAIL  one", "FAIL  two", "did not run: the machine stopped in one"}},
		{"the machine stops between packages", passes + "\x1e0\n", false, []string{"ok    one", "LAST WORDS", "FAIL  two"}},
		{"a program that says nothing has no tests", "\x1e0\n\x1e0\n", false, []string{"0 passed"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := stream{bufio.NewReader(strings.NewReader(tt.stream))}
			packages := []testPackage{{path: "one"}, {path: "two"}}
			events, w := io.Pipe()
			go func() { w.CloseWithError(s.events(packages, w, func() string { return "LAST WORDS" })) }()
			var out strings.Builder
			ok, err := report.Print(events, &out)
			if ok != tt.ok || err != nil {
				t.Errorf("ok is %v, %v, want %v", ok, err, tt.ok)
			}
			for _, want := range tt.shows {
				if !strings.Contains(out.String(), want) {
					t.Errorf("output lacks %q:\n%s", want, out.String())
				}
			}
		})
	}
}
