package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// completed is what a shell offers after these words.
func completed(t *testing.T, args ...string) []string {
	t.Helper()
	code, out, errs := call(t, "", append([]string{args[0], "__completeNoDesc"}, args[1:]...)...)
	if code != 0 {
		t.Fatalf("%v: exit %d, %s", args, code, errs)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[:len(lines)-1] // the last line says how to go on
}

func TestNamesAreCompleted(t *testing.T) {
	startBroker(t)
	for _, line := range []string{"add_vhost staging", "add_user alice secret", "set_policy dlx ^b {\"max-length\":1}"} {
		if code, _, errs := call(t, "", append([]string{"rabbitmqctl"}, words(line)...)...); code != 0 {
			t.Fatalf("%s: exit %d, %s", line, code, errs)
		}
	}
	call(t, "", "rabbitmqadmin", "declare", "queue", "name=orders")
	call(t, "", "rabbitmqadmin", "declare", "queue", "name=other")
	call(t, "", "rabbitmqadmin", "-V", "staging", "declare", "queue", "name=staged")
	for _, tt := range []struct{ line, want string }{
		{"rabbitmqctl purge_queue o", "orders other"},
		{"rabbitmqctl -p staging purge_queue ''", "staged"},
		{"leveret queue peek ord", "orders"},
		{"leveret queue move orders --to-queue ot", "other"},
		{"leveret publish --exchange amq.t", "amq.topic"},
		{"rabbitmqctl list_queues -p st", "staging"},
		{"rabbitmqctl set_user_tags al", "alice"},
		{"rabbitmqctl set_permissions -p / alice ''", ""},
		{"rabbitmqctl clear_policy d", "dlx"},
		{"rabbitmqctl list_exchanges dur", "durable"},
		{"leveret dlq show --reason exp", "expired"},
		{"rabbitmqctl list_users --formatter pretty", "pretty_table"},
		{"rabbitmqctl delete_vh", "delete_vhost"},
	} {
		if got := strings.Join(completed(t, words(tt.line)...), " "); got != tt.want {
			t.Errorf("%s<tab> offers %q, want %q", tt.line, got, tt.want)
		}
	}
}

// A shell must not wait, and has no place for an error.
func TestCompletionWithoutABroker(t *testing.T) {
	ask(t, "http://"+nobody)
	if got := completed(t, "rabbitmqctl", "purge_queue", ""); len(got) != 0 {
		t.Errorf("offers %q without a broker", got)
	}
}

func TestManual(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	if code, _, errs := call(t, "", "leveret", "man", dir); code != 0 {
		t.Fatalf("exit %d, %s", code, errs)
	}
	for _, page := range []string{"leveret.1", "leveret-serve.1", "leveret-queue-tail.1", "leveret-top.1", "leveret-list_queues.1"} {
		raw, err := os.ReadFile(filepath.Join(dir, page))
		if err != nil || !strings.Contains(string(raw), ".SH SYNOPSIS") {
			t.Errorf("%s: %d bytes, %v", page, len(raw), err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "leveret-man.1")); err == nil {
		t.Error("there is a page of a hidden command")
	}
}
