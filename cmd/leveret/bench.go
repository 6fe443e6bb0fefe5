package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leveretmq/leveret/bench"
)

// benchURL is the environment variable that names the broker to put load on.
const benchURL = "AMQP_URL"

// exitInterrupted is the exit code of a run that a signal ended early, which is
// what shells make of SIGINT.
const exitInterrupted = 130

// A benchOptions is what all commands that make load take besides the settings
// of a scenario.
type benchOptions struct {
	uris, pids []string
	rounds     int
	quiet      bool
	all        bool
	json, csv  string
	html       string
	markdown   string
}

// benchCommand is the load tool.
func benchCommand() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Put load on an AMQP 0-9-1 broker and measure it",
		Long: "Publishes to any AMQP 0-9-1 broker, consumes from it, and measures rates, latencies\n" +
			"and, with --broker-pid, what the broker spends. `leveret bench run` runs scenarios\n" +
			"from files and those that come with the program.\n\n" +
			"It ends with 0 if all went well, 1 if messages were lost, a connection failed or an\n" +
			"expectation (--min-rate, --max-p99) was missed, 69 if no broker could be reached, 130\n" +
			"if it was interrupted (Ctrl-C). A second Ctrl-C ends it at once.",
		Example: "  leveret bench --size 1K --confirm 1000 --persistent --durable\n" +
			"  leveret bench --rate 1000 --duration 1m --max-p99 5ms --html report.html\n" +
			"  leveret bench --queue-pattern perf-%d --from 1 --to 10 --publishers 10 --consumers 10",
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sc := bench.NewScenario()
			sc.Name = "bench"
			return o.run(cmd, []*bench.Scenario{sc})
		},
	}
	o.add(cmd.Flags())
	addScenarioFlags(cmd.Flags())
	cmd.AddCommand(benchRunCommand(), benchListCommand(), benchShowCommand())
	return cmd
}

func benchRunCommand() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "run [NAME|FILE...]",
		Short: "Run scenarios: standard ones by name, or those of files",
		Long: "Runs scenarios one after another; with several brokers in rounds, and compares the\n" +
			"medians. Settings on the command line change every scenario.",
		Example: "  leveret bench run fire-1K durable-1K\n  leveret bench run --all --duration 3s --html report.html\n" +
			"  leveret bench run --all --rounds 3 --uri a=amqp://127.0.0.1:5672 --uri b=amqp://127.0.0.1:5673",
		RunE: func(cmd *cobra.Command, args []string) error {
			scenarios, err := o.scenarios(args)
			if err != nil {
				return err
			}
			return o.run(cmd, scenarios)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return bench.StandardNames(), cobra.ShellCompDirectiveDefault
		},
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "run all standard scenarios")
	o.add(cmd.Flags())
	addScenarioFlags(cmd.Flags())
	return cmd
}

func benchListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the scenarios that come with the program",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range bench.StandardNames() {
				sc, err := bench.Standard(name)
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%-13s %s\n", name, sc.Description); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func benchShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Print a standard scenario as a file to start from",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			source, err := bench.StandardSource(args[0])
			if err != nil {
				return exitf(exitData, "%v", err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "name: %s\n%s", args[0], source)
			return err
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return bench.StandardNames(), cobra.ShellCompDirectiveNoFileComp
		},
	}
}

func (o *benchOptions) add(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringArrayVar(&o.uris, "uri", nil, "broker as [NAME=]amqp://... or amqps://...; may be given several times (default $"+benchURL+", else amqp://guest:guest@127.0.0.1:5672)")
	f.StringArrayVar(&o.pids, "broker-pid", nil, "process of the broker as [NAME=]PID, to measure what it uses (Linux); may be given several times")
	f.IntVar(&o.rounds, "rounds", 1, "run everything so many times")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress")
	f.StringVar(&o.json, "json", "", "write a JSON object a run to this file, - for the standard output")
	f.StringVar(&o.csv, "csv", "", "write a line a second to this file, - for the standard output")
	f.StringVar(&o.html, "html", "", "write a report with plots to this file")
	f.StringVar(&o.markdown, "markdown", "", "write the table of medians to this file")
}

// addScenarioFlags makes a flag of each setting of a scenario.
func addScenarioFlags(flags *pflag.FlagSet) {
	standard := bench.NewScenario()
	for _, s := range bench.Settings() {
		flags.Var(&flagText{shown: s.Text(standard), onOff: s.Switch}, s.Name, s.Usage)
		if s.Switch {
			flags.Lookup(s.Name).NoOptDefVal = "true"
		}
	}
}

// scenarios reads the scenarios that arguments name.
func (o *benchOptions) scenarios(args []string) ([]*bench.Scenario, error) {
	if o.all {
		args = append(bench.StandardNames(), args...)
	}
	if len(args) == 0 {
		return nil, exitf(exitUsage, "no scenario given; name some of `leveret bench list`, a file, or --all")
	}
	var all []*bench.Scenario
	for _, arg := range args {
		list, err := readScenarios(arg)
		if err != nil {
			return nil, exitf(exitData, "%v", err)
		}
		all = append(all, list...)
	}
	return all, nil
}

// readScenarios reads a file, or the standard scenario of this name.
func readScenarios(arg string) ([]*bench.Scenario, error) {
	if filepath.Ext(arg) != ".yaml" && filepath.Ext(arg) != ".yml" && !strings.ContainsRune(arg, filepath.Separator) {
		sc, err := bench.Standard(arg)
		if err != nil {
			return nil, fmt.Errorf("%w (the name of a file ends with .yaml)", err)
		}
		return []*bench.Scenario{sc}, nil
	}
	data, err := os.ReadFile(arg)
	if err != nil {
		return nil, err
	}
	return bench.ParseScenarios(arg, data)
}

