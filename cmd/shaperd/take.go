package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"shaperd/client"
	"shaperd/shaper"
)

const takeHelp = `Take waits until the class admits so many bytes, or so many requests of a class
that counts these, and then runs the command, whose exit code is its own (126 where
it cannot be run, 127 where there is none). Without a command it returns. Signals
that end a program or tell it something are passed on to the command meanwhile.

Those who can be served within 30 seconds stand in a queue of the daemon: who asked
first is first. Where it takes longer, take asks again when the daemon says, and has
no place in the queue until then. Of a shared class each host has its own queue, and
there is no order between hosts.

While the Redis of a shared class is away, and on_outage is closed, nobody is
admitted: take says so, and tries again ever later. A daemon that has answered once
may be away for a minute, as for a restart; one that is not there at first is an
error.

With --timeout it gives up after that time and returns 75 (EX_TEMPFAIL); 0s is not
to wait at all. With --json it prints what the daemon answers, also what is refused.

More than the class's burst is never admitted: ask for parts, or use "shaperd pace".
"shaperd status" prints the burst of a class that was asked for. A kb is 1024 bytes,
as in the policy: a burst of 5000b has no room for --bytes 5kb.`

// errNotAdmitted is what take returns when the time is over.
var errNotAdmitted = errors.New("not admitted in time")

func newTakeCmd() *cobra.Command {
	var (
		w      whom
		size   string
		asJSON bool
		r      client.Request
		within time.Duration
	)
	cmd := &cobra.Command{
		Use:   "take CLASS [flags] [-- COMMAND]...",
		Short: "Wait until a class admits bytes or requests, then run a command",
		Long:  takeHelp,

		DisableFlagsInUseLine: true,
		Example: `  shaperd take backup --bytes 64kb -- curl -O https://example.org/part1
  shaperd take api --requests 1 --key customer-17 --timeout 5s -- ./call`,
	}
	w.flags(cmd)
	flags := cmd.Flags()
	flags.SetInterspersed(true)
	flags.StringVar(&size, "bytes", "", "`SIZE` to be admitted, such as 64kb")
	flags.Int64Var(&r.Cost, "requests", 0, "how many requests are to be admitted, `N`")
	flags.StringVar(&r.Key, "key", "", "`NAME` that has a bucket of its own in the class")
	flags.DurationVar(&within, "timeout", -1, "`TIME` after which to give up; not given: never")
	jsonFlag(cmd, &asJSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch at := cmd.ArgsLenAtDash(); {
		case at < 0 && len(args) > 1:
			return usageError{fmt.Errorf("%q is an argument too many", args[1])}
		case at >= 0 && at != 1:
			return usageError{errors.New("write the class, then --, then the command")}
		}
		bytes, requests := flags.Changed("bytes"), flags.Changed("requests")
		switch {
		case bytes && requests:
			return usageError{errors.New("give --bytes or --requests, not both: a class counts one of them")}
		case !bytes && !requests:
			return usageError{errors.New("take needs --bytes or --requests: write how much is to be admitted, such as --bytes 64kb or --requests 1")}
		case flags.Changed("timeout") && within < 0:
			return usageError{fmt.Errorf("--timeout %v: write a time such as 5s, 0s not to wait, or leave it out to wait for ever", within)}
		}
		if bytes {
			n, err := shaper.ParseSize(size)
			if err != nil || n <= 0 {
				return usageError{fmt.Errorf("--bytes %q: write a size such as 64kb", size)}
			}
			r.Bytes = int64(n)
		} else if r.Cost <= 0 {
			return usageError{fmt.Errorf("--requests %d: write how many, from 1", r.Cost)}
		}
		if len(args) > 1 { // before anything is taken
			if _, err := exec.LookPath(args[1]); errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EISDIR) {
				return exitError{cannotRun, err}
			} else if err != nil {
				return exitError{notFound, err}
			}
		}
		c, err := w.client()
		if err != nil {
			return err
		}
		d, err := w.admit(cmd.Context(), c, args[0], r, within, cmd.ErrOrStderr())
		if asJSON {
			err = errors.Join(err, printJSON(cmd.OutOrStdout(), newTakenView(args[0], d, err)))
		}
		if err != nil {
			return err
		}
		if len(args) == 1 {
			return nil
		}
		return runCommand(args[1:], cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

// longestAsk is how long the daemon is asked to wait before it answers.
const longestAsk = 30 * time.Second

// admit waits until the request is granted, at most for the time within; below 0 for
// ever. Of an outage it says on stderr that it waits.
func (w *whom) admit(ctx context.Context, c *client.Client, class string, r client.Request, within time.Duration, stderr io.Writer) (client.Decision, error) {
	if within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, within, errNotAdmitted)
		defer cancel()
	}
	d, err := w.ask(ctx, c, class, r)
	after, ok := later(err)
	switch {
	case errors.Is(err, errNotAdmitted):
		return d, fmt.Errorf("%w: the daemon has not answered", err)
	case !ok:
		return d, err
	case within == 0 || within > 0 && after > within:
		return d, fmt.Errorf("%w: %w", errNotAdmitted, err)
	}
	sayWaiting(stderr, err)
	r.Wait = longestAsk
	if within > 0 {
		r.Wait = min(r.Wait, within)
	}
	last, why := c.Wait(ctx, class, r)
	if why == errNotAdmitted { //nolint:errorlint // no more is known: the first answer was the only one
		return d, fmt.Errorf("%w: %w", why, err)
	}
	return last, w.explain(ctx, why)
}
