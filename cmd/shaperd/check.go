package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"shaperd/configs"
	"shaperd/internal/daemon"
)

const checkHelp = `Check reads policy files as run would, and changes nothing.

It prints all errors of a file at once, each with its line and column. For a
file that is in order it shows what it says: each relay, and for each direction
the classes with their rates in numbers. A burst that the file does not give is
derived, and marked with a star.

It exits with 1 if a file has an error.`

// A checkResult is what was found in one file.
type checkResult struct {
	File     string      `json:"file"`
	Valid    bool        `json:"valid"`
	Errors   []string    `json:"errors,omitempty"`
	Warnings []string    `json:"warnings,omitempty"`
	Policy   *policyView `json:"policy,omitempty"` // of a valid file
}

func newCheckCmd() *cobra.Command {
	var asJSON, quiet bool
	cmd := &cobra.Command{
		Use:     "check FILE...",
		Short:   "Say whether policy files are in order, and what they say",
		Long:    checkHelp,
		Example: "  shaperd check shaperd.yaml\n  shaperd check --quiet *.yaml && echo fine\n  shaperd check --json shaperd.yaml | jq '.[].policy.relays'",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			results := make([]checkResult, 0, len(files))
			for _, f := range files {
				results = append(results, checkFile(f))
			}
			if asJSON {
				if err := printJSON(cmd.OutOrStdout(), results); err != nil {
					return err
				}
			}
			bad := false
			for i, r := range results {
				bad = bad || !r.Valid
				if asJSON {
					continue
				}
				r.printProblems(cmd.ErrOrStderr())
				if r.Valid && !quiet {
					if i > 0 {
						fmt.Fprintln(cmd.OutOrStdout())
					}
					r.print(cmd.OutOrStdout())
				}
			}
			if bad {
				return errReported
			}
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print nothing but errors and warnings")
	return cmd
}

func checkFile(name string) checkResult {
	r := checkResult{File: name}
	p, err := configs.Load(name)
	if err == nil {
		var v policyView
		if v, err = viewPolicy(p, nil); err == nil {
			r.Valid, r.Policy = true, &v
			r.Warnings = texts(daemon.CheckServable(p)) // in order, but not for this version
			return r
		}
	}
	r.Errors = texts(err)
	return r
}

// texts splits an error into the messages of those that it joins.
func texts(err error) (all []string) {
	for _, e := range daemon.Reasons(err) {
		all = append(all, e.Error())
	}
	return all
}

func (r checkResult) printProblems(w io.Writer) {
	s := styleOf(w)
	for _, e := range r.Errors {
		fmt.Fprintf(w, "%s %s\n", s.red("error:"), e)
	}
	for _, e := range r.Warnings {
		fmt.Fprintf(w, "%s %s\n", s.yellow("warning:"), e)
	}
}

func (r checkResult) print(w io.Writer) {
	s := styleOf(w)
	fmt.Fprintf(w, "%s: %s\n\n", r.File, s.green("in order"))
	r.Policy.print(w, s)
	if r.Policy.Metrics != "" {
		fmt.Fprintf(w, "\n%s on %s\n", s.bold("metrics"), r.Policy.Metrics)
	}
}
