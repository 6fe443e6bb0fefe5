//go:build tools

package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The metrics that RabbitMQ's Overview dashboard draws: levels as they are,
// counters as rates.
var (
	levels = strings.Fields(`
		rabbitmq_queue_messages_ready rabbitmq_queue_messages_unacked
		rabbitmq_connections rabbitmq_channels rabbitmq_queues rabbitmq_consumers
		rabbitmq_global_publishers rabbitmq_global_consumers
		rabbitmq_process_resident_memory_bytes rabbitmq_resident_memory_limit_bytes
		rabbitmq_disk_space_available_bytes rabbitmq_disk_space_available_limit_bytes
		rabbitmq_process_open_fds rabbitmq_process_max_fds rabbitmq_erlang_uptime_seconds
		rabbitmq_build_info`)
	counters = strings.Fields(`
		rabbitmq_global_messages_received_total rabbitmq_global_messages_received_confirm_total
		rabbitmq_global_messages_routed_total rabbitmq_global_messages_confirmed_total
		rabbitmq_global_messages_unroutable_returned_total rabbitmq_global_messages_unroutable_dropped_total
		rabbitmq_global_messages_delivered_total rabbitmq_global_messages_redelivered_total
		rabbitmq_global_messages_delivered_consume_manual_ack_total rabbitmq_global_messages_delivered_consume_auto_ack_total
		rabbitmq_global_messages_delivered_get_manual_ack_total rabbitmq_global_messages_delivered_get_auto_ack_total
		rabbitmq_global_messages_acknowledged_total rabbitmq_global_messages_get_empty_total
		rabbitmq_connections_opened_total rabbitmq_connections_closed_total
		rabbitmq_channels_opened_total rabbitmq_channels_closed_total
		rabbitmq_queues_declared_total rabbitmq_queues_created_total rabbitmq_queues_deleted_total`)
	// busy are counters that the traffic of this test makes rise.
	busy = strings.Fields(`
		rabbitmq_global_messages_received_total rabbitmq_global_messages_received_confirm_total
		rabbitmq_global_messages_confirmed_total rabbitmq_global_messages_unroutable_returned_total
		rabbitmq_global_messages_delivered_consume_manual_ack_total rabbitmq_global_messages_delivered_get_auto_ack_total
		rabbitmq_global_messages_acknowledged_total rabbitmq_global_messages_redelivered_total rabbitmq_global_messages_get_empty_total`)
)

// A server is a running Prometheus.
type server struct {
	*testing.T
	url string
}

// startPrometheus starts one that scrapes the broker five times a second.
func startPrometheus(t *testing.T, metrics string) server {
	t.Helper()
	target, err := url.Parse(metrics)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n- {job_name: rabbitmq, static_configs: [{targets: ['%s']}]}\n", target.Host)
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := freeAddress(t)
	cmd := exec.CommandContext(t.Context(), "prometheus", "--config.file="+file, "--storage.tsdb.path="+dir+"/data", "--web.listen-address="+addr, "--log.level=warn")
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v; install Debian's package prometheus", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	return server{t, "http://" + addr}
}

// query evaluates an expression: how many series it has, and the sum of their
// values.
func (s server) query(expression string) (series int, sum float64, err error) {
	req, err := http.NewRequestWithContext(s.Context(), "GET", s.url+"/api/v1/query?query="+url.QueryEscape(expression), nil)
	if err != nil {
		return 0, 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer res.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return 0, 0, err
	}
	if answer.Status != "success" {
		return 0, 0, fmt.Errorf("%s: %s", expression, answer.Error)
	}
	for _, r := range answer.Data.Result {
		var v float64
		if _, err := fmt.Sscan(fmt.Sprint(r.Value[1]), &v); err != nil {
			return 0, 0, err
		}
		sum += v
	}
	return len(answer.Data.Result), sum, nil
}

