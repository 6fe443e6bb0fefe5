package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/leveretmq/leveret/broker"
)

// manCommand is for packages: it writes a manual page for each command.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man FOLDER",
		Short:  "Write a manual page for each command into a folder",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return exitf(exitData, "cannot make the folder of the manual: %v", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // the same pages for the same program
			header := &doc.GenManHeader{Section: "1", Source: "Leveret " + broker.Version(), Manual: "Leveret"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return exitf(exitData, "cannot write the manual: %v", err)
			}
			return nil
		},
	}
}
