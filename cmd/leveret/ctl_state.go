package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/leveretmq/leveret/broker"
)

func stateCommands() []command {
	list := listCommands([]listing{
		{name: "list_feature_flags", short: "List the feature flags; all are on", title: "Listing feature flags ...",
			path: everywhere("feature-flags"), defaults: "name state", columns: same("name state stability provided_by desc doc_url")},
		{name: "list_deprecated_features", short: "List the features that RabbitMQ advises against", title: "Listing deprecated features ...",
			path: everywhere("deprecated-features"), defaults: "name deprecation_phase", columns: same("name deprecation_phase provided_by desc doc_url"), flags: []string{"used"}},
	})
	return append(list, []command{
		{use: "status", short: "Show the state of the broker", args: cobra.NoArgs, run: status},
		{use: "cluster_status", short: "Show the cluster, which is one node", args: cobra.NoArgs, run: clusterStatus},
		{use: "environment", short: "Show the broker's settings as far as the API has them, as JSON", args: cobra.NoArgs, run: environment},
		{use: "memory_breakdown", short: "Show where the memory is, in bytes", args: cobra.NoArgs, run: memoryBreakdown},
		{use: "listeners", short: "List what the broker listens on", args: cobra.NoArgs, run: listeners},
		{use: "server_version", short: "Print the version of RabbitMQ that clients are told", args: cobra.NoArgs, run: serverVersion},
		{use: "enable_feature_flag FLAG", short: "Accepted: all feature flags are on", args: cobra.ExactArgs(1), run: enableFeatureFlag},
		{use: "log_location", short: "Say where the log is", args: cobra.NoArgs, run: logLocation},
		{use: "rotate_logs", short: "Accepted: the log is standard output", args: cobra.NoArgs, run: logLocation},
	}...)
}

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

// A state is what status shows; its JSON has RabbitMQ 4.0's names.
type state struct {
	Version        string          `json:"rabbitmq_version"`
	Product        string          `json:"product_name"`
	ProductVersion string          `json:"product_version"`
	Node           string          `json:"node_name"`
	PID            int64           `json:"pid"`
	Uptime         int64           `json:"uptime"` // in seconds
	Alarms         []string        `json:"alarms"`
	Plugins        json.RawMessage `json:"active_plugins"`
	DataDir        string          `json:"data_directory"`
	ConfigFiles    json.RawMessage `json:"config_files"`
	LogFiles       json.RawMessage `json:"log_files"`
	Memory         struct {
		Total int64 `json:"total"`
	} `json:"memory"`
	MemoryLimit     int64              `json:"vm_memory_limit"`
	DiskFree        int64              `json:"disk_free"`
	DiskFreeLimit   int64              `json:"disk_free_limit"`
	FileDescriptors map[string]int64   `json:"file_descriptors"`
	Totals          map[string]float64 `json:"totals"`
	Listeners       []object           `json:"listeners"`
}

func (s *session) state(ctx context.Context) (*state, error) {
	n, err := s.node(ctx)
	if err != nil {
		return nil, err
	}
	var o struct {
		Version        string             `json:"rabbitmq_version"`
		Product        string             `json:"product_name"`
		ProductVersion string             `json:"product_version"`
		Totals         map[string]float64 `json:"object_totals"`
		Listeners      []object           `json:"listeners"`
	}
	if err := s.api.get(ctx, apiPath("overview"), &o); err != nil {
		return nil, err
	}
	st := &state{
		Version: o.Version, Product: o.Product, ProductVersion: o.ProductVersion, Node: n.text("name"), PID: n.number("os_pid"),
		Uptime: n.number("uptime") / 1000, Alarms: n.alarms(), Plugins: n.object["enabled_plugins"], DataDir: n.text("db_dir"),
		ConfigFiles: n.object["config_files"], LogFiles: n.object["log_files"],
		MemoryLimit: n.number("mem_limit"), DiskFree: n.number("disk_free"), DiskFreeLimit: n.number("disk_free_limit"),
		FileDescriptors: map[string]int64{"total_used": n.number("fd_used"), "total_limit": n.number("fd_total")},
		Totals:          o.Totals, Listeners: o.Listeners,
	}
	st.Memory.Total = n.number("mem_used")
	return st, nil
}

