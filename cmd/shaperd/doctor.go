package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"shaperd/internal/doctor"
)

const doctorHelp = `Doctor says whether this machine can do what a policy wants, what would bypass
the shaping, and how to cure it. It looks at the policy beside the interfaces,
the kernel, the privileges, what forwards packets past the classes, other
programs that shape, and the limits of the host. Each finding says what it costs,
and the cure; its name in brackets leads to docs/doctor.md.

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
	cmd := &cobra.Command{
		Use:     "doctor [FILE]",
		Short:   "Say whether this machine can do what a policy wants",
		Long:    doctorHelp,
		Example: "  sudo shaperd doctor shaperd.yaml\n  shaperd doctor --verbose\n  shaperd doctor --json | jq '.findings[] | select(.verdict == \"problem\")'",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := loadPolicy(strings.Join(args, ""))
			if err != nil {
				return err
			}
			r := doctor.Examine(doctor.Gather(p))
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
	cmd.MarkFlagsMutuallyExclusive("json", "verbose")
	return cmd
}
