package management

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// scrape gets metrics and returns the lines of the answer.
func (a *api) scrape(path string) []string {
	a.t.Helper()
	a.s.forgetScrapes() // of a slow machine, which would show them again
	w := httptest.NewRecorder()
	a.s.metrics.Handler.ServeHTTP(w, httptest.NewRequestWithContext(a.t.Context(), "GET", path, nil))
	if w.Code != http.StatusOK {
		a.t.Fatalf("GET %s = %d %s", path, w.Code, w.Body)
	}
	return strings.Split(strings.TrimSpace(w.Body.String()), "\n")
}

// forgetScrapes makes the next scrape begin anew.
func (s *Server) forgetScrapes() {
	s.totals.mu.Lock()
	s.totals.recent = nil
	s.totals.mu.Unlock()
	s.scrapes.mu.Lock()
	s.scrapes.byKey = nil
	s.scrapes.mu.Unlock()
}

// wantLines wants these lines among others.
func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	there := make(map[string]bool, len(got))
	for _, line := range got {
		there[line] = true
	}
	for _, line := range want {
		if there[line] {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "# TYPE "), " ")
		name, _, _ = strings.Cut(name, "{")
		t.Errorf("no line %s; there is\n%s", line, strings.Join(linesOf(got, name), "\n"))
	}
}

func linesOf(lines []string, name string) (list []string) {
	for _, line := range lines {
		if strings.Contains(line, name) {
			list = append(list, line)
		}
	}
	return list
}

// aBusyAPI has two queues, three messages that wait in one of them, one message
// got without acknowledgement, one unroutable, and a connection.
func aBusyAPI(t *testing.T) *api {
	t.Helper()
	a := newAPI(t, func(c *Config) { c.MemoryLimit, c.QueueMemory = 1<<30, queue.NewBudget(32<<20) })
	a.do("PUT", "/queues/%2F/q", "", 201)
	a.do("PUT", "/queues/%2F/other", "", 201)
	for _, body := range []string{"a", "bb", "ccc", strings.Repeat("d", 150)} {
		a.publish("q", body)
	}
	a.do("POST", "/queues/%2F/q/get", `{"count":1,"ackmode":"ack_requeue_false","encoding":"auto"}`, 200)
	a.do("POST", "/exchanges/%2F/amq.direct/publish", `{"routing_key":"nowhere","payload":"x","payload_encoding":"string","properties":{}}`, 200)
	a.aConn("10.0.0.7:4711 -> 10.0.0.1:5672", "guest", "/", "q")
	return a
}

func TestTotalsOfAKnownState(t *testing.T) {
	a := aBusyAPI(t)
	got := a.scrape("/metrics")
	wantLines(t, got,
		"rabbitmq_queue_messages 3",
		"rabbitmq_queue_messages_ready 3",
		"rabbitmq_queue_messages_unacked 0",
		"rabbitmq_queue_messages_bytes 155",
		"rabbitmq_queue_messages_published_total 4",
		"rabbitmq_queues 2",
		"rabbitmq_connections 1",
		"rabbitmq_channels 1",
		`rabbitmq_global_messages_received_total{protocol="amqp091"} 5`,
		`rabbitmq_global_messages_routed_total{protocol="amqp091"} 4`,
		`rabbitmq_global_messages_confirmed_total{protocol="amqp091"} 5`,
		`rabbitmq_global_messages_unroutable_dropped_total{protocol="amqp091"} 1`,
		`rabbitmq_global_publishers{protocol="amqp091"} 1`,
		`rabbitmq_global_messages_delivered_total{protocol="amqp091",queue_type="rabbit_classic_queue"} 1`,
		`rabbitmq_global_messages_delivered_get_auto_ack_total{protocol="amqp091",queue_type="rabbit_classic_queue"} 1`,
		`rabbitmq_global_messages_delivered_total{protocol="amqp091",queue_type="rabbit_quorum_queue"} 0`,
		"rabbitmq_connection_incoming_bytes_total 100",
		"rabbitmq_exchange_messages_confirmed_total 5",
		"rabbitmq_exchange_messages_unroutable_returned_total 0",
		"rabbitmq_exchange_messages_unroutable_dropped_total 1",
		"rabbitmq_channel_messages_unroutable_dropped_total 1",
		"rabbitmq_queue_exchange_messages_published_total 4",
		"rabbitmq_channel_messages_unacked 2",
		"rabbitmq_resident_memory_limit_bytes 1.073741824e+09",
		"rabbitmq_alarms_memory_used_watermark 0",
		`leveret_store_durability{level="synced"} 1`,
		`leveret_store_durability{level="relaxed"} 0`,
		"leveret_store_failed 0",
		"leveret_queue_memory_limit_bytes 3.3554432e+07",
		`leveret_alarm{resource="disk"} 0`,
	)
	if n := len(linesOf(got, `rabbitmq_identity_info{rabbitmq_cluster="rabbit@test",rabbitmq_cluster_permanent_id="rabbit@test",rabbitmq_node="rabbit@test"} 1`)); n != 1 {
		t.Errorf("%d lines of rabbitmq_identity_info, want 1", n)
	}
}

