package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leveretmq/leveret/broker"
	"github.com/leveretmq/leveret/config"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

// startBroker starts a broker in memory and makes it the one that the client
// asks. It returns the URL of its API.
func startBroker(t *testing.T) string {
	t.Helper()
	url, _ := startBrokerAt(t)
	return url
}

// startBrokerAt returns the address for AMQP as well.
func startBrokerAt(t *testing.T) (url string, addr net.Addr) {
	t.Helper()
	cfg := config.Default()
	cfg.Listen = "127.0.0.1:0"
	cfg.InMemory = true
	cfg.ManagementListen = "127.0.0.1:0"
	core, logged := observer.New(zap.InfoLevel)
	b := broker.New(cfg, zap.New(core))
	addr, err := b.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for _, line := range logged.All() {
		if at, ok := strings.CutPrefix(line.Message, "HTTP API on "); ok {
			url = at
		}
	}
	ask(t, url)
	return url, addr
}

// nobody is an address that nobody listens on: a port that no system gives to who
// asks for a free one.
const nobody = "127.0.0.1:1"

// ask makes url the API that the client asks, as guest. Without one it asks the socket
// in a data directory, and never what is at the usual port of this machine.
func ask(t *testing.T, url string) {
	t.Helper()
	for _, name := range []string{"LEVERET_USER", "LEVERET_DEFAULT_USER", "RABBITMQ_DEFAULT_USER",
		"LEVERET_PASSWORD", "LEVERET_DEFAULT_PASS", "RABBITMQ_DEFAULT_PASS"} {
		t.Setenv(name, "")
	}
	t.Setenv("LEVERET_MANAGEMENT_LISTEN", nobody)
	t.Setenv("LEVERET_URL", url)
	home := t.TempDir() // without a configuration of rabbitmqadmin
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
}

// call runs the program and returns what it prints, errors last.
func call(t *testing.T, in string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(in), &o, &e)
	return code, o.String(), e.String()
}

// TestScripts runs the commands of each script in testdata against a broker of
// its own. A line that begins with "$ " is a command, what follows is what it
// prints: standard output, standard error, and the exit code if it is not 0.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts in testdata: %v", err)
	}
	for _, file := range scripts {
		t.Run(filepath.Base(file), func(t *testing.T) { runScript(t, file) })
	}
}

