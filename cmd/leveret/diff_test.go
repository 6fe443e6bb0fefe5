package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const someDefinitions = `{"rabbit_version":"4.0.5","vhosts":[{"name":"/"},{"name":"old"}],
	"queues":[{"vhost":"/","name":"q","durable":true,"arguments":{"x-max-length":5,"b":1}},{"vhost":"/","name":"gone","durable":true}],
	"bindings":[{"vhost":"/","source":"x","destination":"q","destination_type":"queue","routing_key":"k","arguments":{}},
		{"vhost":"/","source":"x","destination":"q","destination_type":"queue","routing_key":"k","arguments":{"a":1}}],
	"policies":[{"vhost":"/","name":"p","pattern":"^a","definition":{"max-length":1}}]}`

const otherDefinitions = `{"rabbit_version":"4.1.0","vhosts":[{"name":"/"}],
	"queues":[{"vhost":"/","name":"q","durable":false,"arguments":{"b":1,"x-max-length":7,"new":[1]},"type":""}],
	"bindings":[{"vhost":"/","source":"x","destination":"q","destination_type":"queue","routing_key":"k"}],
	"policies":[{"vhost":"/","name":"p","pattern":"^a","definition":{"max-length":1}}]}`

// writeFile writes a file of a folder of the test's own.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefinitionsDiff(t *testing.T) {
	ask(t, "http://"+nobody) // no broker is asked
	a, b := writeFile(t, "a.json", someDefinitions), writeFile(t, "b.json", otherDefinitions)
	code, out, errs := call(t, "", "leveret", "definitions", "diff", a, b)
	want := "vhosts\n  - old\nqueues\n  - / gone\n  ~ / q\n" +
		"      arguments.new: null → [1]\n      arguments.x-max-length: 5 → 7\n      durable: true → false\n" +
		"bindings\n  - / x queue q k {\"a\":1}\n"
	if code != exitFailure || out != want {
		t.Errorf("exit %d, %s\ngot:\n%s\nwant:\n%s", code, errs, out, want)
	}
	_, out, _ = call(t, "", "leveret", "definitions", "diff", a, b, "--json")
	var list []difference
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 6 || list[2].Member != "arguments.new" || string(list[2].To) != "[1]" {
		t.Errorf("as JSON: %v, %s", err, out)
	}
	if code, out, errs := call(t, someDefinitions, "leveret", "definitions", "diff", a, "-"); code != 0 || out != "" {
		t.Errorf("with itself: exit %d, %q, %s", code, out, errs)
	}
	if code, _, errs := call(t, "[]", "leveret", "definitions", "diff", a, "-"); code != exitData || !strings.Contains(errs, "standard input") {
		t.Errorf("no definitions: exit %d, %s", code, errs)
	}
}

func TestDefinitionsDiffWithABroker(t *testing.T) {
	url := startBroker(t)
	call(t, "", "rabbitmqadmin", "declare", "queue", "name=q")
	code, file, errs := call(t, "", "leveret", "definitions", "export")
	if code != 0 {
		t.Fatalf("export: exit %d, %s", code, errs)
	}
	kept := writeFile(t, "kept.json", file)
	if code, out, errs := call(t, "", "leveret", "definitions", "diff", kept); code != 0 || out != "" {
		t.Errorf("unchanged: exit %d, %q, %s", code, out, errs)
	}
	call(t, "", "rabbitmqctl", "delete_queue", "q")
	if code, out, _ := call(t, "", "leveret", "definitions", "diff", kept); code != exitFailure || out != "queues\n  + / q\n" {
		t.Errorf("what the broker lacks: exit %d, %q", code, out)
	}
	withLogin := strings.Replace(url, "http://", "http://guest:guest@", 1)
	if code, out, errs := call(t, "", "leveret", "definitions", "diff", kept, withLogin); code != exitFailure || out != "queues\n  - / q\n" {
		t.Errorf("a file with a broker: exit %d, %q, %s", code, out, errs)
	}
	if code, _, _ := call(t, "", "leveret", "definitions", "diff", kept, strings.Replace(url, "http://", "http://guest:wrong@", 1)); code != exitNoAccess {
		t.Errorf("with a wrong login: exit %d, want %d", code, exitNoAccess)
	}
	if code, _, errs := call(t, "", "leveret", "definitions", "import", kept); code != 0 {
		t.Errorf("import: exit %d, %s", code, errs)
	}
	if code, _, _ := call(t, "", "leveret", "definitions", "diff", kept); code != 0 {
		t.Errorf("after the import: exit %d, want 0", code)
	}
}

// What is compared is what is there: one side without changes of the other.
func FuzzCompareDefinitions(f *testing.F) {
	f.Add(someDefinitions, otherDefinitions)
	f.Add(`{"queues":[{"name":"q","arguments":{"a":null}}]}`, `{"queues":[{}]}`)
	f.Add(`{"queues":1}`, `{}`)
	f.Fuzz(func(t *testing.T, x, y string) {
		var a, b object
		if json.Unmarshal([]byte(x), &a) != nil || json.Unmarshal([]byte(y), &b) != nil {
			return
		}
		if same, err := compareDefinitions(a, a); err == nil && len(same) > 0 {
			t.Errorf("%s differs from itself: %v", x, same)
		}
		there, err := compareDefinitions(a, b)
		if err != nil {
			return
		}
		back, err := compareDefinitions(b, a)
		if err != nil || len(there) != len(back) {
			t.Errorf("%d differences there, %d back (%v)", len(there), len(back), err)
		}
	})
}
