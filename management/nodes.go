package management

import (
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"time"

	"github.com/leveretmq/leveret/persistence"
)

// nodes handles GET /nodes. There is one.
func nodes(r *request) (reply, error) {
	o, err := r.nodeObject()
	if err != nil {
		return reply{}, err
	}
	return plain([]object{o})
}

func oneNode(r *request) (reply, error) {
	if r.arg("node") != r.s.cfg.Node {
		return reply{}, errNotFound
	}
	o, err := r.nodeObject()
	if err != nil {
		return reply{}, err
	}
	if r.flag("memory") {
		o.add("memory", memoryBreakdown())
	}
	if r.flag("binary") {
		o.add("binary", r.s.binaryBreakdown())
	}
	return ok(o)
}

// maxGoroutines stands for RabbitMQ's limit of processes, of which tools show
// how much is used.
const maxGoroutines = 1 << 20

func (r *request) nodeObject() (object, error) {
	d, err := r.details()
	if err != nil {
		return nil, err
	}
	cfg := &r.s.cfg
	p, health, alarms := readProcess(), cfg.Store.Health(), r.s.alarms()
	o := object{
		{"name", cfg.Node}, {"type", "disc"}, {"running", true}, {"being_drained", r.s.inMaintenance()},
		{"os_pid", strconv.Itoa(os.Getpid())}, {"uptime", time.Since(r.s.started).Milliseconds()},
		{"run_queue", 0}, {"processors", runtime.GOMAXPROCS(0)}, {"rates_mode", cfg.Options.ratesMode()}, {"net_ticktime", 60},
		{"mem_limit", r.s.memoryLimit()}, {"mem_alarm", alarms.has("memory")}, {"mem_calculation_strategy", "rss"},
		{"disk_free_limit", health.DiskLimit}, {"disk_free_alarm", alarms.has("disk")},
		{"fd_total", p.filesLimit}, {"sockets_total", 0}, {"proc_total", maxGoroutines},
		{"db_dir", cfg.DataDir}, {"config_files", append([]string{}, cfg.ConfigFiles...)}, {"log_files", append([]string{}, cfg.LogFiles...)}, {"enabled_plugins", []string{"rabbitmq_management", "rabbitmq_prometheus"}},
		{"partitions", []any{}}, {"cluster_links", []any{}},
		{"exchange_types", exchangeTypeObjects()},
		{"auth_mechanisms", authMechanisms(cfg.Auth.Mechanisms())},
		{"applications", []object{{{"name", "rabbit"}, {"description", cfg.Product}, {"version", cfg.CompatibleVersion}}}},
		{"contexts", r.s.contextObjects()},
		{"metrics_gc_queue_length", zeroes("connection_closed", "channel_closed", "consumer_deleted", "exchange_deleted", "queue_deleted",
			"vhost_deleted", "node_node_deleted", "channel_consumer_deleted")},
		{"ra_open_file_metrics", zeroes("ra_log_wal", "ra_log_segment_writer")},
		{"leveret_store", storeObject(&health)},
	}
	c := nodeCounters(cfg)
	addFigures(&o, nodeMetrics, &c, r.s.sampler.view(part{kind: theNode}), d)
	total := r.s.sampler.totals().sum()
	d, err = r.nodeDetails()
	addFigures(&o, churnMetrics, &total.counters, r.s.sampler.view(part{kind: theOverview}), d)
	addTime(&o, "io_sync_avg_time", commitTime(&health))
	for _, name := range zeroFigures {
		o.add(name, 0)
		o.add(name+"_details", object{{"rate", rate(0)}})
	}
	for _, name := range []string{"io_read_avg_time", "io_write_avg_time", "io_seek_avg_time"} {
		addTime(&o, name, 0)
	}
	return o, err
}

// commitTime is how many milliseconds a group commit takes, with its sync.
func commitTime(h *persistence.Health) float64 {
	if h.Commits == 0 || !h.Synced {
		return 0
	}
	return float64(h.Latency.Sum) / float64(h.Commits) / 1e6
}

func addTime(o *object, name string, milliseconds float64) {
	o.add(name, rate(milliseconds))
	o.add(name+"_details", object{{"rate", rate(0)}})
}