func TestFiguresOfTheStore(t *testing.T) {
	a := newHealthAPI(t, persistence.Health{Commits: 4, Records: 9, Synced: true, Latency: message.Distribution{Sum: 20_000_000}})
	want := []string{"io_write_ops_total 4", "io_sync_ops_total 4", "io_sync_time_seconds_total 0.02", "queue_index_write_ops_total 9"}
	for path, prefix := range map[string]string{"/metrics": "rabbitmq_", "/metrics/per-object": "rabbitmq_",
		"/metrics/detailed?family=node_persister_metrics": "rabbitmq_detailed_"} {
		for _, line := range want {
			wantLines(t, a.scrape(path), prefix+line)
		}
	}
	has(t, a.do("GET", "/nodes/rabbit@test", "", 200), J{"io_write_count": 4.0, "io_sync_count": 4.0, "io_sync_avg_time": 5.0, "queue_index_write_count": 9.0})
}

func TestMemoryBreakdown(t *testing.T) {
	got := newAPI(t, nil).scrape("/metrics/memory-breakdown")
	for _, name := range []string{"binary_heap", "other_erlang_process", "other_system", "runtime_allocated_unused"} {
		wantLines(t, got, "# TYPE rabbitmq_memory_"+name+"_bytes gauge")
	}
	if lines := linesOf(got, "rabbitmq_memory_binary_heap_bytes 0"); len(lines) > 0 {
		t.Errorf("nothing is on the heap: %s", lines)
	}
}

func TestMetricsByObject(t *testing.T) {
	got := aBusyAPI(t).scrape("/metrics/per-object")
	wantLines(t, got,
		`rabbitmq_queue_messages_ready{queue="q",vhost="/"} 3`,
		`rabbitmq_queue_messages_ready{queue="other",vhost="/"} 0`,
		`rabbitmq_queue_head_message_timestamp{queue="other",vhost="/"} NaN`,
		`rabbitmq_exchange_messages_published_total{exchange="amq.direct",vhost="/"} 1`,
		`rabbitmq_connection_outgoing_bytes_total{connection="10.0.0.7:4711 -> 10.0.0.1:5672",vhost="/"} 200`,
		`rabbitmq_channel_messages_delivered_ack_total{channel="10.0.0.7:4711 -> 10.0.0.1:5672 (1)",vhost="/"} 4`,
		`leveret_queue_oldest_message_age_seconds{queue="other",vhost="/"} 0`,
		"leveret_store_failed 0",
		"rabbitmq_queues 2",
		`rabbitmq_global_messages_received_total{protocol="amqp091"} 5`,
	)
}

