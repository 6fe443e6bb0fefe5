package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leveretmq/leveret/broker"
	"github.com/leveretmq/leveret/config"
)

// rootCommand is the whole command line. The root itself is serve, so that
// `leveret` alone starts a broker.
func rootCommand() *cobra.Command {
	serve := serveCommand()
	root := &cobra.Command{
		Use:   "leveret",
		Short: "A message broker that RabbitMQ clients use unchanged",
		Long: "Leveret is an AMQP 0-9-1 broker that RabbitMQ clients use unchanged.\n`leveret` alone is `leveret serve`." +
			"\nAll other commands ask a running broker through its HTTP API.",
		Args: noCommand,
		RunE: serve.RunE,
	}
	addSettings(root.Flags())
	root.AddCommand(serve, versionCommand(), benchCommand(), configCommand(), tlsCommand(), adminCommand("admin"), pluginsCommand(), migrateCommand(), doctorCommand(), manCommand())
	addClient(root, &options{}, false)
	return quiet(root)
}

// noCommand refuses the arguments of the root, which are commands that do not
// exist, and names those that look like them.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		text += "; did you mean " + strings.Join(similar, " or ") + "?"
	}
	return exitf(exitUsage, "%s", text)
}

func serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Start the broker and serve until SIGTERM or SIGINT",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := serve(givenFlags(cmd.Flags())); err != nil {
				return &exitError{code: exitFailure, text: err.Error()}
			}
			return nil
		},
	}
	addSettings(cmd.Flags())
	return cmd
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "leveret %s %s %s/%s\n",
				broker.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// addSettings makes a flag of each setting. The flags hold text only: config
// reads it, so that flags and environment mean the same.
func addSettings(flags *pflag.FlagSet) {
	flags.SortFlags = false
	for _, s := range config.Settings() {
		flags.Var(&flagText{shown: s.Default, onOff: s.Switch}, s.Name, s.Usage+" ["+s.Env()+"]")
		if s.Switch {
			flags.Lookup(s.Name).NoOptDefVal = "true"
		}
	}
}

// givenFlags are the settings among the flags that were really there.
func givenFlags(flags *pflag.FlagSet) map[string]string {
	given := map[string]string{}
	flags.Visit(func(f *pflag.Flag) {
		if setting, ok := f.Value.(*flagText); ok {
			given[f.Name] = setting.text
		}
	})
	return given
}

// A flagText is the text of one flag; until it is given, the help shows the
// default.
type flagText struct {
	text, shown string
	given       bool
	onOff       bool // it may stand without a value
}

// Set is called by pflag for each time the flag is given; the last one counts.
func (f *flagText) Set(text string) error {
	f.text, f.given = text, true
	return nil
}

// String is what the help shows as the default.
func (f *flagText) String() string {
	if f.given {
		return f.text
	}
	return f.shown
}

// Type is the name of a value in the help, if the usage has none; one of "bool" is
// not shown.
func (f *flagText) Type() string { return or(f.onOff, "bool", "value") }
