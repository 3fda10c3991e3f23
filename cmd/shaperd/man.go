package main

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newManCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the man pages into a directory",
		Long:    "Man writes a page for each command, shaperd.1, shaperd-run.1 and so on, into a directory that exists.",
		Example: "  shaperd man /usr/local/share/man/man1",
		RunE: func(cmd *cobra.Command, args []string) error {
			b := readBuild()
			date := b.Time // so that the same source gives the same pages
			if date.IsZero() {
				date = time.Now()
			}
			return doc.GenManTree(cmd.Root(), &doc.GenManHeader{
				Title: "SHAPERD", Section: "1", Source: "shaperd " + b.Version, Manual: "shaperd", Date: &date,
			}, args[0])
		},
	}
}
