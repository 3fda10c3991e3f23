package main

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"shaperd/configs"
	"shaperd/internal/admin"
	"shaperd/internal/doctor"
)

const doctorHelp = `Doctor says whether this machine can do what a policy wants, what would bypass
the shaping, and how to cure it. It looks at the policy beside the interfaces,
the kernel, the privileges, what forwards packets past the classes, other
programs that shape, a daemon that runs, and the limits of the host. Each finding
says what it costs, and the cure; its name in brackets leads to docs/doctor.md.

It changes nothing. As root it tries the parts of the kernel in a network
namespace apart, which may load modules; else it reads what is written of them,
and says what it could not look at.

Without FILE the policy is ` + policyFile + ` where there is one,
else the built-in policy.

It exits with 0 when there is no problem, with 1 when the policy has an error,
and with 2 when a problem was found.`

// errProblems is what doctor returns when it found any.
var errProblems = errors.New("problems were found")

func newDoctorCmd() *cobra.Command {
	var asJSON, verbose bool
	var socket string
	cmd := &cobra.Command{
		Use:     "doctor [FILE]",
		Short:   "Say whether this machine can do what a policy wants",
		Long:    doctorHelp,
		Example: "  sudo shaperd doctor shaperd.yaml\n  shaperd doctor --verbose\n  shaperd doctor --json | jq '.findings[] | select(.verdict == \"problem\")'",
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := loadPolicy(strings.Join(args, ""))
			if err != nil {
				return err
			}
			facts := doctor.Gather(p)
			facts.Daemon, facts.DaemonErr = askDaemon(cmd.Context(), daemonOf(p, socket))
			r := doctor.Examine(facts)
			if asJSON {
				err = printJSON(cmd.OutOrStdout(), r)
			} else {
				printReport(cmd.OutOrStdout(), r, verbose)
			}
			if err == nil && r.Problems > 0 {
				err = errProblems
			}
			return err
		},
	}
	jsonFlag(cmd, &asJSON)
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "say what is well, too")
	cmd.Flags().StringVar(&socket, "socket", "", "`PATH` of the daemon's control socket")
	cmd.MarkFlagsMutuallyExclusive("json", "verbose")
	return cmd
}

// daemonOf is where a daemon of the policy is likely to answer.
func daemonOf(p *configs.Policy, given string) string {
	if given == "" && p.Admin.Socket != "" && os.Getenv("SHAPERD_SOCKET") == "" {
		if _, err := os.Stat(p.Admin.Socket); err == nil {
			return p.Admin.Socket
		}
	}
	return socketOf(given)
}

// askDaemon asks who answers on a control socket what it listens on; nil for nobody.
func askDaemon(ctx context.Context, socket string) (*doctor.Daemon, error) {
	const patience = 5 * time.Second // of one that hangs
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := admin.NewClient(socket).Status(ctx)
	switch {
	case errors.Is(err, admin.ErrNoDaemon):
		return nil, nil
	case err != nil:
		return nil, err
	}
	d := &doctor.Daemon{PID: s.PID, Policy: s.Policy}
	d.Metrics, _ = netip.ParseAddrPort(s.Metrics) // the zero one for none
	d.Admits, _ = netip.ParseAddrPort(s.Admits)
	for _, r := range s.Relays {
		for _, text := range r.Listen {
			if a, err := netip.ParseAddrPort(text); err == nil && r.State == "serving" {
				d.Relays = append(d.Relays, a)
			}
		}
	}
	return d, nil
}
