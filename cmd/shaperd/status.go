package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"shaperd/internal/admin"
	"shaperd/shaper"
)

func newStatusCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show how the daemon is doing: links, classes, relays, interfaces",
		Long: `Status shows what the daemon has in force and what goes through it: each link with
its classes, relays with their sessions, interfaces, what was set by hand, and
what schedules change next.`,
		Args: cobra.NoArgs,
	}
	return newAsking(cmd, func(ctx context.Context, c *admin.Client, _ []string, out io.Writer, asJSON bool) error {
		s, err := c.Status(ctx)
		switch {
		case err != nil:
			return err
		case asJSON:
			return printJSON(out, s)
		}
		printStatus(out, s, time.Now())
		return nil
	})
}

// printStatus writes the status for people, as it is at now.
func printStatus(w io.Writer, s *admin.Status, now time.Time) {
	style := styleOf(w)
	state := style.green(s.State)
	if s.State != "ready" {
		state = style.yellow(s.State)
	}
	fmt.Fprintf(w, "%s  policy %s, for %s (process %d, version %s)\n", state, s.Policy, short(now.Sub(s.Started)), s.PID, s.Version)
	if n := len(s.Reloads.LastError); n > 0 {
		fmt.Fprintf(w, "%s the last reload was refused: the policy is that of %s\n", style.yellow("warning"), s.Loaded.Local().Format(time.DateTime))
		for _, e := range s.Reloads.LastError {
			fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(e, "\n", "\n  "))
		}
	}
	for _, i := range s.Interfaces {
		switch {
		case !i.Present:
			fmt.Fprintf(w, "%s there is no interface %s: it is shaped once it comes\n", style.yellow("missing"), i.Name)
		case i.Drift:
			fmt.Fprintf(w, "%s %s is not as the policy wants it: %s\n", style.yellow("drift"), i.Name, i.Problem)
		}
		if i.Repairs > 0 {
			fmt.Fprintf(w, "note: what other programs changed on %s was put right %d times\n", i.Name, i.Repairs)
		}
	}
	for i := range s.Links {
		printLinkStatus(w, style, &s.Links[i])
	}
	if len(s.Relays) > 0 {
		rows := [][]string{{"RELAY", "LISTENS ON", "SESSIONS", "ACCEPTED", "REFUSED", ""}}
		for _, r := range s.Relays {
			note := ""
			if r.State != "serving" {
				note = r.State
			}
			rows = append(rows, []string{r.Name, strings.Join(r.Listen, " "), strconv.Itoa(r.Sessions), count(r.Accepted), count(sum(r.Refused)), note})
		}
		fmt.Fprintln(w)
		table(w, style, "", rows)
	}
	if s.Shared != nil {
		printShares(w, s.Shared)
	}
	printAdmission(w, s.Admission)
	for _, o := range s.Overrides {
		until := "the next reload"
		if o.Until != nil {
			until = o.Until.Format("Mon 15:04:05") + " (" + s.TimeZone + ")"
		}
		fmt.Fprintf(w, "\nset by hand: %s%s until %s\n", strings.TrimSpace(o.Class+" "+o.Link), amounts(o), until)
	}
	if s.Next != nil {
		fmt.Fprintf(w, "\nnext change: %s (%s)\n", s.Next.At.Format("Mon 15:04:05"), s.TimeZone)
		columns(w, "  ", changeRows(s.Next.Changes), func(_ int, text string) string { return text })
	}
}

func amounts(o admin.Override) (text string) {
	for _, a := range [][2]string{{"rate", o.Rate}, {"ceil", o.Ceil}, {"burst", o.Burst}} {
		if a[1] != "" {
			text += " " + a[0] + " " + a[1]
		}
	}
	return text
}

func printLinkStatus(w io.Writer, style style, l *admin.Link) {
	rate := "unlimited"
	if l.Rate > 0 {
		rate = shaper.Rate(l.Rate).String()
	}
	fmt.Fprintf(w, "\n%s  %s of %s\n", style.bold(l.Name), bits(l.Achieved), rate)
	if l.Applied != nil && *l.Applied != l.Rate {
		fmt.Fprintf(w, "  %s the kernel has %s\n", style.yellow("warning"), bits(float64(*l.Applied)))
	}
	if l.Unshaped > 0 {
		fmt.Fprintf(w, "  %s %d packets left unshaped\n", style.yellow("warning"), l.Unshaped)
	}
	rows := [][]string{{"CLASS", "RATE", "CEIL", "NOW", "", "SENT", "BORROWED", "WAITING", "DROPPED"}}
	for i := range l.Classes {
		c := &l.Classes[i]
		most := c.Ceil
		if most == 0 {
			most = l.Rate
		}
		waiting, dropped := bytesOf(c.Backlog), count(c.Dropped)
		if l.Datapath == "relay" {
			waiting, dropped = fmt.Sprintf("%d of %d", c.Backlogged, c.Sessions), "-"
		}
		rows = append(rows, []string{
			c.Name, rateOrNone(c.Rate), rateOrNone(c.Ceil), bits(c.Achieved), bar(c.Achieved, most, 10),
			bytesOf(c.Sent), percentOf(c.Borrowed, borrowedOf(c)), waiting, dropped,
		})
	}
	table(w, style, "  ", rows)
}

// borrowedOf is what a class's Borrowed is a part of.
func borrowedOf(c *admin.Class) uint64 {
	if c.Packets > 0 {
		return c.Packets
	}
	return c.Sent
}

func newSessionsCmd() *cobra.Command {
	var q admin.Query
	cmd := &cobra.Command{
		Use:     "sessions",
		Short:   "List the relays' sessions, those that moved most first",
		Long:    `Sessions lists the relays' sessions with what each has moved.`,
		Example: "  shaperd sessions --class bulk\n  shaperd sessions --client 192.0.2.7 --json",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVar(&q.Relay, "relay", "", "of the relay of this `NAME`")
	cmd.Flags().StringVar(&q.Class, "class", "", "in the class of this `NAME`")
	cmd.Flags().StringVar(&q.Client, "client", "", "of this client `ADDRESS`")
	cmd.Flags().IntVarP(&q.Limit, "limit", "n", 20, "list at most `N`")
	return newAsking(cmd, func(ctx context.Context, c *admin.Client, _ []string, out io.Writer, asJSON bool) error {
		s, err := c.Sessions(ctx, q)
		switch {
		case err != nil:
			return err
		case asJSON:
			return printJSON(out, s)
		}
		printSessions(out, s)
		return nil
	})
}

func printSessions(w io.Writer, s *admin.Sessions) {
	if s.Total == 0 {
		fmt.Fprintln(w, "no sessions")
		return
	}
	rows := [][]string{{"RELAY", "CLASS", "CLIENT", "UPSTREAM", "AGE", "UP", "DOWN", ""}}
	for _, one := range s.Sessions {
		waits := ""
		if one.Waiting {
			waits = "waits for its turn"
		}
		age := time.Duration(one.AgeSeconds * float64(time.Second))
		rows = append(rows, []string{one.Relay, one.Class, one.Client, one.Upstream, short(age), bytesOf(one.Upload), bytesOf(one.Download), waits})
	}
	table(w, styleOf(w), "", rows)
	if more := s.Total - len(s.Sessions); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
}
