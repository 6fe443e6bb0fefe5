package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leveretmq/leveret/broker"
)

func stateCommands() []command {
	list := listCommands([]listing{
		{name: "list_feature_flags", short: "List the feature flags; all are on", title: "Listing feature flags ...",
			path: everywhere("feature-flags"), defaults: "name state", columns: same("name state stability provided_by desc doc_url")},
		{name: "list_deprecated_features", short: "List the features that RabbitMQ advises against", title: "Listing deprecated features ...",
			path: everywhere("deprecated-features"), defaults: "name deprecation_phase", columns: same("name deprecation_phase provided_by desc doc_url")},
	})
	list[1].flags = func(f *pflag.FlagSet) { f.Bool("used", false, "only those that are in use") }
	all := list[1].run
	list[1].run = func(ctx context.Context, s *session, args []string) error {
		if !s.on("used") {
			return all(ctx, s, args)
		}
		used := listing{name: "list_deprecated_features", title: "Listing deprecated features in use ...", path: func(string) string { return apiPath("deprecated-features", "used") },
			defaults: "name deprecation_phase", columns: same("name deprecation_phase provided_by desc doc_url")}
		return used.run(ctx, s, args)
	}
	return append(list, []command{
		{use: "status", short: "Show the state of the broker", args: cobra.NoArgs, run: status, flags: unitFlag},
		{use: "cluster_status", short: "Show the cluster, which is one node", args: cobra.NoArgs, run: clusterStatus},
		{use: "environment", short: "Show the broker's settings as far as the API has them, as JSON", args: cobra.NoArgs, run: environment},
		{use: "memory_breakdown", short: "Show where the memory is", args: cobra.NoArgs, run: memoryBreakdown, flags: unitFlag},
		{use: "listeners", short: "List what the broker listens on", args: cobra.NoArgs, run: listeners},
		{use: "server_version", short: "Print the version of RabbitMQ that clients are told", args: cobra.NoArgs, run: serverVersion},
		{use: "enable_feature_flag FLAG", short: "Accepted: all feature flags are on", args: cobra.ExactArgs(1), run: enableFeatureFlag,
			flags: func(f *pflag.FlagSet) { f.Bool("opt-in", false, "taken and ignored") }},
		{use: "log_location", short: "Say where the log is", args: cobra.NoArgs, run: logLocation,
			flags: func(f *pflag.FlagSet) { f.BoolP("all", "a", false, "all places: it is one") }},
		{use: "rotate_logs", short: "Accepted: a log file rotates by itself, as log.file.rotation says, and is opened anew at SIGHUP", args: cobra.NoArgs, run: logLocation},
	}...)
}

func unitFlag(f *pflag.FlagSet) { f.String("unit", "gb", "`unit` of the figures: gb, mb or bytes") }

// A node is the API's object of the broker's node.
type node struct{ object }

func (s *session) node(ctx context.Context) (node, error) {
	var nodes []object
	if err := s.api.get(ctx, apiPath("nodes"), &nodes); err != nil {
		return node{}, err
	}
	if len(nodes) == 0 {
		return node{}, exitf(exitSoftware, "the broker names no node")
	}
	return node{nodes[0]}, nil
}

// alarms are the resources that are short.
func (n node) alarms() []string {
	list := []string{}
	if n.text("mem_alarm") == "true" {
		list = append(list, "memory")
	}
	if n.text("disk_free_alarm") == "true" {
		list = append(list, "disk")
	}
	return list
}

func (n node) number(name string) int64 {
	v, _ := strconv.ParseInt(n.text(name), 10, 64) // 0 if the broker leaves it out
	return v
}

func clusterStatus(ctx context.Context, s *session, _ []string) error {
	n, err := s.node(ctx)
	if err != nil {
		return err
	}
	var name struct{ Name string }
	if err := s.api.get(ctx, apiPath("cluster-name"), &name); err != nil {
		return err
	}
	var o overview
	if err := s.api.get(ctx, apiPath("overview"), &o); err != nil {
		return err
	}
	self := n.text("name")
	if s.opts.formatter == "json" {
		return s.clusterDocument(ctx, n, name.Name, &o)
	}
	s.say("Cluster status of node %s ...", self)
	s.printf("Basics\n\nCluster name: %s\nTotal CPU cores available cluster-wide: %d\n", name.Name, n.number("processors"))
	for _, part := range []struct{ heading, line string }{
		{"Cluster Tags", "(none)"},
		{"Disk Nodes", self},
		{"Running Nodes", self},
		{"Versions", fmt.Sprintf("%s: %s %s on %s", self, o.Product, o.ProductVersion, o.Erlang)},
		{"CPU Cores", fmt.Sprintf("Node: %s, available CPU cores: %d", self, n.number("processors"))},
		{"Maintenance status", fmt.Sprintf("Node: %s, status: %s", self, n.maintenance())},
	} {
		s.heading(part.heading)
		s.printf("%s\n", part.line)
	}
	s.heading("Alarms")
	s.alarmLines(n.alarms())
	s.heading("Network Partitions")
	s.printf("(none)\n")
	s.heading("Listeners")
	for _, l := range o.listeners() {
		s.printf("Node: %s, %s\n", self, strings.Replace(l.line(), "Interface", "interface", 1))
	}
	return nil
}

