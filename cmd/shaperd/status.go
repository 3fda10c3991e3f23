package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
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
what schedules change next.

NOW is a mean: of a relay over about 5 seconds, so that a rate which has changed
shows after some 15; of the kernel over the time since somebody last looked, a
second or more.

Of a class that is shared with other hosts, RATE and CEIL say what this host has now,
of what all have together. While it is idle that is little; with traffic it grows
within a second. HOLDERS are the links, of this host and of others, that divide a
budget.

Of what programs ask for, takes are counted, not bytes: GRANTED; REFUSED, since there
was not enough; TOO LARGE, of more than the burst, which is never granted; OUTAGE,
since the Redis was away and on_outage is closed. OF says whose bucket it is; while
the Redis is away this host decides alone, by what on_outage says.`,
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
		printLinkStatus(w, style, &s.Links[i], s.Shared)
	}
	if len(s.Relays) > 0 {
		rows := [][]string{{"RELAY", "STATE", "LISTENS ON", "SESSIONS", "ACCEPTED", "REFUSED"}}
		for _, r := range s.Relays {
			rows = append(rows, []string{r.Name, r.State, strings.Join(r.Listen, " "), strconv.Itoa(r.Sessions), count(r.Accepted), reasons(r.Refused)})
		}
		fmt.Fprintln(w)
		table(w, style, "", rows)
	}
	if s.Shared != nil {
		printShares(w, s.Shared)
	}
	printAdmission(w, s.Admission, s.Shared)
	for _, o := range s.Overrides {
		until := "the next reload"
		if o.Until != nil {
			until = when(*o.Until, now) + " (" + s.TimeZone + ")"
		}
		fmt.Fprintf(w, "\nset by hand: %s until %s\n", override(o), until)
	}
	if s.Next != nil {
		fmt.Fprintf(w, "\nnext change: %s (%s)\n", when(s.Next.At, now), s.TimeZone)
		columns(w, "  ", changeRows(s.Next.Changes), func(_ int, text string) string { return text })
	}
}

// reasons writes counts by reason: all, and what each makes of it, the most first.
func reasons(counts map[string]uint64) string {
	var all uint64
	var names []string
	for name, n := range counts {
		if all += n; n > 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	for i, name := range names {
		names[i] = name + " " + count(counts[name])
	}
	if all == 0 {
		return "0"
	}
	return count(all) + ": " + strings.Join(names, ", ")
}

// when writes a time of the future so that it is clear which is meant.
func when(t, now time.Time) string {
	if t.Sub(now) < 6*24*time.Hour {
		return t.Format("Mon 15:04:05")
	}
	return t.Format("Mon " + time.DateTime)
}

// override writes what was set by hand.
func override(o admin.Override) string {
	var words []string
	for _, w := range [...]struct{ what, text string }{{"", o.Class}, {"", o.Link}, {"rate ", o.Rate}, {"ceil ", o.Ceil}, {"burst ", o.Burst}} {
		if w.text != "" {
			words = append(words, w.what+w.text)
		}
	}
	return strings.Join(words, " ")
}

// printLinkStatus writes a link with its classes. What a shared class has is a part
// of its budget, and its ceil too.
func printLinkStatus(w io.Writer, style style, l *admin.Link, shared *admin.Shared) {
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
		rate, ceil := rateOrNone(c.Rate), rateOrNone(c.Ceil)
		if share := shared.Of(l.Name, c.Name); share != nil {
			rate, ceil = bits(float64(share.Part(c))), "of "+rateOrNone(share.Budget)
		}
		rows = append(rows, []string{
			c.Name, rate, ceil, bits(c.Achieved), bar(c.Achieved, most, 10),
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
		Use:   "sessions",
		Short: "List the relays' sessions, those that moved most first",
		Long: `Sessions lists the relays' sessions with what each has moved. A session is open, or
draining: then its relay accepts no more, and waits for it to end.`,
		Example: "  shaperd sessions --class bulk\n  shaperd sessions --client 192.0.2.7 --json",
	}
	cmd.Flags().StringVar(&q.Relay, "relay", "", "of the relay of this `NAME`")
	cmd.Flags().StringVar(&q.Class, "class", "", "in the class of this `NAME`, or in one below it")
	cmd.Flags().StringVar(&q.Client, "client", "", "of this client `ADDRESS`, or ADDRESS:PORT")
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
	rows := [][]string{{"RELAY", "STATE", "CLASS", "CLIENT", "UPSTREAM", "AGE", "UP", "DOWN", "WAITING"}}
	for _, one := range s.Sessions {
		waits := ""
		if one.Waiting {
			waits = "for its turn"
		}
		age := time.Duration(one.AgeSeconds * float64(time.Second))
		rows = append(rows, []string{one.Relay, one.State, one.Class, one.Client, one.Upstream, short(age), bytesOf(one.Upload), bytesOf(one.Download), waits})
	}
	table(w, styleOf(w), "", rows)
	if more := s.Total - len(s.Sessions); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
}