// varying is what differs from run to run: points in time, and how long ago.
var varying = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z|\b\d+s\b|(?:"age_ms":|"time":)\d+`)

// machine is what differs from machine to machine: free ports, processors.
var machine = regexp.MustCompile(`(port: |ports:? |cores[a-z -]*: )\d+(, \d+)*`)

// identity is the name that a cluster keeps, which is random.
var identity = regexp.MustCompile(`leveret-cluster-id-[\w-]{22}`)

func runScript(t *testing.T, file string) {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	url := startBroker(t)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	short, _, _ := strings.Cut(host, ".")
	var all strings.Builder
	for _, step := range strings.Split("\n"+string(raw), "\n$ ")[1:] {
		line, want, _ := strings.Cut(step, "\n")
		code, out, errs := call(t, "", words(line)...)
		if code != 0 {
			errs += fmt.Sprintf("exit %d\n", code)
		}
		got := strings.NewReplacer(url, "URL", "leveret@"+short, "NODE", broker.Version(), "VERSION").Replace(out + errs)
		got = varying.ReplaceAllString(got, "TIME")
		got = identity.ReplaceAllString(got, "leveret-cluster-id-ID")
		got = machine.ReplaceAllString(got, "${1}N")
		if got != "" && !strings.HasSuffix(got, "\n") {
			got += "\n"
		}
		fmt.Fprintf(&all, "$ %s\n%s", line, got)
		if strings.TrimRight(got, "\n") != strings.TrimRight(want, "\n") && !*update {
			t.Errorf("%s\ngot:\n%s\nwant:\n%s", line, got, want)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// words cuts a command line; single quotes keep words together.
func words(line string) (list []string) {
	var word strings.Builder
	quoted, there := false, false
	for _, r := range line {
		switch {
		case r == '\'':
			quoted, there = !quoted, true
		case r == ' ' && !quoted:
			if there {
				list = append(list, word.String())
			}
			word.Reset()
			there = false
		default:
			word.WriteRune(r)
			there = true
		}
	}
	if there {
		list = append(list, word.String())
	}
	return list
}

func TestNameChoosesTheTool(t *testing.T) {
	for name, want := range map[string]string{
		"/usr/bin/rabbitmqctl":           "rabbitmqctl",
		"/usr/sbin/rabbitmq-diagnostics": "rabbitmq-diagnostics",
		"rabbitmqadmin":                  "rabbitmqadmin",
		"rabbitmq-plugins":               "rabbitmq-plugins",
		"rabbitmq-server":                "leveret",
		"leveret.exe":                    "leveret",
	} {
		if got := rootFor(strings.TrimSuffix(filepath.Base(name), ".exe")).Name(); got != want {
			t.Errorf("called as %s it is %s, want %s", name, got, want)
		}
	}
}

func TestPasswordFromStandardInput(t *testing.T) {
	startBroker(t)
	if code, _, errs := call(t, "secret\n", "rabbitmqctl", "add_user", "bob"); code != 0 {
		t.Fatalf("add_user: exit %d, %s", code, errs)
	}
	if code, _, errs := call(t, "", "rabbitmqctl", "authenticate_user", "bob", "secret"); code != 0 {
		t.Errorf("authenticate_user: exit %d, %s", code, errs)
	}
	if code, _, _ := call(t, "", "rabbitmqctl", "add_user", "carol"); code != exitData {
		t.Errorf("add_user without a password: exit %d, want %d", code, exitData)
	}
}

func TestTagsOutliveAPassword(t *testing.T) {
	startBroker(t)
	for _, line := range []string{"add_user bob a", "set_user_tags bob monitoring", "change_password bob b", "set_user_tags bob policymaker", "authenticate_user bob b"} {
		if code, _, errs := call(t, "", append([]string{"rabbitmqctl"}, words(line)...)...); code != 0 {
			t.Fatalf("%s: exit %d, %s", line, code, errs)
		}
	}
	if _, out, _ := call(t, "", "rabbitmqctl", "-q", "list_users"); !strings.Contains(out, "bob\t[policymaker]\n") {
		t.Errorf("list_users prints %q, want bob with the tag policymaker", out)
	}
}

func TestPublishLines(t *testing.T) {
	startBroker(t)
	call(t, "", "rabbitmqadmin", "declare", "queue", "name=q")
	if code, _, errs := call(t, "one\n\nthree", "leveret", "publish", "--lines", "-k", "q"); code != 0 {
		t.Fatalf("publish: exit %d, %s", code, errs)
	}
	if _, out, _ := call(t, "", "leveret", "consume", "q", "--until-empty"); out != "one\n\nthree\n" {
		t.Errorf("consume prints %q, want the three lines", out)
	}
	code, _, errs := call(t, "a\nb\n", "leveret", "publish", "--lines", "-k", "nowhere")
	if code != exitData || !strings.Contains(errs, "line 1, after 0 published") {
		t.Errorf("publish to nowhere: exit %d, %s", code, errs)
	}
}

// What get prints as JSON is what publish reads: bytes and headers survive.
func TestJSONLinesAreReadBack(t *testing.T) {
	startBroker(t)
	call(t, "", "rabbitmqadmin", "declare", "queue", "name=q")
	call(t, "\xff\x00", "leveret", "publish", "-k", "q", "-H", "n=9007199254740993", "--property", "content_type=image/png")
	_, before, _ := call(t, "", "leveret", "get", "q", "--ack", "--json")
	if !strings.Contains(before, `"content_type":"image/png"`) || !strings.Contains(before, `"n":9007199254740993`) {
		t.Fatalf("get prints %s", before)
	}
	if code, _, errs := call(t, before, "leveret", "publish", "--jsonl"); code != 0 {
		t.Fatalf("publish: exit %d, %s", code, errs)
	}
	if _, after, _ := call(t, "", "leveret", "get", "q", "--ack", "--json"); after != before {
		t.Errorf("read back %s, want %s", after, before)
	}
}

func TestExportAndImport(t *testing.T) {
	startBroker(t)
	file := filepath.Join(t.TempDir(), "definitions.json")
	call(t, "", "rabbitmqadmin", "declare", "queue", "name=q")
	if code, _, errs := call(t, "", "rabbitmqctl", "export_definitions", file); code != 0 {
		t.Fatalf("export: exit %d, %s", code, errs)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v (%v), want 0600: it has hashes of passwords", info.Mode().Perm(), err)
	}
	call(t, "", "rabbitmqctl", "delete_queue", "q")
	if code, _, errs := call(t, "", "rabbitmqctl", "import_definitions", file); code != 0 {
		t.Fatalf("import: exit %d, %s", code, errs)
	}
	if _, out, _ := call(t, "", "rabbitmqctl", "-q", "list_queues", "name"); out != "name\nq\n" {
		t.Errorf("list_queues prints %q, want q", out)
	}
}

func TestNoBroker(t *testing.T) {
	ask(t, "http://"+nobody)
	for _, line := range []string{"rabbitmq-diagnostics -q ping", "rabbitmq-diagnostics check_running", "rabbitmqctl list_queues", "leveret get q"} {
		code, _, errs := call(t, "", words(line)...)
		if code != exitUnavailable || !strings.Contains(errs, "LEVERET_URL") {
			t.Errorf("%s: exit %d, %q; want %d and what to do", line, code, errs, exitUnavailable)
		}
	}
	if code, _, _ := call(t, "", "rabbitmqctl", "-t", "1", "await_startup"); code != exitTimeout {
		t.Errorf("await_startup: exit %d, want %d", code, exitTimeout)
	}
}

func TestChecksThatFail(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/version" {
			fmt.Fprint(w, `"4.0.5"`)
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"status":"failed","reason":"There are alarms in effect in the cluster"}`)
	}))
	defer s.Close()
	ask(t, s.URL)
	for line, want := range map[string]int{"ping": 0, "check_local_alarms": exitUnavailable, "check_running": exitUnavailable, "check_virtual_hosts": exitUnavailable} {
		if code, _, errs := call(t, "", "rabbitmq-diagnostics", line); code != want {
			t.Errorf("%s: exit %d, want %d; %s", line, code, want, errs)
		}
	}
}

