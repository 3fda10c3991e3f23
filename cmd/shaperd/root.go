package main

import "github.com/spf13/cobra"

// policyFile is where a service's policy is.
const policyFile = "/etc/shaperd/shaperd.yaml"

const rootHelp = `shaperd gives each kind of traffic on a Linux host its share.

A policy file names classes by port, address, protocol or DSCP, each with a
guaranteed rate, a ceiling up to which it may borrow what others leave, and a
priority. A relay accepts TCP connections and moves their bytes at the pace of
their class, fairly among clients. On network interfaces the kernel shapes all
packets in the same way.

Exit codes: 0 all is well, 1 an error, 2 wrong usage (plan: something
differs; doctor: a problem was found). take returns 75 when its time is over,
else the command's.`

const rootExamples = `  shaperd run                                    # the built-in policy: a SOCKS5 proxy on 127.0.0.1:1080
  shaperd config reference > shaperd.yaml        # a policy to start from, all keys explained
  shaperd check shaperd.yaml                     # is it in order, and what does it say
  shaperd explain shaperd.yaml --dst 192.0.2.7:443
  shaperd run --config shaperd.yaml`

func newRootCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "shaperd",
		Short:             "Traffic classes with guaranteed rates and fair shares",
		Long:              rootHelp,
		Example:           rootExamples,
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		Version:           readBuild().Version,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetUsageTemplate(helpTemplate(cmd))
	cmd.AddCommand(
		newRunCmd(),
		newCheckCmd(),
		newExplainCmd(),
		newPlanCmd(),
		newApplyCmd(),
		newClearCmd(),
		newStatusCmd(),
		newTopCmd(),
		newSetCmd(),
		newSessionsCmd(),
		newReloadCmd(),
		newDrainCmd(),
		newLogLevelCmd(),
		newTakeCmd(),
		newPaceCmd(),
		newDoctorCmd(),
		newConfigCmd(),
		newDemoCmd(),
		newVersionCmd(),
		newManCmd(),
	)
	return cmd
}