func status(ctx context.Context, s *session, _ []string) error {
	st, err := s.state(ctx)
	if err != nil {
		return err
	}
	if s.opts.formatter == "json" {
		return s.document(st)
	}
	s.say("Status of node %s ...", st.Node)
	s.heading("Runtime")
	s.printf("OS PID: %d\nUptime (seconds): %d\nRabbitMQ version: %s\nProduct: %s %s\n", st.PID, st.Uptime, st.Version, st.Product, st.ProductVersion)
	s.heading("Plugins")
	s.printf("Enabled plugins: %s\n", cellText(st.Plugins))
	s.heading("Data directory")
	s.printf("Node data directory: %s\n", st.DataDir)
	s.heading("Config files")
	s.printf("%s\n", orNone(cellText(st.ConfigFiles)))
	s.heading("Log file(s)")
	s.printf("%s\n", orNone(cellText(st.LogFiles)))
	s.heading("Alarms")
	s.alarmLines(st.Alarms)
	s.heading("Memory")
	s.printf("Total memory used: %s\nMemory limit: %s\n", megabytes(st.Memory.Total), megabytes(st.MemoryLimit))
	s.heading("File Descriptors")
	s.printf("Total: %d, limit: %d\n", st.FileDescriptors["total_used"], st.FileDescriptors["total_limit"])
	s.heading("Free Disk Space")
	s.printf("Low free disk space watermark: %s\nFree disk space: %s\n", megabytes(st.DiskFreeLimit), megabytes(st.DiskFree))
	s.heading("Totals")
	for _, name := range []string{"connections", "channels", "consumers", "exchanges", "queues"} {
		s.printf("%s: %.0f\n", name, st.Totals[name])
	}
	s.heading("Listeners")
	s.listenerLines(st.Listeners)
	return nil
}

func (s *session) heading(text string) {
	if coloured(s.out) {
		text = bold(text)
	}
	s.printf("\n%s\n\n", text)
}

func orNone(list string) string { return or(list == "[]" || list == "", "(none)", list) }

// megabytes is a size as people read it; the larger ones are gigabytes.
func megabytes(n int64) string {
	if n >= 10e9 {
		return fmt.Sprintf("%.2f GB", float64(n)/1e9)
	}
	return fmt.Sprintf("%.4g MB", float64(n)/1e6)
}

func (s *session) alarmLines(alarms []string) {
	if len(alarms) == 0 {
		s.printf("(none)\n")
	}
	for _, a := range alarms {
		s.printf("%s alarm: publishers are blocked\n", a)
	}
}

func (s *session) listenerLines(list []object) {
	for _, l := range list {
		s.printf("Interface: %s, port: %s, protocol: %s\n", l.text("ip_address"), l.text("port"), l.text("protocol"))
	}
}

func listeners(ctx context.Context, s *session, _ []string) error {
	var o struct{ Listeners []object }
	if err := s.api.get(ctx, apiPath("overview"), &o); err != nil {
		return err
	}
	if s.opts.formatter != "table" {
		return s.print(tableOf([]column{{"interface", "ip_address"}, {"port", "port"}, {"protocol", "protocol"}, {"node", "node"}}, o.Listeners))
	}
	s.listenerLines(o.Listeners)
	return nil
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
	self := n.text("name")
	if s.opts.formatter == "json" {
		return s.document(map[string]any{
			"cluster_name": name.Name, "disk_nodes": []string{self}, "ram_nodes": []string{}, "running_nodes": []string{self},
			"partitions": map[string]any{}, "alarms": n.alarms(), "maintenance_status": map[string]string{self: n.maintenance()},
		})
	}
	s.say("Cluster status of node %s ...", self)
	s.printf("Basics\n\nCluster name: %s\n", name.Name)
	s.heading("Disk Nodes")
	s.printf("%s\n", self)
	s.heading("Running Nodes")
	s.printf("%s\n", self)
	s.heading("Alarms")
	s.alarmLines(n.alarms())
	s.heading("Network Partitions")
	s.printf("(none)\n")
	return nil
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
	var answer struct{ Memory json.RawMessage }
	if err := s.api.get(ctx, apiPath("nodes", n.text("name"), "memory"), &answer); err != nil {
		return err
	}
	s.say("Reporting memory breakdown on node %s...", n.text("name"))
	return s.document(answer.Memory)
}

func serverVersion(ctx context.Context, s *session, _ []string) error {
	s.say("Asking the broker at %s for its version ...", s.api.shown)
	var version string
	if err := s.api.get(ctx, apiPath("version"), &version); err != nil {
		return err
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
		return nil
	}
	s.say("Enabling feature flag %q ...", args[0])
	return orInvalid(s.api.do(ctx, "PUT", apiPath("feature-flags", args[0], "enable"), nil, nil))
}
