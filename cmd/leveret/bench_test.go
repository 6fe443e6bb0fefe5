package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leveretmq/leveret/bench"
)

// benchBroker starts a broker and returns its URI.
func benchBroker(t *testing.T) string {
	t.Helper()
	_, addr := startBrokerAt(t)
	return "amqp://guest:guest@" + addr.String()
}

func TestBench(t *testing.T) {
	uri := benchBroker(t)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	code, out, errs := call(t, "", "leveret", "bench", "--uri", uri, "--messages", "1000", "--confirm", "100", "--size", "16,1K",
		"--json", file("r.json"), "--csv", file("r.csv"), "--html", file("r.html"))
	if code != 0 {
		t.Fatalf("code %d: %s", code, errs)
	}
	for _, want := range []string{"1,000 in all", "publish to deliver", "publish to confirm", "p99.9"} {
		if !strings.Contains(out, want) {
			t.Errorf("the summary lacks %q:\n%s", want, out)
		}
	}
	if !strings.Contains(errs, "measure") || strings.Contains(errs, "\x1b") {
		t.Errorf("progress is not plain lines: %q", errs)
	}
	r := readResult(t, file("r.json"))
	if r.Published != 1000 || r.Confirmed != 1000 || r.Consumed != 1000 || r.Missing != 0 || r.Settings["size"] != "16,1024" {
		t.Errorf("the result is %+v", r)
	}
	for name, want := range map[string]string{"r.csv": "bench," + strings.TrimPrefix(uri, "amqp://guest:guest@") + ",1,", "r.html": "<svg "} {
		if data, err := os.ReadFile(file(name)); err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s lacks %q: %v", name, want, err)
		}
	}
}

