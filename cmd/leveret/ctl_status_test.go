package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// documentOf decodes what a command prints as JSON.
func documentOf(t *testing.T, args ...string) map[string]any {
	t.Helper()
	code, out, errs := call(t, "", append(args, "--formatter", "json")...)
	var o map[string]any
	if err := json.Unmarshal([]byte(out), &o); code != 0 || err != nil {
		t.Fatalf("%q: exit %d, %s, %v: %s", args, code, errs, err, out)
	}
	if strings.Count(out, "\n") != 1 {
		t.Errorf("%q prints more than one line", args)
	}
	return o
}

// The members are those of RabbitMQ 4.0, which scripts read.
func TestStatusHasRabbitMQsMembers(t *testing.T) {
	startBroker(t)
	for command, members := range map[string]string{
		"status": `memory pid processes run_queue net_ticktime alarms tags listeners product_name product_version erlang_version rabbitmq_version uptime
			is_under_maintenance active_plugins data_directory config_files log_files vm_memory_calculation_strategy vm_memory_high_watermark_limit
			file_descriptors disk_free_limit disk_free totals`,
		"cluster_status": "alarms cluster_tags listeners cpu_cores cluster_name disk_nodes ram_nodes running_nodes versions partitions maintenance_status feature_flags",
		"listeners":      "listeners node result",
		"alarms":         "alarms node result",
	} {
		o := documentOf(t, "rabbitmq-diagnostics", command)
		for name := range strings.FieldsSeq(members) {
			if _, there := o[name]; !there {
				t.Errorf("%s has no member %s: %v", command, name, o)
			}
		}
	}
	st := documentOf(t, "rabbitmqctl", "status")
	if totals := st["totals"].(map[string]any); totals["virtual_host_count"] != 1.0 || totals["queue_count"] != 0.0 {
		t.Errorf("totals %v, want one virtual host and no queue", totals)
	}
	l := st["listeners"].([]any)[0].(map[string]any)
	if l["protocol"] != "amqp" || l["interface"] != "127.0.0.1" || l["purpose"] != "AMQP 0-9-1" || l["port"].(float64) == 0 {
		t.Errorf("the first listener is %v", l)
	}
	if code := documentOf(t, "rabbitmqctl", "memory_breakdown")["binary"].(map[string]any); code["bytes"].(float64) <= 0 || code["percentage"].(float64) <= 0 {
		t.Errorf("memory_breakdown: binary is %v", code)
	}
}

func TestStatusSections(t *testing.T) {
	startBroker(t)
	_, out, _ := call(t, "", "rabbitmqctl", "status")
	lines := strings.Split(out, "\n")
	at := -1
	for _, heading := range []string{"Runtime", "Plugins", "Data directory", "Config files", "Log file(s)", "Alarms", "Tags", "Memory", "File Descriptors", "Free Disk Space", "Totals", "Listeners"} {
		i := slices.Index(lines, heading)
		if i <= at {
			t.Errorf("the section %q is at line %d, after line %d of the one before it, in\n%s", heading, i, at, out)
		}
		at = i
	}
	for _, line := range []string{" * rabbitmq_management", "Connection count: 0", "Queue count: 0", "Virtual host count: 1"} {
		if !slices.Contains(lines, line) {
			t.Errorf("no line %q in\n%s", line, out)
		}
	}
}

func TestDecimal(t *testing.T) {
	for _, tt := range []struct {
		v      float64
		digits int
		want   string
	}{{0.13344, 4, "0.1334"}, {0.01700001, 4, "0.017"}, {0, 4, "0.0"}, {40.849, 2, "40.85"}, {100, 2, "100.0"}} {
		if got := decimal(tt.v, tt.digits); got != tt.want {
			t.Errorf("decimal(%v, %d) = %s, want %s", tt.v, tt.digits, got, tt.want)
		}
	}
}

// The messages are out with a consumer and with one that got them, and go away from
// the list as they are acknowledged.
func TestQueueUnacked(t *testing.T) {
	_, addr := startBrokerAt(t)
	c, err := amqp.Dial("amqp://guest:guest@" + addr.String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ch, err := c.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare("q", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two"} {
		if code, _, errs := call(t, "", "leveret", "publish", "-k", "q", text); code != 0 {
			t.Fatalf("publish: exit %d, %s", code, errs)
		}
	}
	got, _, err := ch.Get("q", false)
	if err != nil {
		t.Fatal(err)
	}
	ds, err := ch.Consume("q", "tag", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	consumed := <-ds
	unacked := func(want ...string) {
		t.Helper()
		_, out, _ := call(t, "", "leveret", "queue", "unacked", "q", "--json")
		if n := strings.Count(out, `"delivery_tag"`); n != len(want) {
			t.Errorf("%d messages, want %d: %s", n, len(want), out)
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("no %s in %s", w, out)
			}
		}
	}
	unacked(`"payload":"one"`, `"payload":"two"`)
	if _, out, _ := call(t, "", "leveret", "queue", "unacked", "q"); !strings.Contains(out, "tag") {
		t.Errorf("the table does not name the consumer: %s", out)
	}
	if err := got.Ack(false); err != nil {
		t.Fatal(err)
	}
	if err := ch.Qos(1, 0, false); err != nil { // answered once the ack is done
		t.Fatal(err)
	}
	unacked(`"payload":"two"`)
	if err := consumed.Ack(false); err != nil {
		t.Fatal(err)
	}
	if err := ch.Qos(2, 0, false); err != nil {
		t.Fatal(err)
	}
	unacked()
}

func TestLastLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "broker.log")
	if err := os.WriteFile(file, []byte("one\ntwo\nthree\nhal"), 0o600); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]string{0: "", 1: "three\n", 2: "two\nthree\n", 50: "one\ntwo\nthree\n"} {
		if got, err := lastLines(file, n); err != nil || string(got) != want {
			t.Errorf("the last %d lines are %q, %v, want %q", n, got, err, want)
		}
	}
	if _, err := lastLines(file+".none", 1); err == nil {
		t.Error("a file that is not there has lines")
	}
}
