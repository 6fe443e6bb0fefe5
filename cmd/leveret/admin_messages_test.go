package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Messages of rabbitmqadmin may have any bytes.
func TestAdminMessagesAreBytes(t *testing.T) {
	startBroker(t)
	call(t, "", "rabbitmqadmin", "declare", "queue", "name=q")
	for _, args := range [][]string{{}, {"payload_encoding=string"}, {"payload=\xff\x00"}, {"payload=/wA=", "payload_encoding=base64"}} {
		args = append([]string{"rabbitmqadmin", "publish", "routing_key=q"}, args...)
		if code, _, errs := call(t, "\xff\x00", args...); code != 0 {
			t.Errorf("%q: exit %d, %s", args, code, errs)
		}
		if _, out, _ := call(t, "", "leveret", "get", "q", "--ack"); out != "\xff\x00\n" {
			t.Errorf("%q: the queue has %q", args, out)
		}
	}
}

func TestAdminPayloadFile(t *testing.T) {
	startBroker(t)
	call(t, "", "rabbitmqadmin", "declare", "queue", "name=q")
	for _, payload := range []string{"one", "\xff\x00"} {
		call(t, payload, "leveret", "publish", "-k", "q")
	}
	get := func(want int, file string, more ...string) (out string) {
		t.Helper()
		args := append([]string{"rabbitmqadmin", "get", "queue=q", "ackmode=ack_requeue_false", "payload_file=" + file}, more...)
		code, out, errs := call(t, "", args...)
		if code != want {
			t.Errorf("%q: exit %d, %s%s; want %d", args, code, out, errs, want)
		}
		return out
	}
	file := filepath.Join(t.TempDir(), "payload")
	if err := os.WriteFile(file, []byte("what was there"), 0o600); err != nil {
		t.Fatal(err)
	}
	get(exitUsage, file, "count=2")
	get(exitFailure, filepath.Join(t.TempDir(), "no", "folder")) // and the message stays
	for _, want := range []string{"one", "\xff\x00"} {
		out := get(0, file)
		if raw, err := os.ReadFile(file); err != nil || string(raw) != want {
			t.Errorf("the file has %q, %v; want %q", raw, err, want)
		}
		if strings.Contains(out, "| payload ") || strings.Contains(out, "payload_encoding") || !strings.Contains(out, "payload_bytes") {
			t.Errorf("prints %s", out)
		}
	}
	get(exitFailure, file) // the queue is empty
	if raw, err := os.ReadFile(file); err != nil || string(raw) != "\xff\x00" {
		t.Errorf("without a message the file has %q, %v; want what it had", raw, err)
	}
}
