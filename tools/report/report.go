// Package report prints the events of "go test -json" as a person wants to
// read them: a line per package, the output of what failed, a count.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// An event is one line of "go test -json"; see "go doc test2json".
type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string // "" for the package as a whole
	Elapsed    float64
	Output     string
}

// Print prints the events that it reads from r, and returns whether at least
// one test passed and none failed or was skipped.
func Print(r io.Reader, w io.Writer) (bool, error) {
	type key struct{ pkg, test string }
	var (
		passed, failed, skipped int
		built                   = true
		output                  = map[key][]byte{} // of what has not ended
		tests                   = map[string]int{} // passed, by package
	)
	for dec := json.NewDecoder(r); ; {
		var e event
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return false, fmt.Errorf("read events of go test: %w", err)
		}
		k := key{e.Package, e.Test}
		switch e.Action {
		case "output":
			output[k] = append(output[k], e.Output...)
			continue
		case "build-output":
			fmt.Fprint(w, e.Output)
			continue
		case "build-fail":
			built = false
			continue
		case "pass", "fail", "skip":
		default:
			continue
		}

		switch {
		case e.Test != "" && e.Action == "pass":
			passed++
			tests[e.Package]++
		case e.Test != "" && e.Action == "fail":
			failed++
			w.Write(output[k])
		case e.Test != "":
			skipped++
			w.Write(output[k])
		case e.Action == "pass":
			fmt.Fprintf(w, "ok    %-28s %5d tests %7.2f s\n", e.Package, tests[e.Package], e.Elapsed)
		case e.Action == "fail":
			built = false // or crashed, or timed out; a failed test has been counted already
			for unended, text := range output {
				if unended.pkg == e.Package {
					w.Write(text)
				}
			}
			fmt.Fprintf(w, "FAIL  %-28s %5d tests %7.2f s\n", e.Package, tests[e.Package], e.Elapsed)
		default:
			fmt.Fprintf(w, "  -   %-28s no tests\n", e.Package)
		}
		delete(output, k)
	}
	fmt.Fprintf(w, "\n%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	return built && passed > 0 && failed == 0 && skipped == 0, nil
}
