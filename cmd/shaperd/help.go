package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func init() { cobra.AddTemplateFunc("flagTable", flagTable) }

// helpTemplate is cobra's with our table of flags: pflag's would put
// [=true|false] behind each switch.
func helpTemplate(cmd *cobra.Command) string {
	return strings.ReplaceAll(cmd.UsageTemplate(), "Flags.FlagUsages | trimTrailingWhitespaces", "Flags | flagTable")
}

func flagTable(flags *pflag.FlagSet) string {
	var names, usages []string
	width := 0
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		short := "    "
		if f.Shorthand != "" {
			short = "-" + f.Shorthand + ", "
		}
		value, usage := pflag.UnquoteUsage(f)
		name := short + "--" + f.Name
		if f.Value.Type() != "bool" {
			name += " " + value
		}
		names, usages, width = append(names, name), append(usages, usage), max(width, len(name))
	})
	var out strings.Builder
	for i, name := range names {
		fmt.Fprintf(&out, "  %-*s   %s\n", width, name, usages[i])
	}
	return strings.TrimSuffix(out.String(), "\n")
}
