package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// An overview is what the commands use of the API's overview.
type overview struct {
	Node           string             `json:"node"` // "" for users who may not see nodes
	Version        string             `json:"rabbitmq_version"`
	Product        string             `json:"product_name"`
	ProductVersion string             `json:"product_version"`
	Erlang         string             `json:"erlang_version"`
	Totals         map[string]float64 `json:"object_totals"`
	Listeners      []object           `json:"listeners"`
}

// A listenerLine is a listener as RabbitMQ 4.0's tools show it.
type listenerLine struct {
	Node      string      `json:"node"`
	Port      json.Number `json:"port"`
	Protocol  string      `json:"protocol"`
	Interface string      `json:"interface"`
	Purpose   string      `json:"purpose"`
}

func (o *overview) listeners() []listenerLine {
	list := []listenerLine{}
	for _, l := range o.Listeners {
		protocol := l.text("protocol")
		list = append(list, listenerLine{l.text("node"), json.Number(l.text("port")), protocol, bracketed(l.text("ip_address")), purpose(protocol)})
	}
	return list
}

// bracketed is an address as in a URL.
func bracketed(ip string) string { return or(strings.Contains(ip, ":"), "["+ip+"]", ip) }

func purpose(protocol string) string {
	switch protocol {
	case "amqp":
		return "AMQP 0-9-1"
	case "amqp/ssl":
		return "AMQP 0-9-1 over TLS"
	case "http":
		return "HTTP API"
	case "https":
		return "HTTP API over TLS (HTTPS)"
	case "http/prometheus":
		return "Prometheus exporter API over HTTP"
	case "https/prometheus":
		return "Prometheus exporter API over TLS (HTTPS)"
	}
	return protocol
}

func (l *listenerLine) line() string {
	return fmt.Sprintf("Interface: %s, port: %s, protocol: %s, purpose: %s", l.Interface, l.Port, l.Protocol, l.Purpose)
}

func listeners(ctx context.Context, s *session, _ []string) error {
	var o overview
	if err := s.api.get(ctx, apiPath("overview"), &o); err != nil {
		return err
	}
	list := o.listeners()
	switch s.opts.formatter {
	case "json":
		return s.document(map[string]any{"result": "ok", "node": o.Node, "listeners": list})
	case "table":
		s.say("Asking node %s to report its protocol listeners ...", o.Node)
		for _, l := range list {
			s.printf("%s\n", l.line())
		}
		return nil
	}
	return s.print(tableOf([]column{{"interface", "ip_address"}, {"port", "port"}, {"protocol", "protocol"}, {"node", "node"}}, o.Listeners))
}

// A breakdown is the API's answer to where the memory is.
type breakdown map[string]json.RawMessage

func (s *session) memory(ctx context.Context, n node) (breakdown, error) {
	var answer struct{ Memory breakdown }
	err := s.api.get(ctx, apiPath("nodes", n.text("name"), "memory"), &answer)
	return answer.Memory, err
}

// total is the resident memory in bytes.
func (m breakdown) total() int64 {
	var t struct {
		RSS int64 `json:"rss"`
	}
	if json.Unmarshal(m["total"], &t) != nil {
		return 0 // a broker that says it in another way
	}
	return t.RSS
}

// A memoryPart is one category.
type memoryPart struct {
	name    string
	bytes   int64
	percent float64 // of the total
}

// parts are the categories, the largest first.
func (m breakdown) parts() []memoryPart {
	total := float64(max(1, m.total()))
	var list []memoryPart
	for name, raw := range m {
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err == nil { // else it is the total or the strategy
			list = append(list, memoryPart{name, n, 100 * float64(n) / total})
		}
	}
	slices.SortFunc(list, func(a, b memoryPart) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), strings.Compare(a.name, b.name))
	})
	return list
}

// shares are the categories for JSON.
func (m breakdown) shares() map[string]any {
	shares := make(map[string]any)
	for _, p := range m.parts() {
		shares[p.name] = map[string]any{"bytes": p.bytes, "percentage": math.Round(p.percent*100) / 100}
	}
	return shares
}

