package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"shaperd/internal/admin"
	"shaperd/internal/top"
)

const topHelp = `Top shows links and classes as they are now, and again each interval: each class's
rate against what is guaranteed and what it may reach, its last minute, what it
borrows, and who waits. Press ? in it for the keys and what the figures mean.

Where standard output is no terminal, and with --json, it prints the status each
interval instead. A daemon that goes away is waited for.`

func newTopCmd() *cobra.Command {
	var o top.Options
	var once bool
	cmd := &cobra.Command{
		Use:     "top",
		Short:   "Watch links, classes and sessions live",
		Long:    topHelp,
		Example: "  shaperd top\n  shaperd top --interval 250ms\n  shaperd top --json -n 60 > minute.jsonl",
	}
	flags := cmd.Flags()
	flags.DurationVar(&o.Interval, "interval", time.Second, "`TIME` between two looks, 250ms or more (1s)")
	flags.IntVarP(&o.Samples, "samples", "n", 0, "end after `N` looks; 0 goes on")
	flags.BoolVar(&once, "once", false, "look once")
	return newAsking(cmd, func(ctx context.Context, c *admin.Client, _ []string, out io.Writer, asJSON bool) error {
		switch {
		case o.Interval < top.MinInterval:
			return usageError{fmt.Errorf("--interval %v: give %v or more", o.Interval, top.MinInterval)}
		case o.Samples < 0:
			return usageError{errors.New("--samples: give 0 or more")}
		case once && flags.Changed("samples"):
			return usageError{errors.New("give --once or --samples, not both")}
		case once:
			o.Samples = 1
		}
		if f, ok := out.(*os.File); ok && !asJSON && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd())) {
			o.ASCII = top.ASCIIOnly(os.Getenv)
			return top.Run(ctx, c, o, os.Stdin, f)
		}
		return printTop(ctx, c, o, out, cmd.ErrOrStderr(), asJSON)
	})
}

// printTop prints the status each interval: a line of JSON, or as status does. A
// daemon that is not there at first is an error; later it is waited for.
func printTop(ctx context.Context, c *admin.Client, o top.Options, out, complain io.Writer, asJSON bool) error {
	again := time.NewTicker(o.Interval)
	defer again.Stop()
	away := false
	for seen := 0; ; {
		s, err := c.Status(ctx)
		switch {
		case err == nil && asJSON:
			lines := json.NewEncoder(out)
			lines.SetEscapeHTML(false)
			if err := lines.Encode(s); err != nil {
				return err
			}
		case err == nil:
			now := time.Now()
			if _, err := fmt.Fprintf(out, "%s  ", now.Format(time.DateTime)); err != nil {
				return err // nobody reads any more
			}
			printStatus(out, s, now)
			fmt.Fprintln(out)
		case seen == 0:
			return err
		case !away:
			fmt.Fprintf(complain, "shaperd: waiting for the daemon: %v\n", err)
		}
		if away = err != nil; !away {
			if seen++; seen == o.Samples {
				return nil
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil
		}
	}
}
