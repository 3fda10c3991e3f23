package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"shaperd/internal/near"
)

// A usageError is a command line that makes no sense.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// withUsage adds to what is wrong with a command line how the command is used.
func withUsage(cmd *cobra.Command, err error) error {
	usage := cmd.UseLine()
	if cmd.HasSubCommands() {
		usage = cmd.CommandPath() + " COMMAND"
	}
	return usageError{fmt.Errorf("%w\nusage: %s\ntry: %s --help", err, usage, cmd.CommandPath())}
}

// hintDashes adds to what is wrong with a command line, args, that the command
// which it runs needs -- before it: else that one's flags count as shaperd's.
func hintDashes(cmd *cobra.Command, args []string, err error) error {
	given := cmd.Flags().Args()
	if !strings.Contains(cmd.Use, "[-- COMMAND]") || len(given) < 2 || slices.Contains(args, "--") {
		return err
	}
	at := 0
	for _, w := range []string{cmd.Name(), given[0], given[1]} { // in this order
		at += slices.Index(args[at:], w) + 1
	}
	words := []string{cmd.Root().Name()}
	for _, w := range slices.Insert(slices.Clone(args), at-1, "--") {
		words = append(words, word(w))
	}
	return fmt.Errorf("%w\nwrite \"--\" before the command: %s", err, strings.Join(words, " "))
}

// checkUsage has a command and all below it say what is wrong with arguments and
// flags, and what would be right.
func checkUsage(cmd *cobra.Command) {
	cmd.Args = checkArguments
	cmd.SetFlagErrorFunc(flagError)
	if !cmd.Runnable() { // else cobra prints its help, whatever the arguments
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	for _, c := range cmd.Commands() {
		checkUsage(c)
	}
	if cmd.Name() == "help" {
		cmd.Args = checkTopic
	}
}

// checkArguments compares arguments with what the usage line says: FILE is
// needed, [FILE] may be left out, FILE... is one or more.
func checkArguments(cmd *cobra.Command, args []string) error {
	wanted := strings.Fields(cmd.Use)[1:]
	many := len(wanted) > 0 && strings.HasSuffix(wanted[len(wanted)-1], "...")
	needed := slices.IndexFunc(wanted, func(w string) bool { return strings.HasPrefix(w, "[") })
	if needed < 0 {
		needed = len(wanted)
	}
	switch {
	case cmd.HasSubCommands() && len(args) > 0:
		return unknownCommand(cmd, args[0])
	case len(args) < needed:
		return fmt.Errorf("%s: no %s is given", cmd.Name(), strings.TrimSuffix(wanted[len(args)], "..."))
	case len(args) > len(wanted) && !many && cmd.Flags().Lookup("config") != nil:
		return fmt.Errorf("%s: %q is an argument too many: a policy file is given with --config", cmd.Name(), args[len(wanted)])
	case len(args) > len(wanted) && !many:
		return fmt.Errorf("%s: %q is an argument too many", cmd.Name(), args[len(wanted)])
	case len(args) > 0 && len(cmd.ValidArgs) > 0 && !slices.Contains(cmd.ValidArgs, args[0]):
		return fmt.Errorf("%s %q: give %s", strings.ReplaceAll(cmd.Name(), "-", " "), args[0], orList(cmd.ValidArgs))
	}
	return nil
}

// checkTopic finds the command that help is wanted for.
func checkTopic(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	if err == nil && len(rest) > 0 {
		err = unknownCommand(found, rest[0])
	}
	return err
}

// unknownCommand says that a command has no such command, and which may be meant.
func unknownCommand(of *cobra.Command, word string) error {
	var names, longer []string
	for _, c := range of.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names = append(names, c.Name())
		}
		if strings.HasPrefix(c.Name(), word) {
			longer = append(longer, c.Name())
		}
	}
	meant := near.Words(word, names)
	if len(meant) == 0 && word != "" {
		meant = longer
	}
	full := strings.TrimPrefix(of.CommandPath()+" "+word, of.Root().Name()+" ")
	if len(meant) == 0 {
		return fmt.Errorf("unknown command %q", full)
	}
	return fmt.Errorf("unknown command %q; did you mean %s?", full, orList(meant))
}

// flagError says in our words what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); cmd.HasSubCommands() && len(args) > 0 { // whose flag it is
		return unknownCommand(cmd, args[0])
	}
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		dashes := "--"
		if e.GetSpecifiedShortnames() != "" {
			dashes = "-"
		}
		name := dashes + e.GetSpecifiedName()
		if (name == "--config" || name == "-c") && strings.Contains(cmd.Use, "FILE") { // as run has it
			return fmt.Errorf("unknown flag %s: the policy file is an argument: %s FILE", name, cmd.CommandPath())
		}
		if dashes == "-" {
			return fmt.Errorf("unknown flag %s", name)
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		if meant := near.Words(name, names); len(meant) > 0 {
			return fmt.Errorf("unknown flag %s; did you mean %s?", name, orList(meant))
		}
		if cmd.HasSubCommands() {
			return fmt.Errorf("unknown flag %s: a command's flags come after it", name)
		}
		return fmt.Errorf("unknown flag %s", name)
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		value, _ := pflag.UnquoteUsage(e.GetFlag())
		return fmt.Errorf("--%s has no value: write --%[1]s %s", e.GetFlag().Name, value)
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		cure := map[string]string{"duration": "a time such as 90s or 1h", "int": "a whole number", "bool": "true or false, or nothing"}
		if right := cure[e.GetFlag().Value.Type()]; right != "" {
			return fmt.Errorf("--%s %q: write %s", e.GetFlag().Name, e.GetValue(), right)
		}
		return fmt.Errorf("--%s %q: %w", e.GetFlag().Name, e.GetValue(), e.Unwrap())
	}
	return err
}

// together refuses flags that were marked as mutually exclusive, in our words.
func together(cmd *cobra.Command) (err error) {
	const exclusive = "cobra_annotation_mutually_exclusive"
	cmd.Flags().Visit(func(f *pflag.Flag) {
		for _, group := range f.Annotations[exclusive] {
			for name := range strings.FieldsSeq(group) {
				if err == nil && name != f.Name && cmd.Flags().Changed(name) {
					err = fmt.Errorf("give --%s or --%s, not both", f.Name, name)
				}
			}
		}
	})
	return errors.Join(err, cmd.ValidateFlagGroups())
}

// orList lists what may be meant.
func orList(words []string) string {
	if n := len(words) - 1; n > 0 {
		return strings.Join(words[:n], ", ") + " or " + words[n]
	}
	return words[0]
}
