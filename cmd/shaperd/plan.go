package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"shaperd/internal/daemon"
	"shaperd/netlink"
)

const planHelp = `Plan compares the interfaces of a policy with what the kernel has, and changes
nothing. It shows each step that apply would take, from what to what, and why.

Without FILE the policy is ` + policyFile + `.

It exits with 0 when nothing differs, and with 2 when something does. An interface
that does not exist is awaited, and is no difference.`

func newPlanCmd() *cobra.Command {
	var asJSON, asTC, brief bool
	cmd := &cobra.Command{
		Use:     "plan [FILE]",
		Short:   "Show what apply would change in the kernel, and why",
		Long:    planHelp,
		Example: "  shaperd plan shaperd.yaml\n  shaperd plan --brief shaperd.yaml\n  shaperd plan --tc shaperd.yaml | sudo sh",
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := loadPolicyNow(strings.Join(args, ""))
			if err != nil {
				return err
			}
			plan, err := daemon.PlanKernel(p)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			switch {
			case asJSON:
				if plan.Changes == nil {
					plan.Changes = []netlink.Change{}
				}
				err = printJSON(out, plan)
			case asTC:
				for _, name := range plan.Missing {
					fmt.Fprintf(out, "# %s\n", awaited(name))
				}
				_, err = io.WriteString(out, plan.Commands())
			case len(p.Interfaces) == 0 && len(plan.Changes) == 0:
				fmt.Fprintf(out, "nothing to do: %s has no interfaces, and the kernel has nothing of shaperd's\n", p.Name)
			default:
				printPlan(out, plan, brief)
			}
			if err == nil && len(plan.Changes) > 0 {
				err = errDiffers
			}
			return err
		},
	}
	jsonFlag(cmd, &asJSON)
	cmd.Flags().BoolVar(&asTC, "tc", false, "print commands of tc and ip that do the same")
	cmd.Flags().BoolVarP(&brief, "brief", "b", false, "one line for each step, without the reasons")
	cmd.MarkFlagsMutuallyExclusive("json", "tc", "brief")
	return cmd
}

// printPlan writes the plan for people.
func printPlan(w io.Writer, p *netlink.Plan, brief bool) {
	s := styleOf(w)
	for _, name := range p.Missing {
		fmt.Fprintf(w, "%s %s\n", s.yellow("missing"), awaited(name))
	}
	for _, note := range p.Notes {
		fmt.Fprintf(w, "%s %s\n", s.yellow("note"), note)
	}
	switch {
	case len(p.Changes) > 0:
	case len(p.Missing) > 0:
		fmt.Fprintf(w, "%s: %s awaited\n", s.yellow("nothing to do now"), areNamed(p.Missing))
		return
	default:
		fmt.Fprintln(w, s.green("nothing to do")+": the kernel has what the policy wants")
		return
	}
	device := ""
	for i := range p.Changes {
		c := &p.Changes[i]
		if c.Device != device {
			device = c.Device
			fmt.Fprintln(w, s.bold(device))
		}
		printChange(w, s, c, brief)
	}
	fmt.Fprintf(w, "\n%s\n", counted(p))
}

// awaited says that an interface of the policy does not exist.
func awaited(name string) string {
	return fmt.Sprintf("there is no interface %s: it is shaped once it comes", name)
}

// areNamed begins a sentence about names.
func areNamed(names []string) string {
	if n := len(names) - 1; n > 0 {
		return strings.Join(names[:n], ", ") + " and " + names[n] + " are"
	}
	return names[0] + " is"
}

func printChange(w io.Writer, s style, c *netlink.Change, brief bool) {
	line := "  " + s.verb(c.Verb) + " " + c.Object
	if c.Why != "" {
		line += s.faint("  " + c.Why)
	}
	if brief {
		parts := make([]string, 0, len(c.Fields))
		for _, f := range c.Fields {
			parts = append(parts, strings.TrimRight(f.Name+" "+fromTo(f), " "))
		}
		fmt.Fprintln(w, strings.TrimRight(line+"  "+strings.Join(parts, ", "), " "))
		return
	}
	fmt.Fprintln(w, line)
	if len(c.Fields) == 0 {
		return
	}
	rows := make([][]string, 0, len(c.Fields))
	for _, f := range c.Fields {
		rows = append(rows, []string{f.Name, fromTo(f), f.Why})
	}
	columns(w, "          ", rows, func(_ int, text string) string { return text })
}

func fromTo(f netlink.FieldChange) string {
	if f.From == "" {
		return f.To
	}
	return f.From + " → " + f.To
}

// verb is what happens, always as wide.
func (s style) verb(verb string) string {
	text := fmt.Sprintf("%-7s", verb)
	switch verb {
	case "add":
		return s.green(text)
	case "delete":
		return s.red(text)
	}
	return s.yellow(text)
}

func counted(p *netlink.Plan) string {
	if len(p.Changes) == 1 {
		return "1 step"
	}
	return fmt.Sprintf("%d steps", len(p.Changes))
}