// A container's health check has no login, but the variables of the broker.
func TestLoginFromTheBrokersVariables(t *testing.T) {
	env := map[string]string{"RABBITMQ_DEFAULT_USER": "app", "RABBITMQ_DEFAULT_PASS": "secret", "LEVERET_MANAGEMENT_LISTEN": ":8080", "LEVERET_DATA_DIR": t.TempDir()}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	a := newAPI(&options{}, lookup)
	if a.user != "app" || a.password != "secret" || a.base != "http://127.0.0.1:8080" {
		t.Errorf("asks %s as %s with %s, want what the variables say", a.base, a.user, a.password)
	}
	if a := newAPI(&options{url: "https://mq.example/", user: "u", password: "p"}, lookup); a.user != "u" || a.base != "https://mq.example" {
		t.Errorf("asks %s as %s, want what the options say", a.base, a.user)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if code, out, errs := call(t, "", "leveret", "completion", shell); code != 0 || !strings.Contains(out, "leveret") {
			t.Errorf("completion %s: exit %d, %d bytes, %s", shell, code, len(out), errs)
		}
	}
}

// Help is read for a command's own options: those of all commands come behind them.
func TestHelpBeginsWithOwnOptions(t *testing.T) {
	_, out, _ := call(t, "", "leveret", "queue", "copy", "--help")
	at := -1
	for _, option := range []string{"--count int", "--to-queue queue", "--offset offset", "--vhost host", "--url address", "--help"} {
		next := strings.Index(out, option)
		if next <= at {
			t.Errorf("%s is at %d, want it behind %d in\n%s", option, next, at, out)
		}
		at = next
	}
	for _, line := range [][]string{{"serve", "--in-memory"}, {"bench", "--persistent"}} {
		if _, out, _ := call(t, "", "leveret", line[0], "--help"); !strings.Contains(out, line[1]+"  ") || strings.Contains(out, line[1]+" value") {
			t.Errorf("%s --help asks for a value of %s:\n%s", line[0], line[1], out)
		}
	}
}