func TestDetailedHasWhatIsAskedFor(t *testing.T) {
	a := aBusyAPI(t)
	a.do("PUT", "/vhosts/v", "", 201)
	a.do("PUT", "/queues/v/third", "", 201)
	got := a.scrape("/metrics/detailed?family=queue_coarse_metrics&family=queue_consumer_count&family=vhost_status&vhost=/")
	wantLines(t, got,
		`rabbitmq_detailed_queue_messages{queue="q",vhost="/"} 3`,
		`rabbitmq_detailed_queue_consumers{queue="q",vhost="/"} 0`,
		`rabbitmq_cluster_vhost_status{vhost="/"} 1`)
	for _, absent := range []string{"third", "_bytes", "exchange", `vhost="v"`} {
		if lines := linesOf(got, absent); len(lines) > 0 {
			t.Errorf("there is %s", lines)
		}
	}
	got = a.scrape("/metrics/detailed?family=queue_metrics")
	wantLines(t, got, `rabbitmq_detailed_queue_consumers{queue="q",vhost="/"} 0`, `rabbitmq_detailed_queue_messages_bytes{queue="q",vhost="/"} 155`)
	if lines := linesOf(a.scrape("/metrics/detailed?family=queue_metrics&family=queue_consumer_count"), "# TYPE rabbitmq_detailed_queue_consumers"); len(lines) != 1 {
		t.Errorf("there is %s, want it once", lines)
	}
	got = a.scrape("/metrics/detailed?family=queue_coarse_metrics&queue=^th")
	wantLines(t, got, `rabbitmq_detailed_queue_messages{queue="third",vhost="v"} 0`)
	if lines := linesOf(got, `queue="q"`); len(lines) > 0 {
		t.Errorf("there is %s", lines)
	}
	for _, line := range a.scrape("/metrics/detailed") {
		if !strings.Contains(line, "rabbitmq_build_info") && !strings.Contains(line, "rabbitmq_identity_info") {
			t.Errorf("without families there is %s", line)
		}
	}
}

func TestIdentityStaysWhenTheClusterIsRenamed(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/global-parameters/internal_cluster_id", `{"value":"id-1"}`, 201)
	a.do("PUT", "/cluster-name", `{"name":"new"}`, 204)
	wantLines(t, a.scrape("/metrics"), `rabbitmq_identity_info{rabbitmq_cluster="new",rabbitmq_cluster_permanent_id="id-1",rabbitmq_node="rabbit@test"} 1`)
}

func TestMetricsTakeOneSlashAtTheEnd(t *testing.T) {
	a := newAPI(t, nil)
	for path, want := range map[string]int{"/metrics/": 200, "/metrics/per-object/": 200, "/metrics/detailed/": 200, "/metrics//": 404, "/": 404, "/metrics/none/": 404} {
		w := httptest.NewRecorder()
		a.s.Metrics().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
		if w.Code != want {
			t.Errorf("GET %s = %d, want %d", path, w.Code, want)
		}
	}
}