func readResult(t *testing.T, file string) *bench.Result {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r bench.Result
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

func TestBenchRounds(t *testing.T) {
	uri := benchBroker(t)
	own := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(own, []byte("description: mine\nsize: 10\n---\nname: other\nconfirm: 5\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, errs := call(t, "", "leveret", "bench", "run", own, "durable-1K", "--rounds", "2", "--uri", "a="+uri, "--uri", "b="+uri, "--messages", "200", "--json", "-")
	if code != 0 {
		t.Fatalf("code %d: %s", code, errs)
	}
	if n := strings.Count(out, "\n"); n != 12 {
		t.Errorf("%d lines of JSON for 3 scenarios, 2 brokers and 2 rounds", n)
	}
	for _, want := range []string{"[12/12] durable-1K on b, round 2", "against a", "own ", "other "} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is missing:\n%s", want, errs)
		}
	}
}

func TestBenchExitCodes(t *testing.T) {
	uri := benchBroker(t)
	t.Setenv(benchURL, uri)
	for _, tt := range []struct {
		args string
		code int
		text string
	}{
		{"--messages 10 -q", 0, ""},
		{"--messages 10 --min-rate 1M", exitFailure, "expected by min-rate"},
		{"--messages 10 --max-p99 1us", exitFailure, "more than the 1µs expected by max-p99"},
		{"--messages 10 --predeclared --queue nowhere", exitUnavailable, "404 NOT_FOUND - no queue 'nowhere' in vhost '/'"},
		{"--messages 10 --uri amqp://" + nobody, exitUnavailable, "no broker can be reached"},
		{"--messages 10 --uri amqp://guest:wrong@" + strings.TrimPrefix(uri, "amqp://guest:guest@"), exitUnavailable, "login as guest: the broker closed the connection: 403"},
		{"--uri http://h", exitUsage, "it must begin with amqp:// or amqps://"},
		{"--size huge", exitUsage, "--size: size \"huge\" is not a number of bytes"},
		{"--queue-type stream --auto-ack", exitUsage, "auto-ack does not go with queue-type stream"},
		{"--broker-pid b=1 --messages 1", exitUsage, `no --uri has the name "b"`},
		{"--broker-pid 0 --messages 1", exitUsage, "there is no process 0"},
		{"--rounds 0", exitUsage, "--rounds is 0"},
		{"--html /nowhere/r.html --messages 1", exitData, "/nowhere/r.html"},
		{"run", exitUsage, "no scenario given"},
		{"run fire1K", exitData, `did you mean "fire-1K"?`},
		{"run nowhere.yaml", exitData, "nowhere.yaml"},
		{"show fire", exitData, "no scenario \"fire\""},
		{"lst", exitUsage, "did you mean list?"},
		{"run confirm1 rate-1000 --messages 20 --max-p99 1us", exitFailure, "2 of 2 runs failed"},
		{"--messages 10 --rounds 2 --uri amqp://" + nobody, exitUnavailable, "none of 2 runs could take place: bench on " + nobody + ": no broker can be reached"},
		{"--messages 10 --uri a=" + uri + " --uri b=amqp://" + nobody, exitFailure, "1 of 2 runs failed"},
	} {
		code, _, errs := call(t, "", append([]string{"leveret", "bench"}, strings.Fields(tt.args)...)...)
		if code != tt.code || !strings.Contains(errs, tt.text) {
			t.Errorf("%s: code %d, want %d with %q:\n%s", tt.args, code, tt.code, tt.text, errs)
		}
	}
}

// cancelWriter cancels when it is written what begins with mark.
type cancelWriter struct {
	bytes.Buffer
	mark   string
	cancel context.CancelFunc
}

func (w *cancelWriter) Write(b []byte) (int, error) {
	if strings.Contains(string(b), w.mark) {
		w.cancel()
	}
	return w.Buffer.Write(b)
}

// An interrupted run is no success, although it met no failure: what was expected
// of the whole of it is not known.
func TestInterruptedBenchIsNoSuccess(t *testing.T) {
	uri := benchBroker(t)
	for _, tt := range []struct{ args, mark, out string }{
		{"--duration 1h --warmup 0s --max-p99 1h", "measure", "publish to deliver"},
		{"--messages 10 --rounds 2", "[1/2]", ""},
		{"--messages 10 --rounds 2", "[2/2]", ""},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var out bytes.Buffer
		errs := cancelWriter{mark: tt.mark, cancel: cancel}
		code := run(ctx, append([]string{"leveret", "bench", "--uri", uri}, strings.Fields(tt.args)...), strings.NewReader(""), &out, &errs)
		if code != exitInterrupted || !strings.Contains(errs.String(), "interrupted") || !strings.Contains(out.String(), tt.out) {
			t.Errorf("%s, ended at %s: code %d, want %d:\n%s%s", tt.args, tt.mark, code, exitInterrupted, &out, &errs)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{nil, {"--rounds", "2"}} {
		if code := run(over, append([]string{"leveret", "bench", "--uri", uri}, args...), strings.NewReader(""), io.Discard, io.Discard); code != exitInterrupted {
			t.Errorf("%v, ended before: code %d, want %d", args, code, exitInterrupted)
		}
	}
}

// A run that does not take place, or is ended before it does, replaces no results
// of one that did.
func TestEarlierResultsAreKept(t *testing.T) {
	uri := benchBroker(t)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	earlier := strings.Repeat("of yesterday\n", 1000)
	for _, tt := range []struct {
		name string
		ctx  context.Context
		args []string
		kept []string // files that are as they were
	}{
		{"no broker", t.Context(), []string{"--uri", "amqp://" + nobody}, []string{"json", "csv", "html", "markdown"}},
		{"no broker, rounds", t.Context(), []string{"--uri", "amqp://" + nobody, "--rounds", "2"}, []string{"csv", "html", "markdown"}},
		{"ended before", over, []string{"--uri", uri}, []string{"json", "csv", "html", "markdown"}},
		{"ended before, rounds", over, []string{"--uri", uri, "--rounds", "2"}, []string{"json", "csv", "html", "markdown"}},
		{"success", t.Context(), []string{"--uri", uri, "--messages", "10"}, nil},
	} {
		dir := t.TempDir()
		args := append([]string{"leveret", "bench", "-q"}, tt.args...)
		for _, flag := range []string{"json", "csv", "html", "markdown"} {
			if err := os.WriteFile(filepath.Join(dir, flag), []byte(earlier), 0o644); err != nil {
				t.Fatal(err)
			}
			args = append(args, "--"+flag, filepath.Join(dir, flag))
		}
		var errs bytes.Buffer
		run(tt.ctx, args, strings.NewReader(""), io.Discard, &errs)
		for _, flag := range []string{"json", "csv", "html", "markdown"} {
			data, err := os.ReadFile(filepath.Join(dir, flag))
			if err != nil {
				t.Fatal(err)
			}
			if kept := string(data) == earlier; kept != slices.Contains(tt.kept, flag) || !kept && strings.Contains(string(data), "yesterday") {
				t.Errorf("%s: --%s has %d bytes, kept: %v; %s", tt.name, flag, len(data), kept, &errs)
			}
		}
	}
}

func TestBenchShow(t *testing.T) {
	code, list, _ := call(t, "", "leveret", "bench", "list")
	if code != 0 || strings.Count(list, "\n") != len(bench.StandardNames()) || !strings.HasPrefix(list, "fire-16B      transient 16-byte") {
		t.Errorf("code %d, list:\n%s", code, list)
	}
	for _, name := range bench.StandardNames() {
		code, out, _ := call(t, "", "leveret", "bench", "show", name)
		all, err := bench.ParseScenarios("shown.yaml", []byte(out))
		if code != 0 || err != nil || all[0].Name != name {
			t.Errorf("%s is shown as a file that is not it: %v", name, err)
		}
	}
}

// TestProcessIsMeasured reads what this process itself uses.
func TestProcessIsMeasured(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		if _, err := bench.ProcessTree(1); err == nil {
			t.Error("a process was read without /proc")
		}
		return
	}
	uri := benchBroker(t)
	file := filepath.Join(t.TempDir(), "r.json")
	code, _, errs := call(t, "", "leveret", "bench", "-q", "--uri", uri, "--messages", "20k", "--json", file, "--broker-pid", strconv.Itoa(os.Getpid()))
	if code != 0 {
		t.Fatal(errs)
	}
	if r := readResult(t, file); r.BrokerCPU == nil || r.RSSMiB == nil || *r.RSSMiB < 1 || r.BrokerCores == nil {
		t.Errorf("nothing was read: %+v", r)
	}
}
