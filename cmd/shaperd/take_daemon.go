package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"shaperd/client"
	"shaperd/internal/admin"
)

// absence is how long a daemon that has answered may be away, as for a restart,
// before take and pace give up. Tests shorten it.
var absence = time.Minute

// whom is the daemon that admission is asked of.
type whom struct{ socket, url, tokenFile string }

func (w *whom) flags(cmd *cobra.Command) {
	cmd.Long += socketHelp + ` With --url it is asked over the network.`
	cmd.Flags().StringVar(&w.socket, "socket", "", "`PATH` of the daemon's control socket")
	cmd.Flags().StringVar(&w.url, "url", "", "`URL` of a daemon's admission listener, such as http://10.0.0.2:9478")
	cmd.Flags().StringVar(&w.tokenFile, "token-file", "", "`FILE` with the token that the listener asks for")
}

// client connects to the daemon when it is asked something.
func (w *whom) client() (*client.Client, error) {
	switch {
	case w.socket != "" && w.url != "":
		return nil, usageError{errors.New("give --socket or --url, not both: each names a daemon")}
	case w.tokenFile != "" && w.url == "":
		return nil, usageError{errors.New("--token-file is for --url: a control socket needs no token")}
	}
	address := w.url
	if address == "" {
		address = socketOf(w.socket)
		if !filepath.IsAbs(address) {
			address = "./" + address // it is a path, also without a slash
		}
	}
	c, err := client.New(address)
	if err != nil {
		return nil, err
	}
	c = c.WithPatience(absence)
	if w.tokenFile == "" {
		return c, nil
	}
	token, err := os.ReadFile(w.tokenFile)
	if err != nil {
		return nil, fmt.Errorf("read token: %w", err)
	}
	return c.WithToken(string(token)), nil
}

// ask asks once. Where nobody answers it says so: a command that waits for a
// daemon that is not there would wait, and say nothing.
func (w *whom) ask(ctx context.Context, c *client.Client, class string, r client.Request) (client.Decision, error) {
	d, err := c.Take(ctx, class, r)
	return d, w.explain(ctx, err)
}

// explain says of an error of the client what is likely, and the cure.
func (w *whom) explain(ctx context.Context, err error) error {
	if wrong, ok := errors.AsType[*client.RequestError](err); ok && wrong.Status == http.StatusUnauthorized {
		return errors.New("no token, or a wrong one: give the file that has it with --token-file")
	}
	unheard, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err
	}
	missing := fmt.Errorf("%s: %w (is it what the policy of a daemon that runs has as admission.listen?)", w.url, unheard.Err)
	if w.url == "" {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // what ctx is done for is said
		defer cancel()
		_, missing = admin.NewClient(socketOf(w.socket)).Status(ctx)
	}
	switch {
	case missing == nil:
		return err
	case errors.Is(err, errNotAdmitted):
		return fmt.Errorf("%w: %w", errNotAdmitted, missing)
	}
	return missing
}

// later is when to ask again after an error of the client, 0 where that was not
// said, and whether it is of any use.
func later(err error) (after time.Duration, ok bool) {
	if refused, ok := errors.AsType[*client.RefusedError](err); ok {
		return refused.RetryAfter, true
	}
	if away, ok := errors.AsType[*client.UnavailableError](err); ok {
		return away.RetryAfter, true
	}
	return 0, false
}

// sayWaiting says that nobody can decide now: that may take long, other than what
// the class itself has them wait.
func sayWaiting(stderr io.Writer, err error) {
	if away, ok := errors.AsType[*client.UnavailableError](err); ok {
		fmt.Fprintf(stderr, "shaperd: waiting: %v\n", away)
	}
}