// zeroFigures are members that tools expect and that mean nothing here.
var zeroFigures = []string{
	"io_read_count", "io_read_bytes", "io_write_bytes", "io_seek_count", "io_reopen_count",
	"mnesia_ram_tx_count", "mnesia_disk_tx_count", "msg_store_read_count", "msg_store_write_count", "queue_index_read_count",
}

func zeroes(names ...string) object {
	o := make(object, len(names))
	for i, name := range names {
		o[i] = member{name, 0}
	}
	return o
}

func authMechanisms(offered string) []object {
	var list []object
	for _, m := range []struct{ name, description string }{
		{"PLAIN", "SASL PLAIN authentication mechanism"},
		{"AMQPLAIN", "QPid AMQPLAIN mechanism"},
		{"ANONYMOUS", "SASL ANONYMOUS authentication mechanism"},
		{"EXTERNAL", "SASL EXTERNAL authentication mechanism"},
	} {
		list = append(list, object{{"name", m.name}, {"description", m.description}, {"enabled", hasWord(offered, m.name)}})
	}
	return list
}

// memoryBreakdown shows where the memory is, in bytes. RabbitMQ's categories
// that do not exist here are 0.
func memoryBreakdown() object {
	p := readProcess()
	heap, stacks, other := readMemory()
	o := zeroes("connection_readers", "connection_writers", "connection_channels", "connection_other", "queue_procs",
		"quorum_queue_procs", "quorum_queue_dlx_procs", "stream_queue_procs", "stream_queue_replica_reader_procs", "stream_queue_coordinator_procs",
		"plugins", "metadata_store", "metadata_store_ets", "metrics", "mnesia", "msg_index", "mgmt_db", "quorum_ets", "other_ets", "atom", "code")
	return append(o, member{"binary", heap}, member{"other_proc", stacks}, member{"other_system", other},
		member{"allocated_unused", max(0, p.memory-heap-stacks-other)}, member{"reserved_unallocated", 0}, member{"strategy", "rss"},
		member{"total", object{{"erlang", heap + stacks + other}, {"rss", p.memory}, {"allocated", heap + stacks + other}}})
}

// binaryBreakdown shows what the member binary of the memory breakdown is made of, in
// bytes: waiting messages, and everything else on the heap.
func (s *Server) binaryBreakdown() object {
	heap, _, _ := readMemory()
	var messages int64
	if s.cfg.QueueMemory != nil {
		messages = min(heap, s.cfg.QueueMemory.Used())
	}
	o := zeroes("connection_readers", "connection_writers", "connection_channels", "connection_other", "quorum_queue_procs",
		"quorum_queue_dlx_procs", "stream_queue_procs", "stream_queue_replica_reader_procs", "stream_queue_coordinator_procs",
		"metadata_store", "plugins", "mgmt_db", "msg_index")
	return append(o, member{"queue_procs", messages}, member{"other", heap - messages})
}

func nodeMemory(r *request) (reply, error) {
	if r.arg("node") != r.s.cfg.Node {
		return reply{}, errNotFound
	}
	return ok(object{{"memory", memoryBreakdown()}})
}

// nodeMemoryRelative is the breakdown in percent.
func nodeMemoryRelative(r *request) (reply, error) {
	if r.arg("node") != r.s.cfg.Node {
		return reply{}, errNotFound
	}
	total := max(1, readProcess().memory)
	o := object{}
	for _, m := range memoryBreakdown() {
		if n, isInt := m.value.(int64); isInt {
			o.add(m.name, (100*n+total/2)/total)
		} else if m.value == 0 {
			o.add(m.name, 0)
		}
	}
	o.add("total", 100)
	return ok(object{{"memory", o}})
}

// readMemory asks the runtime where the memory is, in bytes.
func readMemory() (heap, stacks, other int64) {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	n := func(i int) int64 {
		if samples[i].Value.Kind() != metrics.KindUint64 {
			return 0
		}
		return int64(samples[i].Value.Uint64())
	}
	heap, stacks = n(0), n(1)
	return heap, stacks, max(0, n(2)-n(3)-heap-stacks)
}

// A process is what the operating system says of this process.
type process struct {
	memory            int64 // resident, in bytes
	files, filesLimit int64
	switches          int64 // of context, since the start
}
