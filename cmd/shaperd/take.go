package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"shaperd/client"
	"shaperd/internal/admin"
	"shaperd/shaper"
)

// whom is the daemon that admission is asked of.
type whom struct{ socket, url, tokenFile string }

func (w *whom) flags(cmd *cobra.Command) {
	cmd.Long += socketHelp + ` With --url it is asked over the network.`
	cmd.Flags().StringVar(&w.socket, "socket", "", "`PATH` of the daemon's control socket")
	cmd.Flags().StringVar(&w.url, "url", "", "`URL` of a daemon's admission listener, such as http://10.0.0.2:9478")
	cmd.Flags().StringVar(&w.tokenFile, "token-file", "", "`FILE` with the token that the listener asks for")
	cmd.MarkFlagsMutuallyExclusive("socket", "url")
}

// client connects to the daemon when it is asked something.
func (w *whom) client() (*client.Client, error) {
	address := w.url
	if address == "" {
		address = socketOf(w.socket)
	}
	c, err := client.New(address)
	if err != nil || w.tokenFile == "" {
		return c, err
	}
	token, err := os.ReadFile(w.tokenFile)
	if err != nil {
		return nil, fmt.Errorf("read token: %w", err)
	}
	return c.WithToken(string(token)), nil
}

const takeHelp = `Take waits until the class admits so many bytes, or so many requests of a class
that counts these, and then runs the command, whose exit code is its own. Without a
command it returns. Signals meanwhile are passed on to the command.

Those who can be served within 30 seconds stand in a queue of the daemon: who asked
first is first. Where it takes longer, take asks again when the daemon says, and has
no place in the queue until then. Of a shared class each host has its own queue, and
there is no order between hosts.

With --timeout it gives up after that time and returns 75 (EX_TEMPFAIL); 0s is not
to wait at all. More than the class's burst is never admitted: ask for parts, or use
"shaperd pace".`

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
		Example: `  shaperd take backup --bytes 4mb -- curl -O https://example.org/part1
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
	cmd.MarkFlagsMutuallyExclusive("bytes", "requests")
	cmd.MarkFlagsOneRequired("bytes", "requests")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch at := cmd.ArgsLenAtDash(); {
		case at < 0 && len(args) > 1:
			return usageError{fmt.Errorf("%q is an argument too many", args[1])}
		case at >= 0 && at != 1:
			return usageError{errors.New("write the class, then --, then the command")}
		}
		if size != "" {
			n, err := shaper.ParseSize(size)
			if err != nil || n <= 0 {
				return usageError{fmt.Errorf("--bytes %q: write a size such as 64kb", size)}
			}
			r.Bytes = int64(n)
		} else if r.Cost <= 0 {
			return usageError{fmt.Errorf("--requests %d: write how many, from 1", r.Cost)}
		}
		if len(args) > 1 {
			if _, err := exec.LookPath(args[1]); err != nil { // before anything is taken
				return exitError{127, err}
			}
		}
		c, err := w.client()
		if err != nil {
			return err
		}
		d, err := w.admit(cmd.Context(), c, args[0], r, within)
		switch {
		case err != nil:
			return err
		case asJSON:
			if err := printJSON(cmd.OutOrStdout(), admittedView{args[0], d.Remaining, d.Limit, d.Reset.Milliseconds()}); err != nil {
				return err
			}
		}
		if len(args) == 1 {
			return nil
		}
		return runCommand(args[1:], cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

// An admittedView is what take prints for programs.
type admittedView struct {
	Class     string `json:"class"`
	Remaining int64  `json:"remaining"` // bytes or requests
	Limit     int64  `json:"limit"`
	Reset     int64  `json:"reset_ms"`
}

// longestAsk is how long the daemon is asked to wait before it answers.
const longestAsk = 30 * time.Second

// admit waits until the request is granted, at most for the time within; below 0 for ever.
func (w *whom) admit(ctx context.Context, c *client.Client, class string, r client.Request, within time.Duration) (client.Decision, error) {
	d, err := w.ask(ctx, c, class, r)
	refused, ok := errors.AsType[*client.RefusedError](err)
	switch {
	case !ok:
		return d, err
	case within == 0 || within > 0 && refused.RetryAfter > within:
		return d, fmt.Errorf("%w: there is enough in %v", errNotAdmitted, refused.RetryAfter)
	}
	r.Wait = longestAsk
	if within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, within, errNotAdmitted)
		defer cancel()
		r.Wait = min(r.Wait, within)
	}
	return c.Wait(ctx, class, r)
}

// ask asks once. Where nobody answers it says so: a command that waits for a
// daemon that is not there would wait for ever, and say nothing.
func (w *whom) ask(ctx context.Context, c *client.Client, class string, r client.Request) (client.Decision, error) {
	d, err := c.Take(ctx, class, r)
	wrong, isWrong := errors.AsType[*client.RequestError](err)
	_, isRefused := errors.AsType[*client.RefusedError](err)
	switch {
	case err == nil || isRefused:
	case isWrong && wrong.Status == http.StatusUnauthorized:
		return d, errors.New("no token, or a wrong one: give the file that has it with --token-file")
	case !isWrong && w.url == "":
		if _, missing := admin.NewClient(socketOf(w.socket)).Status(ctx); missing != nil {
			return d, missing
		}
	}
	return d, err
}
