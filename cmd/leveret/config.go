package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/leveretmq/leveret/config"
)

// configCommand looks at the configuration without starting a broker.
func configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Look at the configuration", Args: noCommand, RunE: showHelp}
	cmd.AddCommand(configCheckCommand())
	return cmd
}

// A checked is what config check prints as JSON.
type checked struct {
	OK       bool             `json:"ok"`
	Files    []string         `json:"files"`
	Settings []checkedSetting `json:"settings"`
	Notes    []string         `json:"notes"`
	Errors   []string         `json:"errors"`
}

type checkedSetting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

func configCheckCommand() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Print the configuration in force and where each value comes from",
		Long: "check reads flags, environment and files as serve does, and prints each setting\n" +
			"that is not a default with where it comes from. It does not start a broker.\n" +
			"All that is wrong is reported; the exit code is then 78. Where the package is installed\n" +
			"and nothing names a folder, a configuration file or a broker in memory, root sees the\n" +
			"configuration of its service.",
		Args: cobra.NoArgs,
	}
	addSettings(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&all, "all", false, "print defaults too")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		flags := givenFlags(cmd.Flags())
		packaged := findService("/", flags, os.LookupEnv)
		values, cfg, err := config.Effective(flags, packaged.environment(os.LookupEnv))
		cfg.Notes = append(cfg.Notes, config.Misspelt(append(os.Environ(), packaged.pairs()...))...)
		if packaged != nil {
			cfg.Notes = append([]string{packaged.remark()}, cfg.Notes...)
		}
		c := check(values, cfg, err, all)
		print := c.print
		if asJSON {
			print = c.printJSON
		}
		if printErr := print(cmd.OutOrStdout()); printErr != nil {
			return exitf(exitFailure, "%v", printErr)
		}
		if err != nil {
			return exitf(exitConfig, "the configuration is wrong\n%v", err)
		}
		return nil
	}
	return cmd
}

// check gathers what there is to say; defaults only if all is set.
func check(values []config.Value, cfg config.Config, err error, all bool) checked {
	c := checked{OK: err == nil, Files: cfg.Files, Settings: []checkedSetting{}, Notes: cfg.Notes, Errors: []string{}}
	if err != nil {
		c.Errors = strings.Split(err.Error(), "\n")
	}
	for _, v := range values {
		if all || v.Origin != "default" {
			c.Settings = append(c.Settings, checkedSetting(v))
		}
	}
	if c.Files == nil {
		c.Files = []string{}
	}
	if c.Notes == nil {
		c.Notes = []string{}
	}
	return c
}

func (c checked) printJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(c)
}

// print prints a table; values of several lines have a row for each.
func (c checked) print(w io.Writer) error {
	files := "none"
	if len(c.Files) > 0 {
		files = strings.Join(c.Files, " ")
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintf(t, "# files: %s\n", files) // an error comes again with Flush
	for _, s := range c.Settings {
		for i, line := range strings.Split(s.Value, "\n") {
			origin := ""
			if i == 0 {
				origin = "# " + s.Origin
			}
			_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", s.Name, line, origin)
		}
	}
	for _, n := range slices.Compact(slices.Clone(c.Notes)) {
		_, _ = fmt.Fprintf(t, "# note: %s\n", n)
	}
	if c.OK {
		_, _ = fmt.Fprintln(t, "# the configuration is right")
	}
	return t.Flush()
}
