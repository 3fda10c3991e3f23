package demo

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"
)

// lookEvery is how often a demo looks at what happens.
const lookEvery = 10 * time.Millisecond

// until calls look now and then until ok reports true, or returns the cause of
// ctx when that is done before.
func until(ctx context.Context, ok func() bool, look func()) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			look()
		}
	}
	return nil
}

// conclude writes a report, by print or for programs, and returns what is wrong with it.
func conclude(out io.Writer, asJSON bool, report interface{ err() error }, print func(io.Writer) error) error {
	if asJSON {
		print = func(out io.Writer) error { return writeJSON(out, report) }
	}
	if err := print(out); err != nil {
		return err
	}
	return report.err()
}

// writeJSON writes a report for programs.
func writeJSON(w io.Writer, report any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(report)
}

func writeLines(w io.Writer, lines []string) error {
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}
