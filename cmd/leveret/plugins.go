package main

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leveretmq/leveret/broker"
)

// builtIn are the plug-ins of RabbitMQ whose work the broker does by itself.
var builtIn = []string{
	"rabbitmq_auth_mechanism_ssl", "rabbitmq_consistent_hash_exchange", "rabbitmq_delayed_message_exchange", "rabbitmq_event_exchange",
	"rabbitmq_management", "rabbitmq_management_agent", "rabbitmq_prometheus", "rabbitmq_random_exchange",
	"rabbitmq_recent_history_exchange", "rabbitmq_sharding", "rabbitmq_web_dispatch",
}

// notBuiltIn are those that exist and that the broker has nothing for.
var notBuiltIn = []string{
	"rabbitmq_amqp1_0", "rabbitmq_auth_backend_cache", "rabbitmq_auth_backend_http", "rabbitmq_auth_backend_ldap", "rabbitmq_auth_backend_oauth2",
	"rabbitmq_federation", "rabbitmq_federation_management", "rabbitmq_federation_prometheus", "rabbitmq_jms_topic_exchange",
	"rabbitmq_mqtt", "rabbitmq_peer_discovery_aws", "rabbitmq_peer_discovery_common", "rabbitmq_peer_discovery_consul", "rabbitmq_peer_discovery_etcd", "rabbitmq_peer_discovery_k8s",
	"rabbitmq_shovel", "rabbitmq_shovel_management", "rabbitmq_shovel_prometheus", "rabbitmq_stomp", "rabbitmq_stream",
	"rabbitmq_stream_management", "rabbitmq_top", "rabbitmq_tracing", "rabbitmq_trust_store", "rabbitmq_web_mqtt", "rabbitmq_web_mqtt_examples",
	"rabbitmq_web_stomp", "rabbitmq_web_stomp_examples",
}

// pluginParts are what plug-ins share: they can be enabled by name, and are not
// listed (RabbitMQ 4.0).
var pluginParts = []string{"amqp_client", "oauth2_client", "rabbitmq_aws", "rabbitmq_stream_common"}

// pluginsRoot is the program under the name of rabbitmq-plugins.
func pluginsRoot() *cobra.Command {
	root := pluginsCommand()
	root.Use = "rabbitmq-plugins"
	root.GroupID = ""
	root.Args, root.RunE = cobra.ArbitraryArgs, toolRun
	root.SetHelpCommand(toolHelp())
	root.Flags().Bool("version", false, "print the version of RabbitMQ that this stands for")
	return quiet(root)
}

// pluginsCommand takes the commands of rabbitmq-plugins. There is nothing to
// enable: they say what is built in.
func pluginsCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "plugins",
		Short: "Commands of rabbitmq-plugins: show what is built in",
		Long:  "The broker has no plug-ins: what it can do is built in and always on.\nThese commands are for scripts that enable plug-ins of RabbitMQ.",
		Args:  noCommand,
		RunE:  showHelp,
	}
	f := root.PersistentFlags()
	for _, name := range []string{"offline", "online", "all", "longnames"} {
		f.Bool(name, false, "taken and ignored")
	}
	f.BoolP("quiet", "q", false, "say nothing but the result")
	f.BoolP("silent", "s", false, "as --quiet")
	f.StringP("node", "n", "", "taken and ignored")
	f.StringP("timeout", "t", "", "taken and ignored")
	f.String("formatter", "table", "`format` of the list: table or json")
	root.AddCommand(pluginsList(), pluginsIsEnabled(),
		&cobra.Command{Use: "enable PLUGIN...", Short: "Check that plug-ins are built in", Args: somePlugins, RunE: enablePlugins},
		&cobra.Command{Use: "set [PLUGIN...]", Short: "As enable", Args: cobra.ArbitraryArgs, RunE: enablePlugins},
		&cobra.Command{Use: "disable PLUGIN...", Short: "Accepted: what is built in stays on", Args: somePlugins, RunE: disablePlugins},
		&cobra.Command{Use: "directories", Short: "Say where plug-ins are: nowhere", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "Plugin archives directory: (none, everything is built in)")
			return err
		}})
	return root
}

// somePlugins wants names, or --all.
func somePlugins(cmd *cobra.Command, args []string) error {
	if cmd.Flag("all").Value.String() == "true" {
		return nil
	}
	return countedArgs(cobra.MinimumNArgs(1))(cmd, args)
}

func pluginsList() *cobra.Command {
	cmd := &cobra.Command{Use: "list [PATTERN]", Short: "List the plug-ins of RabbitMQ, and what of them is built in", Args: countedArgs(cobra.MaximumNArgs(1)), RunE: listPlugins}
	f := cmd.Flags()
	f.BoolP("minimal", "m", false, "names only")
	f.BoolP("verbose", "v", false, "taken and ignored")
	f.BoolP("enabled", "E", false, "only what is built in")
	f.BoolP("implicitly-enabled", "e", false, "as --enabled")
	return cmd
}