// sizes prints sizes in the unit that is asked for, gigabytes by default, as
// RabbitMQ 4.0's tools do.
func (s *session) sizes() (func(bytes int64) string, error) {
	unit := "gb"
	if f := s.flags.Lookup("unit"); f != nil { // report has none
		unit = strings.ToLower(f.Value.String())
	}
	scale := map[string]float64{"gb": 1e9, "gigabytes": 1e9, "mb": 1e6, "megabytes": 1e6, "bytes": 1}[unit]
	if scale == 0 {
		return nil, exitf(exitUsage, "unit '%s' is not supported. Please use one of: bytes, mb, gb", unit)
	}
	return func(bytes int64) string { return decimal(float64(bytes)/scale, 4) + " " + unit }, nil
}

// decimal is a number with at most so many digits after the point, and at least one.
func decimal(v float64, digits int) string {
	scale := math.Pow10(digits)
	text := strconv.FormatFloat(math.Round(v*scale)/scale, 'f', -1, 64)
	return text + or(strings.Contains(text, "."), "", ".0")
}

// A state is what status shows; its JSON has RabbitMQ 4.0's names.
type state struct {
	Version         string           `json:"rabbitmq_version"`
	Product         string           `json:"product_name"`
	ProductVersion  string           `json:"product_version"`
	Erlang          string           `json:"erlang_version"`
	Node            string           `json:"node_name"`
	PID             int64            `json:"pid"`
	Uptime          int64            `json:"uptime"` // in seconds
	Maintenance     bool             `json:"is_under_maintenance"`
	Processes       map[string]int64 `json:"processes"`
	RunQueue        int64            `json:"run_queue"`
	TickTime        int64            `json:"net_ticktime"` // in seconds
	Alarms          []string         `json:"alarms"`
	Tags            []string         `json:"tags"`
	Plugins         []string         `json:"active_plugins"`
	DataDir         string           `json:"data_directory"`
	ConfigFiles     []string         `json:"config_files"`
	LogFiles        []string         `json:"log_files"`
	Memory          breakdown        `json:"memory"`
	MemoryStrategy  string           `json:"vm_memory_calculation_strategy"`
	MemoryLimit     int64            `json:"vm_memory_high_watermark_limit"`
	DiskFree        int64            `json:"disk_free"`
	DiskFreeLimit   int64            `json:"disk_free_limit"`
	FileDescriptors map[string]int64 `json:"file_descriptors"`
	Totals          map[string]int64 `json:"totals"`
	Listeners       []listenerLine   `json:"listeners"`
}

func (s *session) state(ctx context.Context) (*state, error) {
	n, err := s.node(ctx)
	if err != nil {
		return nil, err
	}
	var o overview
	if err := s.api.get(ctx, apiPath("overview"), &o); err != nil {
		return nil, err
	}
	var vhosts []object
	if err := s.api.get(ctx, apiPath("vhosts"), &vhosts); err != nil {
		return nil, err
	}
	m, err := s.memory(ctx, n)
	if err != nil {
		return nil, err
	}
	st := &state{
		Version: o.Version, Product: o.Product, ProductVersion: o.ProductVersion, Erlang: o.Erlang, Node: n.text("name"), PID: n.number("os_pid"),
		Uptime: n.number("uptime") / 1000, Maintenance: n.text("being_drained") == "true",
		Processes: map[string]int64{"used": n.number("proc_used"), "limit": n.number("proc_total")}, RunQueue: n.number("run_queue"), TickTime: n.number("net_ticktime"),
		Alarms: n.alarms(), Tags: []string{}, Plugins: n.list("enabled_plugins"), DataDir: n.text("db_dir"),
		ConfigFiles: n.list("config_files"), LogFiles: n.list("log_files"), Memory: m, MemoryStrategy: n.text("mem_calculation_strategy"),
		MemoryLimit: n.number("mem_limit"), DiskFree: n.number("disk_free"), DiskFreeLimit: n.number("disk_free_limit"),
		FileDescriptors: map[string]int64{"total_used": n.number("fd_used"), "total_limit": n.number("fd_total")},
		Totals: map[string]int64{"connection_count": int64(o.Totals["connections"]), "queue_count": int64(o.Totals["queues"]),
			"virtual_host_count": int64(len(vhosts)), "channel_count": int64(o.Totals["channels"]),
			"consumer_count": int64(o.Totals["consumers"]), "exchange_count": int64(o.Totals["exchanges"])},
		Listeners: o.listeners(),
	}
	return st, nil
}