func TestDetailedRefusesABadPattern(t *testing.T) {
	a := newAPI(t, nil)
	w := httptest.NewRecorder()
	a.s.Metrics().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics/detailed?queue=(", nil))
	if w.Code != 400 || !strings.HasPrefix(w.Body.String(), "queue is not a regular expression: ") {
		t.Errorf("%d %s, want 400", w.Code, w.Body)
	}
}

// metricTypes is RabbitMQ 4.0's /metrics, and what its Overview dashboard asks
// for, as far as there is something to say.
var metricTypes = map[string]string{
	"gauge": `connections channels consumers queues global_publishers global_consumers queue_messages queue_messages_ready queue_messages_unacked
		queue_messages_ram queue_messages_ready_ram queue_messages_unacked_ram queue_messages_persistent queue_messages_paged_out queue_messages_bytes
		queue_messages_ready_bytes queue_messages_unacked_bytes queue_messages_ram_bytes queue_messages_persistent_bytes queue_messages_paged_out_bytes
		queue_consumers queue_consumer_capacity queue_consumer_utilisation queue_process_memory_bytes queue_head_message_timestamp channel_consumers
		channel_messages_unacked channel_messages_unconfirmed channel_prefetch consumer_prefetch connection_channels process_open_fds process_max_fds
		process_resident_memory_bytes resident_memory_limit_bytes disk_space_available_bytes disk_space_available_limit_bytes erlang_processes_used
		erlang_processes_limit erlang_scheduler_run_queue erlang_net_ticktime_seconds erlang_uptime_seconds unreachable_cluster_peers_count`,
	"counter": `connections_opened_total connections_closed_total channels_opened_total channels_closed_total queues_declared_total queues_created_total
		queues_deleted_total global_messages_received_total global_messages_received_confirm_total global_messages_routed_total
		global_messages_confirmed_total global_messages_unroutable_returned_total global_messages_unroutable_dropped_total
		global_messages_delivered_total global_messages_delivered_consume_manual_ack_total global_messages_delivered_consume_auto_ack_total
		global_messages_delivered_get_manual_ack_total global_messages_delivered_get_auto_ack_total global_messages_get_empty_total
		global_messages_redelivered_total global_messages_acknowledged_total global_messages_dead_lettered_expired_total
		global_messages_dead_lettered_maxlen_total global_messages_dead_lettered_rejected_total
		global_messages_dead_lettered_confirmed_total global_messages_dead_lettered_delivery_limit_total queue_messages_published_total
		queue_messages_delivered_total queue_messages_delivered_ack_total queue_messages_redelivered_total queue_messages_acked_total queue_get_total
		queue_get_ack_total queue_get_empty_total exchange_messages_published_total channel_messages_published_total channel_messages_confirmed_total
		channel_messages_unroutable_returned_total channel_messages_delivered_total channel_messages_delivered_ack_total
		channel_messages_redelivered_total channel_messages_acked_total channel_get_total channel_get_ack_total channel_get_empty_total
		connection_incoming_bytes_total connection_outgoing_bytes_total erlang_gc_runs_total`,
	"untyped": "build_info identity_info alarms_memory_used_watermark alarms_free_disk_space_watermark alarms_file_descriptor_limit",
}

// Dashboards show nothing for a name that is missing, even on an idle broker.
func TestNamesAndTypesAreRabbitMQs(t *testing.T) {
	got := newAPI(t, nil).scrape("/metrics")
	for typ, names := range metricTypes {
		for name := range strings.FieldsSeq(names) {
			wantLines(t, got, "# TYPE rabbitmq_"+name+" "+typ)
		}
	}
}

func TestOwnMetricsPassTheLinter(t *testing.T) {
	a := aBusyAPI(t)
	for _, path := range []string{"/metrics", "/metrics/per-object", "/metrics/detailed?family=leveret_queue_metrics&family=exchange_names&family=vhost_status"} {
		text := strings.Join(a.scrape(path), "\n") + "\n"
		problems, err := promlint.New(strings.NewReader(text)).Lint()
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, p := range problems {
			if strings.HasPrefix(p.Metric, "leveret_") {
				t.Errorf("%s: %s: %s", path, p.Metric, p.Text)
			}
		}
	}
}

// A counter that fell would look as if all it counted had happened again.
func TestCountersOutliveTheirObjects(t *testing.T) {
	a := aBusyAPI(t)
	a.do("PUT", "/queues/%2F/dead", "", 201)
	a.do("PUT", "/queues/%2F/dying", `{"arguments":{"x-dead-letter-exchange":"","x-dead-letter-routing-key":"dead"}}`, 201)
	a.publish("dying", "x")
	a.do("POST", "/queues/%2F/dying/get", `{"count":1,"ackmode":"reject_requeue_false","encoding":"auto"}`, 200)
	want := []string{
		"rabbitmq_queue_get_total 1",
		"rabbitmq_channel_messages_confirmed_total 5",
		"rabbitmq_connection_incoming_bytes_total 100",
		"leveret_queue_dead_lettered_total 1",
		`rabbitmq_global_messages_dead_lettered_rejected_total{dead_letter_strategy="at_most_once",queue_type="rabbit_classic_queue"} 1`,
	}
	wantLines(t, a.scrape("/metrics"), want...)
	a.s.sampler.sample()
	a.conns.closeAll()
	a.do("DELETE", "/queues/%2F/q", "", 204)
	a.do("DELETE", "/queues/%2F/dying", "", 204)
	wantLines(t, a.scrape("/metrics"), append(want, "rabbitmq_connections 0")...) // not sampled yet
	a.s.sampler.sample()
	wantLines(t, a.scrape("/metrics"), append(want, "rabbitmq_connections_closed_total 1", "rabbitmq_queues_deleted_total 2")...)
	a.do("DELETE", "/reset", "", 204)
	wantLines(t, a.scrape("/metrics"), want...)
}

// What lived and died between two looks has counted.
func TestShortLivesAreCounted(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	a.publish("q", "x")
	a.do("POST", "/queues/%2F/q/get", `{"count":1,"ackmode":"ack_requeue_false","encoding":"auto"}`, 200)
	a.do("POST", "/queues/%2F/q/get", `{"count":1,"ackmode":"ack_requeue_false","encoding":"auto"}`, 200)
	a.do("DELETE", "/queues/%2F/q", "", 204)
	a.conns.past = map[string]Past{"/": {Received: 70, Sent: 30, Published: 6, Confirmable: 5, Confirmed: 4, Returned: 1}}
	wantLines(t, a.scrape("/metrics"),
		`rabbitmq_global_messages_received_confirm_total{protocol="amqp091"} 5`,
		`rabbitmq_global_messages_confirmed_total{protocol="amqp091"} 4`,
		`rabbitmq_global_messages_unroutable_returned_total{protocol="amqp091"} 1`,
		`rabbitmq_global_messages_delivered_get_auto_ack_total{protocol="amqp091",queue_type="rabbit_classic_queue"} 1`,
		`rabbitmq_global_messages_get_empty_total{protocol="amqp091",queue_type="rabbit_classic_queue"} 1`,
		"rabbitmq_queue_messages_published_total 1", "rabbitmq_channel_messages_published_total 6", "rabbitmq_connection_incoming_bytes_total 70")
	has(t, a.do("GET", "/overview", "", 200).(J)["message_stats"], J{"confirm": 4.0, "return_unroutable": 1.0, "get_no_ack": 1.0, "get_empty": 1.0})
}

// Each death has its reason, with and without a target for dead letters.
func TestDeathsByReason(t *testing.T) {
	a := newAPI(t, nil)
	for _, q := range []struct{ name, args string }{
		{"plain", `{}`},
		{"short", `{"x-max-length":1}`},
		{"aimed", `{"x-dead-letter-exchange":""}`},
		{"limited", `{"x-queue-type":"quorum","x-delivery-limit":0}`},
		{"safe", `{"x-queue-type":"quorum","x-overflow":"reject-publish","x-dead-letter-strategy":"at-least-once","x-dead-letter-exchange":"","x-dead-letter-routing-key":"plain"}`},
	} {
		a.do("PUT", "/queues/%2F/"+q.name, `{"durable":true,"arguments":`+q.args+`}`, 201)
		a.publish(q.name, "x")
		a.publish(q.name, "y")
	}
	for _, g := range []struct{ name, mode string }{{"plain", "reject_requeue_false"}, {"aimed", "reject_requeue_false"}, {"limited", "reject_requeue_true"}, {"safe", "reject_requeue_false"}} {
		a.do("POST", "/queues/%2F/"+g.name+"/get", `{"count":1,"encoding":"auto","ackmode":"`+g.mode+`"}`, 200)
	}
	want := func(reason, typ, strategy string, n string) string {
		return "rabbitmq_global_messages_dead_lettered_" + reason + `_total{dead_letter_strategy="` + strategy + `",queue_type="rabbit_` + typ + `_queue"} ` + n
	}
	wantLines(t, a.scrape("/metrics"), want("rejected", "classic", "disabled", "1"), want("rejected", "classic", "at_most_once", "1"),
		want("maxlen", "classic", "disabled", "1"), want("delivery_limit", "quorum", "disabled", "1"), want("rejected", "quorum", "at_least_once", "1"),
		want("expired", "quorum", "at_most_once", "0"))
}

func TestFailedStoreInMetrics(t *testing.T) {
	a := newHealthAPI(t, persistence.Health{Err: io.ErrShortWrite, DiskUsed: 4096, DiskFree: 10, DiskLimit: 20, DiskLow: true, Uncommitted: 7, Commits: 3, Records: 30})
	wantLines(t, a.scrape("/metrics"), "leveret_store_failed 1", `leveret_store_durability{level="relaxed"} 1`, "leveret_store_disk_used_bytes 4096",
		"leveret_store_disk_free_bytes 10", "leveret_store_disk_free_limit_bytes 20", "leveret_store_uncommitted_bytes 7",
		"leveret_store_group_commits_total 3", "leveret_store_records_total 30", "rabbitmq_alarms_free_disk_space_watermark 1",
		`leveret_alarm{resource="disk"} 1`, "rabbitmq_disk_space_available_bytes 10")
}

// Names of queues are bytes; labels are UTF-8.
func TestLabelsAreUTF8(t *testing.T) {
	if got := with("queue", "a\xffb").values[0]; got != "a\uFFFDb" {
		t.Errorf("label %q, want a replaced byte", got)
	}
}

func TestMetricsHaveAListenerOfTheirOwn(t *testing.T) {
	a := newAPI(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- a.s.ServeMetrics(t.Context(), l) }() // ends with Shutdown
	resp, err := http.Get("http://" + l.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/plain; version=0.0.4") {
		t.Errorf("Content-Type %s, want text/plain; version=0.0.4", got)
	}
	if !bufio.NewScanner(resp.Body).Scan() {
		t.Error("the answer is empty")
	}
	a.do("GET", "/health/checks/protocol-listener/http%2Fprometheus", "", 200)
	if err := a.s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("ServeMetrics = %v after Shutdown, want nil", err)
	}
}

