package main

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "512b": 512, "2GB": 2e9, "2kB": 2000, "1MiB": 1 << 20, "1m": 1 << 20, "3gi": 3 << 30, "1TB": 1e12,
		"0": 0, "0MB": 0, "": -1, "x": -1, "-1": -1, "1.5GB": -1, "1bb": -1, "1ib": -1, "9223372036854775807TB": -1, "1kk": -1,
	} {
		if got, ok := parseSize(text); ok != (want >= 0) || ok && got != want {
			t.Errorf("parseSize(%q) = %d, %v, want %d", text, got, ok, want)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	f.Add("1GB")
	f.Add("KiB")
	f.Fuzz(func(t *testing.T, text string) {
		if n, ok := parseSize(text); ok && n < 0 {
			t.Errorf("parseSize(%q) = %d", text, n)
		}
	})
}

// Suspended listeners refuse clients; connections stay.
func TestSuspendListeners(t *testing.T) {
	_, addr := startBrokerAt(t)
	c := connect(t, addr.String())
	if code, _, errs := call(t, "", "rabbitmqctl", "suspend_listeners"); code != 0 {
		t.Fatalf("suspend_listeners: exit %d, %s", code, errs)
	}
	if other, err := net.Dial("tcp", addr.String()); err == nil {
		other.Close()
		t.Error("a client can connect while the listeners are suspended")
	}
	if c.IsClosed() {
		t.Error("the connection was closed")
	}
	if code, _, errs := call(t, "", "rabbitmqctl", "resume_listeners"); code != 0 {
		t.Fatalf("resume_listeners: exit %d, %s", code, errs)
	}
	again, err := amqp.Dial("amqp://guest:guest@" + addr.String() + "/")
	if err != nil {
		t.Fatalf("after resume_listeners: %v", err)
	}
	again.Close()
}

// With a limit of 0 the memory alarm stops publishers, whatever is in use.
func TestMemoryLimitOfZero(t *testing.T) {
	startBroker(t)
	for _, step := range []struct {
		limit  string
		alarms int // exit code of check_local_alarms
	}{{"0", exitUnavailable}, {"0.0", exitUnavailable}, {"0.5", 0}} {
		if code, _, errs := call(t, "", "rabbitmqctl", "set_vm_memory_high_watermark", step.limit); code != 0 {
			t.Fatalf("set_vm_memory_high_watermark %s: exit %d, %s", step.limit, code, errs)
		}
		code := -1
		for deadline := time.Now().Add(10 * time.Second); code != step.alarms && time.Now().Before(deadline); {
			code, _, _ = call(t, "", "rabbitmq-diagnostics", "check_local_alarms")
		}
		if code != step.alarms {
			t.Errorf("with a limit of %s check_local_alarms: exit %d, want %d", step.limit, code, step.alarms)
		}
	}
	if code, _, _ := call(t, "", "rabbitmqctl", "set_vm_memory_high_watermark", "absolute", "0"); code != exitData {
		t.Errorf("absolute 0: exit %d, want %d", code, exitData)
	}
}

// A limit of 0 is none, as a size and of the memory.
func TestDiskLimitOfZero(t *testing.T) {
	startOnDisk(t)
	for _, limit := range []string{"0", "0MB", "mem_relative 0", "mem_relative 0.0"} {
		call(t, "", "rabbitmqctl", "set_disk_free_limit", "60MB")
		if code, _, errs := call(t, "", append([]string{"rabbitmqctl", "set_disk_free_limit"}, words(limit)...)...); code != 0 {
			t.Errorf("set_disk_free_limit %s: exit %d, %s", limit, code, errs)
		}
		if _, out, _ := call(t, "", "rabbitmqctl", "status", "--formatter", "json"); !strings.Contains(out, `"disk_free_limit":0,`) {
			t.Errorf("after set_disk_free_limit %s status does not show a limit of 0: %s", limit, out)
		}
	}
	if code, _, _ := call(t, "", "rabbitmqctl", "set_disk_free_limit", "mem_relative", "abc"); code != exitData {
		t.Errorf("mem_relative abc: exit %d, want %d", code, exitData)
	}
}

func TestMemoryLimitIsShown(t *testing.T) {
	startBroker(t)
	call(t, "", "rabbitmqctl", "set_vm_memory_high_watermark", "absolute", "3GB")
	if _, out, _ := call(t, "", "rabbitmqctl", "status", "--formatter", "json"); !strings.Contains(out, `"vm_memory_high_watermark_limit":3000000000`) {
		t.Errorf("status does not show the limit of 3 GB: %s", out)
	}
}

// lineWriter hands on what is written.
type lineWriter struct{ lines chan string }

func (w *lineWriter) Write(b []byte) (int, error) {
	w.lines <- string(b)
	return len(b), nil
}

// The stream prints what happens from when it has begun; the test makes queues
// until it has.
func TestEventStream(t *testing.T) {
	startBroker(t)
	ctx, cancel := context.WithCancel(t.Context())
	w, done := &lineWriter{make(chan string, 1000)}, make(chan int, 1)
	go func() {
		var errs bytes.Buffer
		done <- run(ctx, []string{"rabbitmq-diagnostics", "consume_event_stream", "--pattern", "queue.*"}, strings.NewReader(""), w, &errs)
	}()
	for begun := false; !begun; {
		call(t, "", "rabbitmqadmin", "declare", "queue", "name=q")
		call(t, "", "rabbitmqctl", "delete_queue", "q")
		select {
		case line := <-w.lines:
			begun = true
			if !strings.Contains(line, `"event":"queue.`) || !strings.Contains(line, `"name":"q"`) {
				t.Errorf("prints %s", line)
			}
		default:
		}
	}
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("exit %d when it is interrupted", code)
	}
}

func TestReport(t *testing.T) {
	startBroker(t)
	call(t, "", "rabbitmqadmin", "declare", "queue", "name=orders")
	code, out, errs := call(t, "", "rabbitmqctl", "report")
	for _, want := range []string{"Status of node", "Cluster status of node", "Listing users", "Listing connections", "Listing queues for vhost /", "orders\t0", "Listing permissions for vhost /"} {
		if !strings.Contains(out, want) {
			t.Errorf("report (exit %d, %s) has no %q", code, errs, want)
		}
	}
}
