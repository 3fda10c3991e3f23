package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"shaperd/internal/demo"
)

const demoHelp = `Demo shows the relay at work, on this machine only: it needs no network and no
privileges.

A SOCKS5 relay with a policy of four classes, and servers and clients for each,
run on loopback. First all classes send, then one falls silent and others borrow
what it leaves, then it comes back; at last each sends alone after a quiet time,
to show its burst. A terminal shows bars, anything else gets a line each second.

It ends with a table: what the policy promises each class and why, and what its
clients have received. It exits with 1 if a class is off by more than 2 %.

With --kernel it shows the kernel's datapath instead, which needs root: a client,
a router and a server in network namespaces of their own, of which nothing is
left. The router's daemon shapes traffic of four classes both ways at once; then
one class falls silent, and at last the router's root qdisc is deleted behind
the daemon's back. A terminal shows each class's rate over time.

With --shared it shows a class that hosts share, which needs redis-server: three
daemons with a relay each divide 30 mbit by a Redis, while their clients want
more or less; then the Redis is killed, and at last another takes its place with
nothing in it. It exits with 1 if a relay is off its share by more than 8 %, or
if all together had more than the rate and the burst in any 100 ms.`

func newDemoCmd() *cobra.Command {
	var seconds int
	var asJSON, kernel, shared bool
	cmd := &cobra.Command{
		Use:     "demo",
		Short:   "Show four classes share a link, configured against measured",
		Long:    demoHelp,
		Example: "  shaperd demo\n  shaperd demo --seconds 60\n  sudo shaperd demo --kernel\n  shaperd demo --shared\n  shaperd demo --json | jq '.phases[].classes[].off_percent'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			length := time.Duration(seconds) * time.Second
			if length < demo.MinLength {
				return usageError{fmt.Errorf("--seconds %d: at least %.0f", seconds, demo.MinLength.Seconds())}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if !kernel && !shared {
				return demo.Run(ctx, cmd.OutOrStdout(), demo.Options{Length: length, JSON: asJSON})
			}
			program, err := os.Executable()
			if err != nil {
				return err
			}
			if shared {
				return demo.RunShared(ctx, cmd.OutOrStdout(), demo.SharedOptions{Program: program, JSON: asJSON})
			}
			return demo.RunKernel(ctx, cmd.OutOrStdout(), demo.KernelOptions{Program: program, JSON: asJSON})
		},
	}
	cmd.Flags().IntVar(&seconds, "seconds", int(demo.DefaultLength.Seconds()), "how long it takes, about `N` seconds")
	cmd.Flags().BoolVar(&kernel, "kernel", false, "show the kernel's datapath, on a router in a network namespace; needs root")
	cmd.Flags().BoolVar(&shared, "shared", false, "show three hosts that share a class's rate; needs redis-server")
	jsonFlag(cmd, &asJSON)
	cmd.MarkFlagsMutuallyExclusive("kernel", "shared", "seconds")
	return cmd
}
