package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A command is one command of the client, under the name that RabbitMQ's tools
// have for it.
type command struct {
	use    string // the name and the arguments, as the help shows them
	short  string
	args   cobra.PositionalArgs
	flags  func(*pflag.FlagSet) // options of its own; nil is none
	values []string             // that arguments may have, for completion; nil is by the usage
	run    func(ctx context.Context, s *session, args []string) error
	sub    []command // in place of run
}

// A commandGroup is what stands together in the help.
type commandGroup struct {
	id, title string
	commands  []command
}

// clientGroups is the full list of the client's commands.
func clientGroups() []commandGroup {
	return []commandGroup{
		{"messages", "Messages", messageCommands()},
		{"queues", "Queues, exchanges, bindings", slices.Concat(listCommands(topologyListings()), queueCommands())},
		{"connections", "Connections", slices.Concat(listCommands(connectionListings()), connectionCommands())},
		{"users", "Users and permissions", slices.Concat(userCommands(), permissionCommands())},
		{"vhosts", "Virtual hosts", vhostCommands()},
		{"policies", "Policies, limits, parameters", slices.Concat(policyCommands(), limitCommands(), parameterCommands())},
		{"health", "Health and state", slices.Concat(topCommands(), healthCommands(), stateCommands(), maintenanceCommands(), nodeCommands(), diagnoseCommands(), hostCommands(), lifecycleCommands())},
		{"configuration", "Configuration", encryptCommands()},
		{"definitions", "Definitions", definitionCommands()},
	}
}

// addClient adds the client's commands to root. The options are made by each
// command, or by the root if they may stand before the command as well.
func addClient(root *cobra.Command, o *options, before bool) {
	if before {
		o.add(root.PersistentFlags())
	}
	for _, g := range clientGroups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title + ":"})
		for _, c := range g.commands {
			cmd := c.cobra(o, before)
			cmd.GroupID = g.id
			root.AddCommand(cmd)
		}
	}
	for _, c := range refusedCommands() {
		cmd := c.cobra(o, before)
		cmd.Hidden = true
		cmd.FParseErrWhitelist.UnknownFlags = true // it is refused whatever follows
		root.AddCommand(cmd)
	}
}

func (c *command) cobra(o *options, before bool) *cobra.Command {
	if c.sub != nil {
		cmd := &cobra.Command{Use: c.use, Short: c.short, Args: noCommand, RunE: showHelp}
		for _, sub := range c.sub {
			cmd.AddCommand(sub.cobra(o, before))
		}
		return cmd
	}
	cmd := &cobra.Command{
		Use: c.use, Short: c.short, Args: countedArgs(c.args), Long: c.long(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := emptyName(c.use, args); err != nil {
				return err
			}
			if err := negativeNumber(cmd.Flags()); err != nil {
				return err
			}
			s, err := open(cmd, o)
			if err != nil {
				return err
			}
			if err := s.checkNode(cmd.Context()); err != nil {
				return err
			}
			return explained(c.run(cmd.Context(), s, args))
		},
	}
	cmd.Flags().SortFlags = false // its own come first in the help
	if c.flags != nil {
		c.flags(cmd.Flags())
		completeFlags(cmd, o)
	}
	if !before {
		o.add(cmd.Flags())
	}
	cmd.ValidArgsFunction = completer(o, c.use, c.values)
	return cmd
}

// long is the help of commands whose arguments are some of a list of words.
func (c *command) long() string {
	if !strings.HasSuffix(c.use, "[COLUMN...]") {
		return ""
	}
	return c.short + ".\n\nCOLUMN is one of " + strings.Join(c.values, ", ") + "."
}

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// ctlRoot is the program under the name of one of RabbitMQ's tools. All of them
// have all commands: which tool has which has changed between versions.
func ctlRoot(name string) *cobra.Command {
	root := &cobra.Command{
		Use:   name,
		Short: "Commands of " + name + " for a Leveret broker",
		Long:  "Leveret answers to the name " + name + ": it has the commands, options, output and exit codes\nof RabbitMQ's tool, and talks to the broker's HTTP API.",
	}
	root.Args, root.RunE = cobra.ArbitraryArgs, toolRun
	addClient(root, &options{}, true)
	root.AddCommand(toolVersionCommand())
	root.SetHelpCommand(toolHelp())
	root.Flags().Bool("version", false, "print the version of RabbitMQ that this stands for")
	return quiet(root)
}

// quiet leaves the printing of errors to run.
func quiet(root *cobra.Command) *cobra.Command {
	root.SetFlagErrorFunc(flagError)
	root.SilenceErrors, root.SilenceUsage = true, true
	return root
}

// refusedCommands are commands of RabbitMQ's tools that act on the process, on
// a cluster or on Erlang. The error says what to do in their place.
func refusedCommands() []command {
	const oneNode = "this broker is a single node; there is no cluster to join or leave"
	const erlang = "there is no Erlang in this broker; `status`, `environment`, `report` and the HTTP API tell of its state"
	const streams = "the broker keeps streams as policies say, on one node: see list_queues, and set_policy with max-age or max-length-bytes"
	const process = "the HTTP API does not tell what the process was started with: look at it on its machine, and at `leveret config check`"
	const always = "the disk is always watched; `set_disk_free_limit 0` makes that mean nothing"
	var list []command
	for name, text := range map[string]string{
		"join_cluster": oneNode, "forget_cluster_node": oneNode, "rename_cluster_node": oneNode, "change_cluster_node_type": oneNode,
		"eval": erlang, "remote_shell": erlang, "observer": erlang,
		"force_boot": oneNode, "force_standalone_khepri_boot": oneNode, "update_cluster_nodes": oneNode,
		"shrink": oneNode, "add_member": oneNode, "delete_member": oneNode, "add_replica": oneNode, "delete_replica": oneNode,
		"eval_file": erlang, "exec": erlang, "force_gc": erlang, "maybe_stuck": erlang, "runtime_thread_stats": erlang, "schema_info": erlang,
		"erlang_cookie_hash": erlang, "erlang_cookie_sources": erlang,
		"stream_status": streams, "set_stream_retention_policy": streams, "restart_stream": streams, "coordinator_status": streams,
		"os_env": process, "command_line_arguments": process, "resolver_info": "`resolve_hostname NAME` tells what this machine's resolver makes of a name; its files are /etc/hosts and /etc/resolv.conf",
		"certificates":                          "`leveret doctor` tells when certificates end, check_certificate_expiration whether one does soon",
		"peek":                                  "`leveret queue peek QUEUE` looks at messages",
		"log_tail_stream":                       "log_tail prints the last lines; a queue that is bound to the exchange amq.rabbitmq.log gets those to come",
		"metadata_store_status":                 "definitions are in the broker's one store, of which `status` tells",
		"activate_free_disk_space_monitoring":   always,
		"deactivate_free_disk_space_monitoring": always,
		"enable_auth_attempt_source_tracking":   "logins are counted by protocol only, see list_node_auth_attempt_stats; the log has the failed ones with their addresses",
		"disable_auth_attempt_source_tracking":  "logins are counted by protocol only, see list_node_auth_attempt_stats",
	} {
		list = append(list, command{use: name, short: "Not offered", args: cobra.ArbitraryArgs,
			run: func(context.Context, *session, []string) error {
				return exitf(exitUnavailable, "%s: %s", name, text)
			}})
	}
	return list
}
