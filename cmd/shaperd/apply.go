package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"shaperd/configs"
	"shaperd/internal/daemon"
	"shaperd/netlink"
)

const applyHelp = `Apply puts the interfaces of a policy into force in the kernel, once and without
a daemon: all of it, or nothing when a step is refused. The kernel goes on
shaping when apply has ended; clear undoes it. What is in place already is not
touched: queues, counters and buckets stay.

With --confirm it waits for Enter, and puts back what was there before when none
comes in time: whoever shuts himself out over ssh is let in again.

Without FILE the policy is ` + policyFile + `.`

func newApplyCmd() *cobra.Command {
	var confirm time.Duration
	cmd := &cobra.Command{
		Use:     "apply [FILE]",
		Short:   "Put the interfaces of a policy into force in the kernel, once",
		Long:    applyHelp,
		Example: "  sudo shaperd apply shaperd.yaml\n  sudo shaperd apply --confirm 60s shaperd.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if confirm < 0 {
				return usageError{fmt.Errorf("--confirm %s: write a time such as 60s", confirm)}
			}
			p, err := loadPolicyNow(strings.Join(args, ""))
			if err != nil {
				return err
			}
			if err := haveInterfaces(p); err != nil {
				return err
			}
			ask := func(*netlink.Plan) bool { return true }
			if confirm > 0 {
				ask = func(plan *netlink.Plan) bool {
					return len(plan.Changes) == 0 || confirmed(cmd.InOrStdin(), cmd.ErrOrStderr(), confirm)
				}
			}
			plan, err := daemon.ApplyKernel(p, ask)
			if err != nil {
				return err
			}
			printPlan(cmd.OutOrStdout(), plan, true)
			return nil
		},
	}
	cmd.Flags().DurationVar(&confirm, "confirm", 0, "undo it unless Enter is pressed within this `TIME`")
	return cmd
}

// haveInterfaces refuses a policy with nothing to apply.
func haveInterfaces(p *configs.Policy) error {
	if len(p.Interfaces) == 0 {
		return fmt.Errorf("%s: no interfaces: nothing to apply", p.Name)
	}
	return nil
}

// confirmed waits for a line of input. An end of the input, a hang-up and any
// other signal confirm nothing.
func confirmed(in io.Reader, to io.Writer, within time.Duration) bool {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	fmt.Fprintf(to, "in force: press Enter within %s to keep it ", within)
	line := make(chan error, 1)
	go func() {
		_, err := bufio.NewReader(in).ReadString('\n')
		line <- err
	}()
	select {
	case err := <-line:
		if err == nil {
			return true
		}
		<-ctx.Done() // nobody there to confirm
	case <-ctx.Done():
	}
	fmt.Fprintln(to)
	return false
}

const clearHelp = `Clear removes all that shaperd has in the kernel: its qdiscs, classes, filters and
devices, of this policy or another, also after a crash. What others have there
stays. A daemon that runs would put it back: end it first.`

func newClearCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "clear",
		Short:   "Remove all that shaperd has in the kernel",
		Long:    clearHelp,
		Example: "  sudo shaperd clear",
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, err := daemon.ClearKernel()
			if err != nil {
				return err
			}
			if len(plan.Changes) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "nothing to clear")
				return nil
			}
			printPlan(cmd.OutOrStdout(), plan, true)
			return nil
		},
	}
}

// errDiffers is what plan returns when there is something to do.
var errDiffers = errors.New("the kernel differs from the policy")
