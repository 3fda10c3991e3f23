// Gotest runs "go test -json" with its own arguments and prints what a person
// wants to read: a line per package, and the output of what failed. It ends
// with a count and exits 1 when a test failed, when one was skipped, or when
// none ran. A skipped test proves nothing, so here it is a failure.
//
//	gotest -race ./...
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"shaperd/tools/report"
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
	ok, err := report.Print(events, w)
	_, _ = io.Copy(io.Discard, events) // go test must be able to end
	end := cmd.Wait()
	if ended := (*exec.ExitError)(nil); errors.As(end, &ended) {
		return false, err // Print has said what failed
	}
	return ok, errors.Join(err, end)
}
