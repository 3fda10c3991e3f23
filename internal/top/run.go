package top

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
)

// MinInterval is the least time between two questions: the daemon's rates are
// means of a second or more, and a slow line must keep up.
const MinInterval = 250 * time.Millisecond

// Options say how to look. The zero value is of no use: see Interval.
type Options struct {
	Interval time.Duration // between two questions; MinInterval or more
	Samples  int           // end after as many answers; 0 is never
	ASCII    bool          // draw without Unicode
}

// framesPerSecond bounds how soon a key shows. Between two answers and without
// keys nothing is drawn at all.
const framesPerSecond = 20

// Run shows the view until its user quits, ctx is done or Samples were shown. The
// last of them stays on the terminal.
func Run(ctx context.Context, a Asker, o Options, in, out *os.File) error {
	m := New(a, o)
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithFPS(framesPerSecond)).Run()
	if errors.Is(err, tea.ErrInterrupted) || ctx.Err() != nil { // the user's end, or the caller's
		err = nil
	} else if err == nil && m.complete() {
		_, err = lipgloss.Fprintln(out, strings.TrimRight(m.frame(), "\n"))
	}
	return err
}

// ASCIIOnly reports whether a terminal cannot be trusted to draw Unicode: its
// locale is not UTF-8, or it is the console, whose fonts lack most of the bars.
func ASCIIOnly(getenv func(string) string) bool {
	if getenv("TERM") == "linux" {
		return true
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} { // the first that is set counts
		if v := strings.ToLower(getenv(name)); v != "" {
			return !strings.Contains(v, "utf-8") && !strings.Contains(v, "utf8")
		}
	}
	return true
}
