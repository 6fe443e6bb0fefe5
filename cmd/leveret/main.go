// Command leveret is the broker and the client of its HTTP API. Without a
// command it serves. Under the name of one of RabbitMQ's tools, through a
// symbolic link for instance, it is that tool.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run(context.Background(), os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program; its first argument is the name it is called by. It
// returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	name := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	root := rootFor(name)
	rest := args[1:]
	if i := slices.Index(rest, "-detached"); i >= 0 && name == "rabbitmq-server" {
		if err := detach(slices.Concat(rest[:i], rest[i+1:]), errs); err != nil {
			return report(errs, root, root, err)
		}
		return 0
	}
	switch {
	case root.Name() == "rabbitmqadmin":
		rest = fromV2(rest)
	case len(rest) > 0 && rest[0] == "admin":
		rest = append([]string{"admin"}, fromV2(rest[1:])...)
	}
	root.SetArgs(rest)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if isTool(root) {
		return reportTool(errs, cmd, rest, err)
	}
	return report(errs, root, cmd, err)
}

// isTool says whether the program goes by the name of one of RabbitMQ's tools that
// have their way to tell of errors.
func isTool(root *cobra.Command) bool {
	return root.Name() != "leveret" && root.Name() != "rabbitmqadmin"
}

// rootFor is the tool of this name; leveret itself for any other.
func rootFor(name string) *cobra.Command {
	switch name {
	case "rabbitmqctl", "rabbitmq-diagnostics", "rabbitmq-queues", "rabbitmq-streams", "rabbitmq-upgrade", "rabbitmq-vhosts":
		return ctlRoot(name)
	case "rabbitmq-plugins":
		return pluginsRoot()
	case "rabbitmqadmin":
		return adminCommand(name)
	}
	return rootCommand()
}

// report prints an error and says with which code to exit. What has no code of
// its own comes from cobra and is about the command line.
func report(w io.Writer, root, cmd *cobra.Command, err error) int {
	prefix := root.Name() + ": "
	if root.Name() == "rabbitmqadmin" {
		prefix = "*** "
	}
	if coloured(w) {
		prefix = red(prefix)
	}
	_, _ = fmt.Fprintf(w, "%s%v\n", prefix, err) // there is nobody else to tell
	e, ok := errors.AsType[*exitError](err)
	if !ok {
		e = &exitError{code: exitUsage}
	}
	if e.code == exitUsage && !e.bare {
		_, _ = fmt.Fprintf(w, "\nUsage: %s\n`%s --help` has more.\n", cmd.UseLine(), cmd.CommandPath())
	}
	return e.code
}
