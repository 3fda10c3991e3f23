package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"shaperd/configs"
	"shaperd/internal/admin"
	"shaperd/internal/daemon"
)

// service is the control socket of the service, where all look for it.
const service = "/run/shaperd/shaperd.sock"

const socketHelp = `

The daemon is asked over its control socket: --socket, else the environment
variable SHAPERD_SOCKET, else admin.socket of ` + policyFile + `, else
` + service + `, or for other users than root, where that is not there,
shaperd.sock in $XDG_RUNTIME_DIR.`

// asking is a command that asks a daemon.
type asking struct {
	*cobra.Command
	socket string
	json   bool
}

// newAsking adds to a command what all have that ask a daemon.
func newAsking(cmd *cobra.Command, ask func(ctx context.Context, c *admin.Client, args []string, out io.Writer, asJSON bool) error) *cobra.Command {
	a := &asking{Command: cmd}
	cmd.Long += socketHelp
	cmd.Flags().StringVar(&a.socket, "socket", "", "`PATH` of the daemon's control socket")
	jsonFlag(cmd, &a.json)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return ask(cmd.Context(), admin.NewClient(socketOf(a.socket)), args, cmd.OutOrStdout(), a.json)
	}
	return cmd
}

// socketOf is where the daemon's control socket is likely to be.
func socketOf(given string) string {
	if given != "" {
		return given
	}
	if p, err := configs.Load(policyFile); err == nil && p.Admin.Socket != "" && os.Getenv("SHAPERD_SOCKET") == "" {
		if _, err := os.Stat(p.Admin.Socket); err == nil { // else the file is newer than what is in force
			return p.Admin.Socket
		}
	}
	path := daemon.SocketPath()
	if _, err := os.Stat(path); os.Getenv("SHAPERD_SOCKET") == "" && (path == "" || err != nil) {
		return service
	}
	return path
}

func newReloadCmd() *cobra.Command {
	var pid int
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Have the daemon read its policy again, and wait until it is in force",
		Long: `Reload has the daemon read its policy again. It returns when the new policy is in
force; with an error in it, it says what is wrong, and the old policy stays. What
was set with "shaperd set" ends, and relays that were drained serve again.

A daemon without a control socket is told by a signal, if --pid says which it is;
its log then says how it went.`,
	}
	cmd.Flags().IntVar(&pid, "pid", 0, "`PROCESS` to signal where there is no control socket")
	return newAsking(cmd, func(ctx context.Context, c *admin.Client, _ []string, out io.Writer, asJSON bool) error {
		done, err := c.Reload(ctx)
		if pid > 0 && errors.Is(err, admin.ErrNoDaemon) {
			if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
				return fmt.Errorf("signal process %d: %w", pid, err)
			}
			fmt.Fprintln(out, "told by a signal: the log says how it went")
			return nil
		}
		if refused, ok := errors.AsType[*admin.RefusedError](err); ok && refused.Status == http.StatusUnprocessableEntity {
			return fmt.Errorf("reload refused:\n%w\nnothing has changed: the policy that was in force stays", err)
		}
		switch {
		case err != nil:
			return err
		case asJSON:
			return printJSON(out, done)
		}
		fmt.Fprintf(out, "%s is in force\n", done.Policy)
		for _, o := range done.Ended {
			fmt.Fprintf(out, "no longer set by hand: %s\n", override(o))
		}
		for _, name := range done.Resumed {
			fmt.Fprintf(out, "relay %s serves again\n", name)
		}
		return nil
	})
}

func newDrainCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drain RELAY",
		Short: "Have a relay stop accepting and let its sessions end",
		Long: `Drain has a relay stop accepting connections. Its sessions go on until they end by
themselves, or timeouts.drain has passed. The next reload starts the relay again.`,
		Example: "  shaperd drain web\n  shaperd sessions --relay web    # who is left\n  shaperd reload                  # serve again",
	}
	return newAsking(cmd, func(ctx context.Context, c *admin.Client, args []string, out io.Writer, asJSON bool) error {
		if err := c.Drain(ctx, args[0]); err != nil {
			return err
		}
		s, err := c.Status(ctx)
		if err != nil {
			return err
		}
		for i := range s.Relays {
			switch r := &s.Relays[i]; {
			case r.Name != args[0]:
			case asJSON:
				return printJSON(out, r)
			default:
				fmt.Fprintf(out, "relay %s accepts no more; %d sessions are left\n", r.Name, r.Sessions)
			}
		}
		return nil
	})
}