// A plugin is one as the list has it in JSON (RabbitMQ 4.0).
type plugin struct {
	Name           string `json:"name"`
	Enabled        string `json:"enabled,omitempty"`
	Running        *bool  `json:"running,omitempty"`
	Version        string `json:"version,omitempty"`
	RunningVersion string `json:"running_version,omitempty"`
}

// listPlugins lists what fits the pattern: what is built in is enabled explicitly
// and running.
func listPlugins(cmd *cobra.Command, args []string) error {
	on := func(name string) bool { return cmd.Flag(name).Value.String() == "true" }
	pattern := ".*"
	if len(args) > 0 {
		pattern = args[0]
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return exitf(exitUsage, "the pattern is no regular expression: %v", err)
	}
	names := slices.Clone(builtIn)
	if !on("enabled") && !on("implicitly-enabled") {
		names = append(names, notBuiltIn...)
	}
	slices.Sort(names)
	names = slices.DeleteFunc(names, func(name string) bool { return !re.MatchString(name) })
	switch format := cmd.Flag("formatter").Value.String(); {
	case format == "json":
		return pluginsJSON(cmd.OutOrStdout(), names, on("minimal"))
	case format != "table":
		return exitf(exitUsage, "there is no formatter %q; take table or json", format)
	}
	if !on("quiet") && !on("silent") {
		legend := " Configured: E = explicitly enabled; e = implicitly enabled\n | Status: * = running on this broker\n |/\n"
		_, _ = fmt.Fprintf(cmd.OutOrStdout(), "Listing plugins with pattern %q ...\n%s", pattern, or(on("minimal"), "", legend)) // there is nobody else to tell
	}
	return pluginLines(cmd.OutOrStdout(), names, on("minimal"))
}

// pluginLines prints a line for each (RabbitMQ 4.0).
func pluginLines(out io.Writer, names []string, minimal bool) error {
	width := 0
	for _, name := range names {
		width = max(width, len(name))
	}
	for _, name := range names {
		line := name
		if !minimal {
			line = fmt.Sprintf("[%s] %-*s %s", or(slices.Contains(builtIn, name), "E*", "  "), width, name, broker.Version())
		}
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}

func pluginsJSON(out io.Writer, names []string, minimal bool) error {
	list := []plugin{}
	for _, name := range names {
		p := plugin{Name: name}
		if there := slices.Contains(builtIn, name); !minimal {
			p.Enabled, p.Running, p.Version = or(there, "enabled", "not_enabled"), &there, broker.Version()
			p.RunningVersion = or(there, p.Version, "")
		}
		list = append(list, p)
	}
	format := or(minimal, "minimal", "normal")
	return json.NewEncoder(out).Encode(map[string]any{"status": "running", "format": format, "plugins": list})
}

func pluginsIsEnabled() *cobra.Command {
	return &cobra.Command{
		Use: "is_enabled PLUGIN...", Short: "Check that plug-ins are built in", Args: countedArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range args {
				if !slices.Contains(builtIn, name) {
					return exitf(exitUnavailable, "Plugin %s is not enabled: it is not built in", name)
				}
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "Plugin %s is enabled\n", strings.Join(args, ", "))
			return err
		},
	}
}

// enablePlugins takes the names of plug-ins that exist. One that is not built
// in gets a warning: a script that enables more than it needs must go on.
func enablePlugins(cmd *cobra.Command, args []string) error {
	if err := knownPlugins(args); err != nil {
		return err
	}
	for _, name := range args {
		w, text := cmd.OutOrStdout(), "is built in and always on"
		if !slices.Contains(builtIn, name) {
			w, text = cmd.ErrOrStderr(), "is not built in: the broker goes on without what it does"
		}
		if _, err := fmt.Fprintln(w, name, text); err != nil {
			return err
		}
	}
	return nil
}

// knownPlugins has RabbitMQ 4.0's error for a plug-in that does not exist.
func knownPlugins(names []string) error {
	var unknown []string
	for _, name := range names {
		if !slices.Contains(builtIn, name) && !slices.Contains(notBuiltIn, name) && !slices.Contains(pluginParts, name) {
			unknown = append(unknown, ":"+name)
		}
	}
	if unknown == nil {
		return nil
	}
	return exitf(exitSoftware, "{:plugins_not_found, [%s]}; `list` shows what is built in", strings.Join(unknown, ", "))
}

func disablePlugins(cmd *cobra.Command, args []string) error {
	if err := knownPlugins(args); err != nil {
		return err
	}
	for _, name := range args {
		text := "is built in and stays on"
		if !slices.Contains(builtIn, name) {
			text = "is not built in and off anyway"
		}
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), name, text); err != nil {
			return err
		}
	}
	return nil
}