// brokers are those of --uri, with the processes of --broker-pid.
func (o *benchOptions) brokers() ([]*bench.Broker, error) {
	uris := o.uris
	if len(uris) == 0 {
		uris = []string{"amqp://guest:guest@127.0.0.1:5672"}
		if env := os.Getenv(benchURL); env != "" {
			uris[0] = env
		}
	}
	var list []*bench.Broker
	for _, text := range uris {
		name, uri := splitName(text, "://")
		b, err := bench.ParseBroker(name, uri)
		if err != nil {
			return nil, exitf(exitUsage, "%v", err)
		}
		list = append(list, b)
	}
	for _, text := range o.pids {
		name, number := splitName(text, "")
		if err := setPID(list, name, number); err != nil {
			return nil, exitf(exitUsage, "%v", err)
		}
	}
	return list, nil
}

// splitName splits NAME=value; the name must come before mark, if there is one.
func splitName(text, mark string) (name, value string) {
	end := len(text)
	if mark != "" {
		end = max(0, strings.Index(text, mark))
	}
	if i := strings.IndexByte(text[:end], '='); i > 0 {
		return text[:i], text[i+1:]
	}
	return "", text
}

// setPID gives the broker of this name its processes; without a name there must
// be one broker.
func setPID(list []*bench.Broker, name, number string) error {
	pid, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("broker-pid: %q is not a process id", number)
	}
	for _, b := range list {
		if b.Name == name || name == "" && len(list) == 1 {
			tree, err := bench.ProcessTree(pid)
			b.PIDs = append(b.PIDs, tree...)
			return err
		}
	}
	return fmt.Errorf("broker-pid: no --uri has the name %q; write NAME=PID, with the NAME of --uri NAME=URI", name)
}

// override applies the settings of the command line to all scenarios.
func override(flags *pflag.FlagSet, scenarios []*bench.Scenario) error {
	given := map[string]string{}
	flags.Visit(func(f *pflag.Flag) {
		if text, ok := f.Value.(*flagText); ok {
			given[f.Name] = text.text
		}
	})
	for _, s := range bench.Settings() {
		text, ok := given[s.Name]
		if !ok {
			continue
		}
		for _, sc := range scenarios {
			if err := s.Set(sc, text); err != nil {
				return exitf(exitUsage, "--%v", err)
			}
		}
	}
	for _, sc := range scenarios {
		if err := sc.Validate(); err != nil {
			return exitf(exitUsage, "%s: %v", sc.Name, err)
		}
	}
	return nil
}

// run runs scenarios and writes what they measured.
func (o *benchOptions) run(cmd *cobra.Command, scenarios []*bench.Scenario) error {
	brokers, err := o.brokers()
	if err != nil {
		return err
	}
	if err := override(cmd.Flags(), scenarios); err != nil {
		return err
	}
	if o.rounds < 1 {
		return exitf(exitUsage, "--rounds is %d; it must be 1 or more", o.rounds)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the next signal ends the program
	out, err := newBenchOutput(o, cmd.OutOrStdout(), cmd.ErrOrStderr(), len(brokers)*len(scenarios)*o.rounds)
	if err != nil {
		return exitf(exitData, "%v", err)
	}
	results, err := o.load(ctx, brokers, scenarios, out)
	if err != nil {
		return err
	}
	if err := out.finish(results); err != nil {
		return exitf(exitData, "%v", err)
	}
	return verdict(results, out.runs)
}

// load runs one scenario, or many in rounds. One that cannot take place is an
// error, of many it becomes a failure.
func (o *benchOptions) load(ctx context.Context, brokers []*bench.Broker, scenarios []*bench.Scenario, out *benchOutput) ([]*bench.Result, error) {
	watch := bench.Options{}
	if !o.quiet {
		watch.Progress = out.progress
	}
	if out.runs > 1 {
		return bench.RunAll(ctx, brokers, scenarios, o.rounds, watch, out.before, out.after)
	}
	r, err := bench.Run(ctx, brokers[0], scenarios[0], watch)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, exitf(exitInterrupted, "interrupted: %v", err)
	case err != nil:
		return nil, exitf(exitUnavailable, "%v", err)
	}
	return []*bench.Result{r}, out.after(r)
}

// verdict is the error that failures of runs make, and that fewer have come to
// their end than the number there should be.
func verdict(results []*bench.Result, runs int) error {
	ended, failed, absent := 0, 0, 0
	for _, r := range results {
		if r.Interrupted {
			continue
		}
		ended++
		if len(r.Failures) > 0 {
			failed++
		}
		if r.NotRun {
			absent++
		}
	}
	switch {
	case ended < runs && runs == 1:
		return exitf(exitInterrupted, "%s", strings.Join(append([]string{"interrupted"}, results[0].Failures...), "; "))
	case ended < runs:
		return exitf(exitInterrupted, "interrupted after %d of %d runs, of which %d failed", ended, runs, failed)
	case failed == 0:
		return nil
	case runs == 1:
		return exitf(exitFailure, "%s", strings.Join(results[0].Failures, "; "))
	case absent == runs:
		return exitf(exitUnavailable, "none of %d runs could take place: %s", runs, results[0].Failures[0])
	}
	return exitf(exitFailure, "%d of %d runs failed", failed, runs)
}