func newLogLevelCmd() *cobra.Command {
	levels := []string{"debug", "info", "warn", "error"}
	cmd := &cobra.Command{
		Use:       "log-level [debug|info|warn|error]",
		Short:     "Show or set what the daemon logs",
		Long:      "Log-level shows the daemon's log level, or sets it until the daemon ends.",
		ValidArgs: levels,
	}
	return newAsking(cmd, func(ctx context.Context, c *admin.Client, args []string, out io.Writer, asJSON bool) error {
		if len(args) > 0 {
			if !slices.Contains(levels, args[0]) {
				return usageError{fmt.Errorf("log level %q: give debug, info, warn or error", args[0])}
			}
			if err := c.SetLogLevel(ctx, args[0]); err != nil {
				return err
			}
		}
		s, err := c.Status(ctx)
		switch {
		case err != nil:
			return err
		case asJSON:
			return printJSON(out, admin.LogLevel{Level: s.LogLevel})
		}
		fmt.Fprintln(out, s.LogLevel)
		return nil
	})
}

const setHelp = `Set changes the rates of a class, or with --link and no class those of a link, at
once and in place: no session is dropped, no packet lost. It counts before the
file and its schedules, for the time that --for gives, else until the next reload
or the daemon's end. --reset ends it. What does not fit the rest of the policy is
refused.

Amounts are written as in the policy file: 20mbit, 40%, 64kb.`

func newSetCmd() *cobra.Command {
	var r admin.SetRequest
	var lasts span
	var reset bool
	cmd := &cobra.Command{
		Use:     "set [CLASS]",
		Short:   "Change the rates of a class or a link now",
		Long:    setHelp,
		Example: "  shaperd set backup --rate 50mbit --for 1h\n  shaperd set web --link \"eth0 egress\" --ceil 80%\n  shaperd set --link \"eth0 egress\" --rate 90mbit\n  shaperd set backup --reset",
	}
	flags := cmd.Flags()
	flags.StringVar(&r.Rate, "rate", "", "guaranteed `RATE`, or a percentage of the link's")
	flags.StringVar(&r.Ceil, "ceil", "", "`RATE` that it may reach by borrowing")
	flags.StringVar(&r.Burst, "burst", "", "`SIZE` that may leave at once after a quiet time")
	flags.StringVar(&r.Link, "link", "", "on the link of this `NAME` only, as \"shaperd status\" shows it")
	flags.Var(&lasts, "for", "`TIME` after which all is as it was, such as 90s, 1h30m or 2d")
	flags.BoolVar(&reset, "reset", false, "end what was set; without a class and a link, all of it")
	for _, amount := range []string{"rate", "ceil", "burst", "for"} {
		cmd.MarkFlagsMutuallyExclusive("reset", amount)
	}
	return newAsking(cmd, func(ctx context.Context, c *admin.Client, args []string, out io.Writer, asJSON bool) error {
		if len(args) > 0 {
			r.Class = args[0]
		}
		var changed *admin.Changed
		var err error
		switch {
		case reset:
			changed, err = c.Reset(ctx, admin.ResetRequest{Link: r.Link, Class: r.Class})
		case r.Class == "" && r.Link == "":
			return usageError{errors.New("name a class, or a link with --link")}
		case r.Rate == "" && r.Ceil == "" && r.Burst == "":
			return usageError{errors.New("give --rate, --ceil or --burst, or --reset")}
		default:
			r.ForSeconds = int64(time.Duration(lasts).Seconds())
			changed, err = c.Set(ctx, r)
		}
		switch {
		case err != nil:
			return err
		case asJSON:
			return printJSON(out, changed)
		}
		printChanged(out, changed)
		return nil
	})
}

// printChanged says what a set or a reset has done.
func printChanged(w io.Writer, c *admin.Changed) {
	if len(c.Changes) == 0 {
		fmt.Fprintln(w, "nothing has changed: it was so already")
	} else {
		table(w, styleOf(w), "", append([][]string{{"LINK", "CLASS", "BEFORE", "NOW"}}, changeRows(c.Changes)...))
	}
	if c.Until != nil {
		fmt.Fprintf(w, "until %s\n", when(*c.Until, time.Now()))
	}
}

func changeRows(changes []admin.RateChange) (rows [][]string) {
	for _, c := range changes {
		rows = append(rows, []string{c.Link, c.Class, spell(c.From), spell(c.To)})
	}
	return rows
}