// await asks until the expression has a value above 0.
func (s server) await(expression string) {
	s.Helper()
	s.until(expression, func(series int, sum float64) bool { return series > 0 && sum > 0 })
}

// until asks until the answer is good: a scrape of a busy machine may fail.
func (s server) until(expression string, good func(series int, sum float64) bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		series, sum, err := s.query(expression)
		if err == nil && good(series, sum) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.Fatalf("%s has %d series with a sum of %v in the end: %v", expression, series, sum, err)
		}
	}
}

// traffic is some of everything that the dashboard counts.
func traffic(t *testing.T, amqpURL string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	conn, err := amqp.Dial(amqpURL)
	must(err)
	defer conn.Close()
	ch, err := conn.Channel()
	must(err)
	must(ch.Confirm(false))
	_, err = ch.QueueDeclare("metered", true, false, false, false, nil)
	must(err)
	returned := ch.NotifyReturn(make(chan amqp.Return, 1))
	for _, m := range []struct {
		key       string
		mandatory bool
	}{{"metered", false}, {"metered", false}, {"metered", false}, {"nowhere", true}, {"nowhere", false}} {
		d, err := ch.PublishWithDeferredConfirm("", m.key, m.mandatory, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("x")})
		must(err)
		if ok, err := d.WaitContext(t.Context()); !ok || err != nil {
			t.Fatalf("not confirmed: %v", err)
		}
	}
	<-returned
	ds, err := ch.Consume("metered", "c", false, false, false, false, nil)
	must(err)
	d := <-ds
	must(d.Nack(false, true))
	for d := range ds {
		must(d.Ack(false))
		if d.Redelivered {
			break
		}
	}
	must(ch.Cancel("c", false))
	for {
		_, ok, err := ch.Get("metered", true)
		must(err)
		if !ok {
			break
		}
	}
	_, err = ch.PublishWithDeferredConfirm("", "metered", false, false, amqp.Publishing{Body: []byte("x")})
	must(err)
	_, ok, err := ch.Get("metered", true)
	must(err)
	if !ok {
		t.Fatal("the queue is empty")
	}
	_, err = ch.QueueDelete("metered", false, false, false)
	must(err)
}

func TestPrometheusDrawsTheDashboard(t *testing.T) {
	amqpURL := setting(t, "AMQP_URL")
	s := startPrometheus(t, setting(t, "METRICS_URL"))
	s.await("rabbitmq_identity_info")
	traffic(t, amqpURL)
	for _, counter := range busy {
		s.await("sum(" + counter + ")")
	}
	const joined = ` * on(instance, job) group_left(rabbitmq_cluster, rabbitmq_node) rabbitmq_identity_info{rabbitmq_cluster!="", rabbitmq_node!=""}`
	for _, level := range levels {
		s.wantData(level + joined)
		s.wantData("sum(" + level + joined + ") by (rabbitmq_node)")
	}
	for _, counter := range counters {
		s.wantData("rate(" + counter + "[60s])" + joined)
		s.wantData("sum(rate(" + counter + "[60s])" + joined + ")")
	}
	// What the template variables and single panels read.
	s.wantData(`count(rabbitmq_build_info{rabbitmq_version!="", erlang_version!=""} * on(instance, job) group_left(rabbitmq_cluster) rabbitmq_identity_info)`)
	s.wantData(`(rabbitmq_resident_memory_limit_bytes` + joined + `) - (rabbitmq_process_resident_memory_bytes` + joined + `)`)
	s.wantData(`rabbitmq_disk_space_available_bytes` + joined + ` - rabbitmq_disk_space_available_limit_bytes` + joined)
}

func (s server) wantData(expression string) {
	s.Helper()
	s.until(expression, func(series int, _ float64) bool { return series > 0 })
}

// freeAddress is one that nobody listens on, below the ports that the system gives
// to clients.
func freeAddress(t *testing.T) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000)))
		if err != nil {
			continue // taken: another one
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return l.Addr().String()
	}
}