// BenchmarkScrape scrapes a broker with 10,000 queues.
func BenchmarkScrape(b *testing.B) {
	s := newBenchServer(b)
	for _, path := range []string{"/metrics", "/metrics/detailed?family=queue_coarse_metrics&family=queue_consumer_count", "/metrics/per-object"} {
		b.Run(path, func(b *testing.B) {
			b.ReportAllocs()
			handler := s.Metrics()
			for b.Loop() {
				s.forgetScrapes() // nobody has asked just now
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
				if w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
			}
		})
	}
	b.Run("tally", func(b *testing.B) {
		b.ReportAllocs()
		c := newTotalsCollector(s)
		for b.Loop() {
			c.recent = nil
			if n := c.tally().queueCount; n != 10_000 {
				b.Fatal(fmt.Sprint(n, " queues"))
			}
		}
	})
}

func TestHistograms(t *testing.T) {
	got := aBusyAPI(t).scrape("/metrics")
	wantLines(t, got,
		"# TYPE rabbitmq_message_size_bytes histogram",
		`rabbitmq_message_size_bytes_bucket{protocol="amqp091",le="100"} 4`,
		`rabbitmq_message_size_bytes_bucket{protocol="amqp091",le="1000"} 5`,
		`rabbitmq_message_size_bytes_bucket{protocol="amqp091",le="+Inf"} 5`,
		`rabbitmq_message_size_bytes_sum{protocol="amqp091"} 157`,
		`leveret_confirm_latency_seconds_bucket{le="0.001"} 0`,
		`leveret_confirm_latency_seconds_bucket{le="0.0025"} 1`,
		"leveret_confirm_latency_seconds_sum 0.002",
		`rabbitmq_auth_attempts_total{protocol="amqp091"} 0`,
	)
}

