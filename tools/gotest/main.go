// Gotest runs "go test -json" with its own arguments and prints what a person
// wants to read: a line per package, and the output of what failed. It ends
// with a count and exits 1 when a test failed, when one was skipped, or when
// none ran. A skipped test proves nothing, so here it is a failure.
//
//	gotest -race ./...
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

func main() {
	ok, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// run reports whether every test of go test args passed.
func run(args []string, w io.Writer) (bool, error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	ok, err := report(events, w)
	_, _ = io.Copy(io.Discard, events) // go test must be able to end
	end := cmd.Wait()
	if ended := (*exec.ExitError)(nil); errors.As(end, &ended) {
		return false, err // report has said what failed
	}
	return ok, errors.Join(err, end)
}

// An event is one line of "go test -json"; see "go doc test2json".
type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string // "" for the package as a whole
	Elapsed    float64
	Output     string
}

// report prints the events that it reads from r, and returns whether at least
// one test passed and none failed or was skipped.
func report(r io.Reader, w io.Writer) (bool, error) {
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
