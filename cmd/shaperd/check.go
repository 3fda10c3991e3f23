package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"shaperd/configs"
	"shaperd/internal/daemon"
	"shaperd/internal/secret"
)

const checkHelp = `Check reads policy files as run would, and changes nothing.

It prints all errors of a file at once, each with its line and column. For a
file that is in order it shows what it says: each relay and interface, and for
each direction the classes with their rates in numbers. A burst that the file does
not give is derived, and marked with a star: for an interface with an MTU of 1500,
plan shows it for those that there are. With schedules the rates are those of now,
and what changes next comes last.

Files that a policy names, such as token_file, are those of the host that runs it:
where one cannot be read here, that is a warning.

It exits with 1 if a file has an error.`

// A checkResult is what was found in one file.
type checkResult struct {
	File     string           `json:"file"`
	Valid    bool             `json:"valid"`
	Errors   []*configs.Error `json:"errors,omitempty"`
	Warnings []*configs.Error `json:"warnings,omitempty"` // of a valid file
	Policy   *policyView      `json:"policy,omitempty"`   // likewise

	err error
}

func newCheckCmd() *cobra.Command {
	var asJSON, quiet bool
	cmd := &cobra.Command{
		Use:     "check FILE...",
		Short:   "Say whether policy files are in order, and what they say",
		Long:    checkHelp,
		Example: "  shaperd check shaperd.yaml\n  shaperd check --quiet *.yaml && echo fine\n  shaperd check --json shaperd.yaml | jq '.[].policy.relays'",
		RunE: func(cmd *cobra.Command, files []string) error {
			results := make([]checkResult, 0, len(files))
			now := time.Now()
			for _, f := range files {
				results = append(results, checkFile(f, now))
			}
			if asJSON {
				if err := printJSON(cmd.OutOrStdout(), results); err != nil {
					return err
				}
			} else {
				for i, r := range results {
					r.print(cmd.OutOrStdout(), cmd.ErrOrStderr(), quiet, i == 0)
				}
			}
			if slices.ContainsFunc(results, func(r checkResult) bool { return !r.Valid }) {
				return errReported
			}
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print nothing but errors")
	return cmd
}

// checkFile reads a policy file and says what is in force at now.
func checkFile(name string, now time.Time) checkResult {
	r := checkResult{File: name}
	p, err := configs.Load(name)
	if err == nil {
		r.Policy, err = viewPolicy(p, nil, now)
	}
	if err == nil {
		r.Valid, r.Warnings = true, unread(p)
		return r
	}
	r.err = err
	for _, e := range daemon.Reasons(err) {
		at, ok := errors.AsType[*configs.Error](e)
		if !ok {
			at = &configs.Error{File: name, Message: e.Error()} // of the file as a whole
		}
		r.Errors = append(r.Errors, at)
	}
	return r
}

// unread are the files that the policy names and that cannot be read here.
func unread(p *configs.Policy) (all []*configs.Error) {
	for _, f := range p.Files() {
		_, err := secret.Read(f.Path)
		text, cure := fmt.Sprintf("%s %q: %v", f.Key, f.Path, errors.Unwrap(err)), "name a file that shaperd can read"
		switch {
		case err == nil:
			continue
		case errors.Is(err, fs.ErrNotExist):
			cure = "write it on each host that runs the policy: shaperd does not start without"
		case errors.Is(err, fs.ErrPermission):
			cure = "check as root or as the service's user to be sure that shaperd can read it"
		}
		all = append(all, f.Wrong(text, cure))
	}
	return all
}

func (r checkResult) print(stdout, stderr io.Writer, quiet, first bool) {
	if r.err != nil {
		fmt.Fprintln(stderr, r.err)
	}
	if quiet || !r.Valid {
		return
	}
	for _, w := range r.Warnings {
		warning := *w
		warning.Message = "warning: " + w.Message
		fmt.Fprintln(stderr, warning.Detail())
	}
	s := styleOf(stdout)
	if !first {
		fmt.Fprintln(stdout)
	}
	fmt.Fprintf(stdout, "%s: %s\n\n", r.File, s.green("in order"))
	r.Policy.print(stdout, s)
	if r.Policy.Metrics != "" {
		fmt.Fprintf(stdout, "\n%s on %s\n", s.bold("metrics"), r.Policy.Metrics)
	}
}
