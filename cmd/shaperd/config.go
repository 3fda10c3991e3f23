package main

import (
	"github.com/spf13/cobra"

	"shaperd/configs"
)

func newConfigCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Print the built-in policy, the reference, or the schema",
		Example: "  shaperd config reference > shaperd.yaml\n  shaperd config schema > shaperd.schema.json    # for editors that complete YAML",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, c := range []struct {
		name, short string
		text        []byte
	}{
		{"default", "Print the policy that run uses without a file", configs.DefaultText},
		{"reference", "Print a policy with every key, each explained", configs.ReferenceText},
		{"schema", "Print the JSON schema of policy files", configs.SchemaText},
	} {
		cmd.AddCommand(&cobra.Command{
			Use:   c.name,
			Short: c.short,
			RunE: func(cmd *cobra.Command, _ []string) error {
				_, err := cmd.OutOrStdout().Write(c.text)
				return err
			},
		})
	}
	return cmd
}
