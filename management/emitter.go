package management

import (
	"runtime"
	"runtime/metrics"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// An emitter sends metrics to a scrape.
type emitter struct {
	ch     chan<- prometheus.Metric
	prefix string // of names
	// peaks keep counters from falling: a value below the peak is the peak. Nil
	// for metrics by object.
	peaks map[string]float64
}

// labels are the labels of one metric. Values must be UTF-8.
type labels struct{ names, values []string }

// with makes labels of names and values in turn.
func with(pairs ...string) labels {
	var l labels
	for i := 0; i+1 < len(pairs); i += 2 {
		l.names, l.values = append(l.names, pairs[i]), append(l.values, strings.ToValidUTF8(pairs[i+1], "\uFFFD"))
	}
	return l
}

func (e *emitter) gauge(name, help string, v float64, l ...labels) {
	e.emit(prometheus.GaugeValue, name, help, v, l)
}

func (e *emitter) untyped(name, help string, v float64, l ...labels) {
	e.emit(prometheus.UntypedValue, name, help, v, l)
}

// counter emits a counter, which never falls.
func (e *emitter) counter(name, help string, v float64, l ...labels) {
	if e.peaks != nil {
		key := e.prefix + name
		for _, l := range l {
			key += "\x00" + strings.Join(l.values, "\x00")
		}
		v = max(v, e.peaks[key])
		e.peaks[key] = v
	}
	e.emit(prometheus.CounterValue, name, help, v, l)
}

func (e *emitter) emit(kind prometheus.ValueType, name, help string, v float64, l []labels) {
	var names, values []string
	for _, l := range l {
		names, values = append(names, l.names...), append(values, l.values...)
	}
	e.ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(e.prefix+name, help, names, nil), kind, v, values...)
}

// identity emits who the node is. RabbitMQ's dashboards join it to everything.
func (e *emitter) identity(s *Server) {
	cfg := &s.cfg
	plain := emitter{ch: e.ch, prefix: "rabbitmq_"}
	plain.untyped("build_info", "Versions of the broker", 1, with("rabbitmq_version", cfg.CompatibleVersion,
		"prometheus_plugin_version", cfg.CompatibleVersion, "prometheus_client_version", "client_golang", "erlang_version", runtime.Version(),
		"product_name", cfg.Product, "product_version", cfg.ProductVersion))
	plain.untyped("identity_info", "Names of the node and its cluster", 1, with("rabbitmq_node", cfg.Node,
		"rabbitmq_cluster", s.clusterName(), "rabbitmq_cluster_permanent_id", s.clusterID()))
}

// nodeCoarse emits the family node_coarse_metrics.
func (e *emitter) nodeCoarse(s *Server) {
	p, h := readProcess(), s.cfg.Store.Health()
	e.gauge("process_open_fds", "Open file descriptors", float64(p.files))
	e.gauge("process_resident_memory_bytes", "Resident memory in bytes", float64(p.memory))
	e.gauge("disk_space_available_bytes", "Free disk space in bytes; 0 without a disk", float64(h.DiskFree))
	e.gauge("erlang_processes_used", "Goroutines", float64(runtime.NumGoroutine()))
	e.counter("erlang_gc_runs_total", "Garbage collections", float64(runtimeFigure("/gc/cycles/total:gc-cycles")))
}

// nodeLimits emits the family node_metrics.
func (e *emitter) nodeLimits(s *Server) {
	p, h := readProcess(), s.cfg.Store.Health()
	e.gauge("process_max_fds", "Limit of open file descriptors", float64(p.filesLimit))
	e.gauge("resident_memory_limit_bytes", "Memory that the broker may take in bytes", float64(s.memoryLimit()))
	e.gauge("disk_space_available_limit_bytes", "Free disk space in bytes below which publishers are stopped", float64(h.DiskLimit))
	e.gauge("erlang_processes_limit", "Limit of goroutines that tools compare with; there is none", maxGoroutines)
	e.gauge("erlang_scheduler_run_queue", "Always 0: the runtime does not say", 0)
	e.gauge("erlang_net_ticktime_seconds", "Always 60: there is no Erlang distribution", 60)
	e.gauge("erlang_uptime_seconds", "Time since the start in seconds", time.Since(s.started).Seconds())
}

// persister emits the family node_persister_metrics, as far as there is the like in the
// store: a group commit is one write, and one sync where confirms wait for it.
func (e *emitter) persister(s *Server) {
	h := s.cfg.Store.Health()
	e.counter("io_write_ops_total", "Writes of the store: group commits", float64(h.Commits))
	e.counter("queue_index_write_ops_total", "Records that the store has written", float64(h.Records))
	if h.Synced {
		e.counter("io_sync_ops_total", "Syncs of the store", float64(h.Commits))
		e.counter("io_sync_time_seconds_total", "Time that writes and syncs of the store took", float64(h.Latency.Sum)/1e9)
	}
}

// A memoryCollector is the prometheus.Collector of /metrics/memory-breakdown: RabbitMQ's
// categories that exist here.
type memoryCollector struct{ s *Server }

