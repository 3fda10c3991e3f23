package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// A build says what was built, as the Go toolchain recorded it.
type build struct {
	Version  string    `json:"version"`
	Revision string    `json:"revision,omitempty"`
	Time     time.Time `json:"time,omitzero"` // of the revision
	Modified bool      `json:"modified"`      // the source differed from the revision
	Go       string    `json:"go"`
	Platform string    `json:"platform"`
}

func readBuild() build {
	b := build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time, _ = time.Parse(time.RFC3339, s.Value) // zero if it is no time
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (b build) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "shaperd %s\n", b.Version)
	if b.Revision != "" {
		fmt.Fprintf(&out, "revision %s", b.Revision)
		if b.Modified {
			out.WriteString(", modified")
		}
		if !b.Time.IsZero() {
			fmt.Fprintf(&out, ", of %s", b.Time.Format(time.DateOnly))
		}
		out.WriteByte('\n')
	}
	fmt.Fprintf(&out, "%s %s\n", b.Go, b.Platform)
	return out.String()
}

func newVersionCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say what version this is, and what it was built from",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return printJSON(cmd.OutOrStdout(), readBuild())
			}
			_, err := fmt.Fprint(cmd.OutOrStdout(), readBuild())
			return err
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}