// clusterDocument is cluster_status as JSON, with RabbitMQ 4.0's members.
func (s *session) clusterDocument(ctx context.Context, n node, cluster string, o *overview) error {
	var flags []object
	if err := s.api.get(ctx, apiPath("feature-flags"), &flags); err != nil {
		return err
	}
	self := n.text("name")
	return s.document(map[string]any{
		"cluster_name": cluster, "cluster_tags": []string{}, "disk_nodes": []string{self}, "ram_nodes": []string{}, "running_nodes": []string{self},
		"partitions": map[string]any{}, "alarms": n.alarms(), "maintenance_status": map[string]string{self: n.maintenance()},
		"listeners": map[string]any{self: o.listeners()}, "cpu_cores": map[string]int64{self: n.number("processors")}, "feature_flags": flags,
		"versions": map[string]any{self: map[string]string{"rabbitmq_name": o.Product, "rabbitmq_version": o.Version, "erlang_version": o.Erlang}},
	})
}

// megabytes is a size as people read it; the larger ones are gigabytes.
func megabytes(n int64) string {
	if n >= 10e9 {
		return fmt.Sprintf("%.2f GB", float64(n)/1e9)
	}
	return fmt.Sprintf("%.4g MB", float64(n)/1e6)
}

func environment(ctx context.Context, s *session, _ []string) error {
	n, err := s.node(ctx)
	if err != nil {
		return err
	}
	var o object
	if err := s.api.get(ctx, apiPath("overview"), &o); err != nil {
		return err
	}
	s.say("Application environment of node %s ...", n.text("name"))
	return s.document(map[string]any{"rabbit": map[string]any{
		"node": n.object["name"], "data_dir": n.object["db_dir"], "config_files": n.object["config_files"], "log_files": n.object["log_files"],
		"memory_limit": n.object["mem_limit"], "disk_free_limit": n.object["disk_free_limit"], "listeners": o["listeners"],
		"default_queue_type": o["default_queue_type"], "cluster_name": o["cluster_name"], "leveret_store": o["leveret_store"],
	}})
}

func memoryBreakdown(ctx context.Context, s *session, _ []string) error {
	n, err := s.node(ctx)
	if err != nil {
		return err
	}
	m, err := s.memory(ctx, n)
	if err != nil {
		return err
	}
	if s.opts.formatter == "json" {
		return s.document(m.shares())
	}
	size, err := s.sizes()
	if err != nil {
		return err
	}
	s.say("Reporting memory breakdown on node %s...", n.text("name"))
	for _, p := range m.parts() {
		s.printf("%s: %s (%s%%)\n", p.name, size(p.bytes), decimal(p.percent, 2))
	}
	return nil
}

func serverVersion(ctx context.Context, s *session, _ []string) error {
	s.say("Asking node %s for its RabbitMQ version...", s.api.shown)
	var version string
	if err := s.api.get(ctx, apiPath("version"), &version); err != nil {
		return err
	}
	if s.opts.formatter == "json" {
		return s.document(map[string]any{"result": "ok", "value": version})
	}
	return s.result("%s", version)
}

// toolVersionCommand is `version` of RabbitMQ's tools. Scripts compare it with
// versions of RabbitMQ; without a broker to ask it is Leveret's.
func toolVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of RabbitMQ that this stands for", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := &options{formatter: "table", timeout: 2}
			s, err := open(cmd, o)
			if err != nil {
				return err
			}
			version := broker.Version()
			if s.api.get(cmd.Context(), apiPath("version"), &version) != nil {
				version = broker.Version()
			}
			s.printf("%s\n", version)
			return nil
		},
	}
}

func enableFeatureFlag(ctx context.Context, s *session, args []string) error {
	if args[0] == "all" {
		s.say("Enabling all feature flags ...")
		return nil
	}
	s.say("Enabling feature flag %q ...", args[0])
	err := s.api.do(ctx, "PUT", apiPath("feature-flags", args[0], "enable"), nil, nil)
	if isStatus(err, http.StatusBadRequest) { // RabbitMQ 4.0: text and exit code
		node, _ := s.where(ctx)
		return &exitError{code: exitUsage, text: "This feature flag is not supported by node " + node, bare: true}
	}
	return err
}