// What comes and goes between two samples counts all the same.
func TestChurnIsExact(t *testing.T) {
	a := newAPI(t, nil)
	for range 3 {
		a.do("PUT", "/queues/%2F/short", "", 201)
		a.do("PUT", "/queues/%2F/short", "", 204)
		a.do("DELETE", "/queues/%2F/short", "", 204)
		a.aConn("c", "guest", "/", "short")
		a.conns.closeAll()
	}
	wantLines(t, a.scrape("/metrics"), "rabbitmq_queues_declared_total 6", "rabbitmq_queues_created_total 3", "rabbitmq_queues_deleted_total 3",
		"rabbitmq_connections_opened_total 3", "rabbitmq_connections_closed_total 3", "rabbitmq_channels_opened_total 3", "rabbitmq_channels_closed_total 3")
	wantLines(t, a.scrape("/metrics/detailed?family=connection_churn_metrics"), "rabbitmq_detailed_queues_created_total 3")
	has(t, a.do("GET", "/overview", "", 200).(J)["churn_rates"], J{"queue_created": 3.0, "connection_closed": 3.0, "channel_created": 3.0})
	a.do("DELETE", "/reset", "", 204)
	has(t, a.do("GET", "/overview", "", 200).(J)["churn_rates"], J{"queue_created": 0.0, "connection_closed": 0.0})
	wantLines(t, a.scrape("/metrics"), "rabbitmq_queues_created_total 3")
}

