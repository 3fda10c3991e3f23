package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// mark precedes an exit code, which ends what one program wrote. See init.
const mark = 0o36

// control precedes what a test program says to test2json.
const control = 0x16

// A stream is what the test machine writes to its second serial line.
type stream struct{ *bufio.Reader }

// next copies to w what the next program writes, and returns its exit code. It
// is io.EOF if the machine stops before.
func (s stream) next(w io.Writer) (code string, err error) {
	for {
		text, err := s.ReadSlice(mark)
		if _, err := w.Write(bytes.TrimSuffix(text, []byte{mark})); err != nil {
			return "", err
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		} else if err != nil {
			return "", err
		}
		code, err := s.ReadString('\n')
		return strings.TrimSuffix(code, "\n"), err
	}
}

// events writes the results of the packages, in the order in which they ran,
// as "go test -json" does. A package that has none fails: one that was running
// when the machine stopped with lastWords as its output.
func (s stream) events(packages []testPackage, w io.Writer, lastWords func() string) error {
	var stoppedIn string
	for _, p := range packages {
		cmd := exec.Command("go", "tool", "test2json", "-t", "-p", p.path)
		cmd.Stdout, cmd.Stderr = w, os.Stderr
		text, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		code, err := s.next(text)
		result := "FAIL"
		switch {
		case err == nil && code == "0":
			result = "PASS"
		case err == nil:
			fmt.Fprintf(text, "exit status %s\n", code)
		case stoppedIn == "":
			stoppedIn = p.path
			fmt.Fprintf(text, "\n%s\n", lastWords())
		default:
			fmt.Fprintf(text, "did not run: the machine stopped in %s\n", stoppedIn)
		}
		fmt.Fprintf(text, "%c%s\n", control, result)
		if err := errors.Join(text.Close(), cmd.Wait()); err != nil {
			return fmt.Errorf("go tool test2json: %w", err)
		}
	}
	return nil
}
