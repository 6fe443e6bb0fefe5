package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// argumentsGiven is how many arguments to try in place of those that are missing.
const argumentsGiven = 8

// countedArgs is a check of the number of arguments with RabbitMQ's words for what
// is wrong.
func countedArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check == nil || check(cmd, args) == nil {
			return nil
		}
		more := args
		for range argumentsGiven {
			if more = append(more[:len(more):len(more)], "x"); check(cmd, more) == nil {
				return exitf(exitUsage, "not enough arguments.")
			}
		}
		return exitf(exitUsage, "too many arguments.")
	}
}

// toolRun is a tool of RabbitMQ's without a command that there is: it says so, or
// how it is used, and fails (RabbitMQ 4.0).
func toolRun(cmd *cobra.Command, args []string) error {
	if on, _ := cmd.Flags().GetBool("version"); on { // it is declared in ctlRoot
		return toolVersionCommand().RunE(cmd, nil)
	}
	if len(args) == 0 {
		cmd.SetOut(cmd.ErrOrStderr())
		_ = cmd.Usage() // there is nobody else to tell
		return &exitError{code: exitUsage}
	}
	return unknownCommand(cmd, args[0])
}

// An unknownError names a command that there is not, in RabbitMQ's words.
type unknownError struct{ text string }

func (e *unknownError) Error() string { return e.text }

func unknownCommand(root *cobra.Command, name string) error {
	root.SuggestionsMinimumDistance = 2
	text := fmt.Sprintf("\nCommand '%s' not found. \n", name)
	if similar := root.SuggestionsFor(name); len(similar) > 0 {
		text += fmt.Sprintf("Did you mean '%s'? \n", strings.Join(similar, "' or '"))
	}
	return &unknownError{text}
}

// toolHelp is `help [COMMAND]` of RabbitMQ's tools.
func toolHelp() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Say how a command is used", Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if len(args) == 0 {
				return root.Help()
			}
			found, _, err := root.Find(args)
			if err != nil || found == root {
				return unknownCommand(root, args[0])
			}
			return found.Help()
		},
	}
}

// reportTool prints an error as RabbitMQ's tools do, and returns the exit code.
func reportTool(w io.Writer, cmd *cobra.Command, given []string, err error) int {
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) } // there is nobody else to tell
	if unknown, ok := errors.AsType[*unknownError](err); ok {
		line("%s\nUsage\n\n%s [--node <node>] [--timeout <timeout>] [--longnames] [--quiet] <command> [<command options>]\n\n`%s help` lists the commands.\n",
			unknown.text, cmd.Root().Name(), cmd.Root().Name())
		return exitUsage
	}
	e, ok := errors.AsType[*exitError](err)
	if !ok { // from cobra, and about the command line
		e = &exitError{code: exitUsage, text: err.Error()}
	}
	switch {
	case e.text == "":
	case e.code == exitUsage && !e.bare:
		line("Error (argument validation): %s\nArguments given:\n\t%s\n\nUsage\n\n%s\n", e.text, strings.Join(given, " "), toolUsage(cmd))
	default:
		prefix := "Error:\n"
		if coloured(w) {
			prefix = red(prefix)
		}
		line("%s%s\n", prefix, e.text)
	}
	return e.code
}

// toolUsage is the line with a command's arguments.
func toolUsage(cmd *cobra.Command) string {
	root := cmd.Root()
	if cmd == root {
		return root.Name() + " [--node <node>] [--timeout <timeout>] [--longnames] [--quiet] <command> [<command options>]"
	}
	line := root.Name() + " [--node <node>] [--longnames] [--quiet] " + cmd.Use
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		value, _ := pflag.UnquoteUsage(f)
		line += " [--" + f.Name + or(value == "", "", " <"+value+">") + "]"
	})
	return line
}

// emptyName refuses the empty name of something that a command is about, as shells
// make of a variable that is not set: in a path of the API it would mean all of them.
func emptyName(use string, args []string) error {
	words := strings.Fields(use)[1:]
	for i, word := range words[:min(len(words), len(args))] {
		word = strings.Trim(word, "[].")
		switch word {
		case "USER", "VHOST", "QUEUE", "NAME", "COMPONENT", "CONNECTION", "POLICY", "FILE", "PIDFILE":
			if args[i] == "" {
				return exitf(exitData, "Bad argument: %s cannot be an empty string", strings.ToLower(word))
			}
		}
	}
	return nil
}

// negativeNumber refuses what could be no number of messages, nor where to begin.
func negativeNumber(flags *pflag.FlagSet) error {
	for _, name := range []string{"count", "last", "offset"} {
		if n, err := flags.GetInt(name); err == nil && n < 0 { // not all commands have them
			return exitf(exitUsage, "--%s must not be negative, and is %d", name, n)
		}
	}
	return nil
}

// flagError says of an option's wrong value what it should be.
func flagError(_ *cobra.Command, err error) error {
	wrong, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return exitf(exitUsage, "%v", err)
	}
	want := wrong.GetFlag().Value.Type()
	switch want {
	case "int", "int64", "uint", "uint16", "float64":
		want = "a number"
	case "bool":
		want = "true or false"
	case "duration":
		want = "a time such as 500ms, 30s or 10m"
	}
	return exitf(exitUsage, "--%s %q: want %s", wrong.GetFlag().Name, wrong.GetValue(), want)
}