// Describe describes nothing: the metrics are checked when they are collected.
func (c memoryCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c memoryCollector) Collect(ch chan<- prometheus.Metric) {
	e := &emitter{ch: ch, prefix: "rabbitmq_"}
	e.identity(c.s)
	p := readProcess()
	heap, stacks, other := readMemory()
	e.gauge("memory_binary_heap_bytes", "Objects on the heap, messages among them, in bytes", float64(heap))
	e.gauge("memory_other_erlang_process_bytes", "Stacks of goroutines in bytes", float64(stacks))
	e.gauge("memory_other_system_bytes", "What the runtime needs for itself in bytes", float64(other))
	e.gauge("memory_runtime_allocated_unused_bytes", "Resident memory that is in no use in bytes", float64(max(0, p.memory-heap-stacks-other)))
}

// runtimeFigure reads a figure of the Go runtime; 0 if it does not have it.
func runtimeFigure(name string) uint64 {
	samples := []metrics.Sample{{Name: name}}
	metrics.Read(samples)
	if samples[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return samples[0].Value.Uint64()
}

// churn emits how many objects there are, and have come and gone.
func (e *emitter) churn(t *tally) {
	e.gauge("connections", "Open connections", float64(t.connectionCount))
	e.gauge("channels", "Open channels", float64(t.channelCount))
	e.gauge("consumers", "Consumers", float64(t.consumerCount))
	e.gauge("queues", "Queues", float64(t.queueCount))
	e.churned(&t.churn)
}

// churned emits the family connection_churn_metrics.
func (e *emitter) churned(c *counters) {
	for _, m := range []struct {
		name, help string
		metric     metric
	}{
		{"connections_opened", "Connections opened", mConnectionCreated},
		{"connections_closed", "Connections closed", mConnectionClosed},
		{"channels_opened", "Channels opened", mChannelCreated},
		{"channels_closed", "Channels closed", mChannelClosed},
		{"queues_declared", "Queues declared", mQueueDeclared},
		{"queues_created", "Queues created", mQueueCreated},
		{"queues_deleted", "Queues deleted", mQueueDeleted},
	} {
		e.counter(m.name+"_total", m.help, float64(c[m.metric]))
	}
}

// alarms emits which alarms are up.
func (e *emitter) alarms(s *Server) {
	up := s.alarms()
	e.untyped("alarms_memory_used_watermark", "1 while the memory alarm is up", oneIf(up.has("memory")))
	e.untyped("alarms_free_disk_space_watermark", "1 while the disk alarm is up", oneIf(up.has("disk")))
	e.untyped("alarms_file_descriptor_limit", "Always 0: there is no such alarm", 0)
	e.gauge("unreachable_cluster_peers_count", "Always 0: the node is alone", 0)
	ours := emitter{ch: e.ch, prefix: "leveret_"}
	for _, resource := range []string{"memory", "disk"} {
		ours.gauge("alarm", "1 while the alarm of the resource is up: publishers are blocked", oneIf(up.has(resource)), with("resource", resource))
	}
}

func oneIf(v bool) float64 {
	if v {
		return 1
	}
	return 0
}

// store emits what RabbitMQ does not have: the store, and the memory that the
// limits are about.
func (e *emitter) store(s *Server) {
	h, ours := s.cfg.Store.Health(), emitter{ch: e.ch, prefix: "leveret_", peaks: e.peaks}
	levels := []string{"synced", "relaxed"}
	for _, level := range levels {
		ours.gauge("store_durability", "1 for what a confirm promises: synced survives a power cut, relaxed the death of the process",
			oneIf(durability(&h) == level), with("level", level))
	}
	ours.gauge("store_failed", "1 once the store has stopped for good: nothing is confirmed any more", oneIf(h.Err != nil))
	ours.gauge("store_disk_used_bytes", "Disk space that the store takes in bytes", float64(h.DiskUsed))
	ours.gauge("store_live_bytes", "Bytes of the chunks that hold a live message", float64(h.Live))
	ours.gauge("store_disk_free_bytes", "Free disk space in bytes; 0 without a disk", float64(h.DiskFree))
	ours.gauge("store_disk_free_limit_bytes", "Free disk space in bytes below which publishers are stopped", float64(h.DiskLimit))
	ours.gauge("store_uncommitted_bytes", "Bytes on their way to disk", float64(h.Uncommitted))
	ours.counter("store_group_commits_total", "Group commits", float64(h.Commits))
	ours.counter("store_records_total", "Records that group commits have written", float64(h.Records))
	ours.gauge("memory_in_use_bytes", "Memory that the last garbage collection found in use, which the memory alarm goes by",
		float64(runtimeFigure("/gc/heap/live:bytes")))
	ours.gauge("memory_limit_bytes", "Memory that the broker may take in bytes", float64(s.memoryLimit()))
	if b := s.cfg.QueueMemory; b != nil {
		ours.gauge("queue_memory_used_bytes", "Memory that waiting messages take in bytes", float64(b.Used()))
		ours.gauge("queue_memory_limit_bytes", "Memory that waiting messages may take before they go to disk; 0 is no limit", float64(b.Limit()))
	}
}