// list is a member that is a list of strings.
func (n node) list(name string) []string {
	list := []string{}
	if json.Unmarshal(n.object[name], &list) != nil || list == nil {
		return []string{} // the broker leaves it out
	}
	return list
}

func status(ctx context.Context, s *session, _ []string) error {
	size, err := s.sizes()
	if err != nil {
		return err
	}
	st, err := s.state(ctx)
	if err != nil {
		return err
	}
	if s.opts.formatter == "json" {
		return s.document(st)
	}
	s.say("Status of node %s ...", st.Node)
	s.heading("Runtime")
	s.printf("OS PID: %d\nUptime (seconds): %d\nIs under maintenance?: %t\nRabbitMQ version: %s\nProduct: %s %s\nNode name: %s\nRuntime: %s\n",
		st.PID, st.Uptime, st.Maintenance, st.Version, st.Product, st.ProductVersion, st.Node, st.Erlang)
	s.heading("Plugins")
	s.printf("Enabled plugins:\n\n")
	s.bullets(st.Plugins)
	s.heading("Data directory")
	s.printf("Node data directory: %s\n", st.DataDir)
	s.heading("Config files")
	s.bullets(st.ConfigFiles)
	s.heading("Log file(s)")
	s.bullets(st.LogFiles)
	s.heading("Alarms")
	s.alarmLines(st.Alarms)
	s.heading("Tags")
	s.bullets(st.Tags)
	s.resources(st, size)
	s.heading("Totals")
	s.printf("Connection count: %d\nQueue count: %d\nVirtual host count: %d\n", st.Totals["connection_count"], st.Totals["queue_count"], st.Totals["virtual_host_count"])
	s.heading("Listeners")
	for _, l := range st.Listeners {
		s.printf("%s\n", l.line())
	}
	return nil
}

// resources prints memory, files and disk of status, the first and last as size
// says.
func (s *session) resources(st *state, size func(bytes int64) string) {
	s.heading("Memory")
	s.printf("Total memory used: %s\nCalculation strategy: %s\nMemory high watermark setting: computed to: %s\n\n",
		size(st.Memory.total()), st.MemoryStrategy, size(st.MemoryLimit))
	for _, p := range st.Memory.parts() {
		s.printf("%s: %s (%s %%)\n", p.name, size(p.bytes), decimal(p.percent, 2))
	}
	s.heading("File Descriptors")
	s.printf("Total: %d, limit: %d\n", st.FileDescriptors["total_used"], st.FileDescriptors["total_limit"])
	s.heading("Free Disk Space")
	s.printf("Low free disk space watermark: %s\nFree disk space: %s\n", size(st.DiskFreeLimit), size(st.DiskFree))
}

// bullets prints a list as RabbitMQ 4.0's tools do.
func (s *session) bullets(list []string) {
	if len(list) == 0 {
		s.printf("(none)\n")
	}
	for _, item := range list {
		s.printf(" * %s\n", item)
	}
}

func (s *session) heading(text string) {
	if coloured(s.out) {
		text = bold(text)
	}
	s.printf("\n%s\n\n", text)
}

func (s *session) alarmLines(alarms []string) {
	if len(alarms) == 0 {
		s.printf("(none)\n")
	}
	for _, a := range alarms {
		s.printf("%s alarm: publishers are blocked\n", a)
	}
}
