package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(report(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr), os.Stderr))
}

// run carries out the command that args give.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	root := newRootCmd()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	checkUsage(root)
	began := false
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := together(cmd); err != nil { // cobra would find it later
			return err
		}
		began = true
		return nil
	}
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !began { // what cobra says of flags and arguments
		err = usageError{err}
	}
	if usage := (usageError{}); errors.As(err, &usage) {
		err = withUsage(cmd, hintDashes(cmd, args, usage.error))
	}
	return err
}

// errReported is what a command returns that has printed its errors itself.
var errReported = errors.New("errors were found")

// report prints err, nothing if it is nil, and returns the exit code.
func report(err error, stderr io.Writer) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errReported):
		return 1
	case errors.As(err, new(exitError)):
		var exit exitError
		errors.As(err, &exit)
		if exit.err != nil {
			fmt.Fprintf(stderr, "shaperd: %v\n", exit.err)
		}
		return exit.code
	case errors.Is(err, errDiffers), errors.Is(err, errProblems):
		return 2
	}
	fmt.Fprintf(stderr, "shaperd: %v\n", err)
	if errors.As(err, new(usageError)) {
		return 2
	}
	if errors.Is(err, errNotAdmitted) {
		return 75
	}
	return 1
}
