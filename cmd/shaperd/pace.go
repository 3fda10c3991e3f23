package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"shaperd/client"
	"shaperd/shaper"
)

const paceHelp = `Pace copies its input to its output at the pace of a class, which it shares with
all others that ask the daemon for admission to that class. On a terminal it shows
how far it has come, with a bar where the size is known: of a file, or from --size.

While the Redis of a shared class is away, and on_outage is closed, it waits. A
daemon that has answered once may be away for a minute, as for a restart; one that
is not there at first is an error.`

func newPaceCmd() *cobra.Command {
	var (
		w     whom
		o     client.Options
		size  string
		quiet bool
	)
	cmd := &cobra.Command{
		Use:   "pace CLASS",
		Short: "Copy the input to the output at the pace of a class",
		Long:  paceHelp,
		Example: `  tar c /srv | shaperd pace backup | ssh vault "cat >srv.tar"
  shaperd pace backup <image.iso >/mnt/image.iso`,
	}
	w.flags(cmd)
	cmd.Flags().StringVar(&o.Key, "key", "", "`NAME` that has a bucket of its own in the class")
	cmd.Flags().StringVar(&size, "size", "", "`SIZE` that the input is likely to have")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "show no progress")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p := progress{to: cmd.ErrOrStderr(), class: args[0], total: lengthOf(cmd.InOrStdin())}
		if size != "" {
			n, err := shaper.ParseSize(size)
			if err != nil || n <= 0 {
				return usageError{fmt.Errorf("--size %q: write a size such as 700mb", size)}
			}
			p.total = int64(n)
		}
		c, err := w.client()
		if err != nil {
			return err
		}
		_, err = w.ask(cmd.Context(), c, args[0], client.Request{Bytes: 1, Key: o.Key}) // before anything is read: there is such a class
		if _, ok := later(err); err != nil && !ok {
			return err
		}
		sayWaiting(p.to, err)
		if f, ok := p.to.(*os.File); ok && !quiet && term.IsTerminal(int(f.Fd())) {
			p.show()
			defer p.end()
		}
		in := c.Limiter(args[0], o).Reader(cmd.Context(), onlyReader{cmd.InOrStdin()})
		_, err = io.Copy(io.MultiWriter(cmd.OutOrStdout(), &p), in)
		return w.explain(cmd.Context(), err)
	}
	return cmd
}

// onlyReader hides what else a file can do, so that io.Copy reads it in parts.
type onlyReader struct{ io.Reader }

// lengthOf is the size of a file, from where it is read; 0 where it is not known.
func lengthOf(r io.Reader) int64 {
	f, ok := r.(*os.File)
	if !ok {
		return 0
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0
	}
	return info.Size() - at
}

// A progress shows on a terminal how far a copy has come.
type progress struct {
	to      io.Writer
	class   string
	total   int64 // 0 where it is not known
	done    int64
	started time.Time // zero when nothing is shown
	shown   time.Time
	recent  [2]mark // for the rate: the last but one, and the last
}

type mark struct {
	at   time.Time
	done int64
}

// redraw is how often the line is written anew.
const redraw = 200 * time.Millisecond

// Write counts what was copied.
func (p *progress) Write(b []byte) (int, error) {
	p.done += int64(len(b))
	if now := time.Now(); !p.started.IsZero() && now.Sub(p.shown) >= redraw {
		p.draw(now)
	}
	return len(b), nil
}

func (p *progress) show() {
	p.started = time.Now()
	p.recent = [2]mark{{p.started, 0}, {p.started, 0}}
	p.draw(p.started)
}

func (p *progress) draw(now time.Time) {
	p.shown = now
	if now.Sub(p.recent[1].at) >= time.Second {
		p.recent[0], p.recent[1] = p.recent[1], mark{now, p.done}
	}
	fmt.Fprintf(p.to, "\r\x1b[K%s", p.line(now))
}

// line says how far the copy has come, and where the size is known, how long it will take.
func (p *progress) line(now time.Time) string {
	const width = 30
	rate := 0.0
	if d := now.Sub(p.recent[0].at).Seconds(); d > 0 {
		rate = float64(p.done-p.recent[0].done) * 8 / d
	}
	text := fmt.Sprintf("%s  %s  %s", p.class, bytesOf(uint64(p.done)), bits(rate))
	if p.total == 0 {
		return text + "  " + short(now.Sub(p.started))
	}
	text += fmt.Sprintf("  %s %s", bar(float64(p.done), p.total, width), percentOf(uint64(p.done), uint64(p.total)))
	if rate > 0 && p.done < p.total {
		text += "  " + short(time.Duration(float64(p.total-p.done)*8/rate*float64(time.Second))) + " left"
	}
	return text
}

func (p *progress) end() {
	p.draw(time.Now())
	fmt.Fprintln(p.to)
}