func TestLoginsAreCounted(t *testing.T) {
	a := newAPI(t, nil)
	a.request("GET", "/whoami", "", func(r *http.Request) { r.SetBasicAuth("guest", "wrong") })
	got := a.do("GET", "/auth/attempts/rabbit@test", "", 200)
	equal(t, "attempts", got, `[{"protocol":"amqp091","auth_attempts":0,"auth_attempts_failed":0,"auth_attempts_succeeded":0},
		{"protocol":"http","auth_attempts":2,"auth_attempts_failed":1,"auth_attempts_succeeded":1}]`)
	wantLines(t, a.scrape("/metrics"), `rabbitmq_auth_attempts_failed_total{protocol="http"} 1`)
	a.do("DELETE", "/auth/attempts/rabbit@test", "", 204)
	wantLines(t, a.scrape("/metrics"), `rabbitmq_auth_attempts_failed_total{protocol="http"} 0`)
	a.do("GET", "/auth/attempts/rabbit@other", "", 404)
	a.do("GET", "/overview", "", 200)
	a.do("DELETE", "/auth/attempts/rabbit@test/source", "", 204)
	wantLines(t, a.scrape("/metrics"), `rabbitmq_auth_attempts_total{protocol="http"} 0`)
}

func TestDepthOfDeadLetters(t *testing.T) {
	a := newAPI(t, nil)
	for name, arguments := range map[string]string{
		"dead": `{}`, "q": `{"x-dead-letter-exchange":"","x-dead-letter-routing-key":"dead"}`,
		"dead2": `{}`, "q2": `{"x-dead-letter-exchange":"amq.fanout"}`, "other": `{}`,
	} {
		a.do("PUT", "/queues/%2F/"+name, `{"arguments":`+arguments+`}`, 201)
	}
	a.do("POST", "/bindings/%2F/e/amq.fanout/q/dead2", "{}", 201)
	for _, q := range []string{"dead", "dead", "dead2", "other", "q"} {
		a.publish(q, "m")
	}
	wantLines(t, a.scrape("/metrics"), "leveret_dead_letter_messages 3")
}

func TestDrainEstimate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, nil)
		defer a.s.Shutdown(t.Context())
		a.do("PUT", "/queues/%2F/q", "", 201)
		for range 20 {
			a.publish("q", "m")
		}
		wantLines(t, a.scrape("/metrics"), "leveret_queue_drain_seconds NaN")
		has(t, a.do("GET", "/queues/%2F/q", "", 200), J{"drain_seconds": nil})
		time.Sleep(sampleInterval)
		synctest.Wait() // a sample was taken
		a.do("POST", "/queues/%2F/q/get", `{"count":5,"ackmode":"ack_requeue_false","encoding":"auto"}`, 200)
		time.Sleep(sampleInterval)
		synctest.Wait()
		wantLines(t, a.scrape("/metrics"), "leveret_queue_drain_seconds 15") // 15 are left, one a second goes
		wantLines(t, a.scrape("/metrics/per-object"), `leveret_queue_drain_seconds{queue="q",vhost="/"} 15`)
		has(t, a.do("GET", "/queues/%2F/q", "", 200), J{"drain_seconds": 15.0})
	})
}
