//go:build tools

package tools_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// An admin runs a script rabbitmqadmin against a broker.
type admin struct {
	*testing.T
	script     string // its file
	home       string // whose .rabbitmqadmin.conf it finds
	host, port string
	input      string // to read from standard input
}

// newAdmin is the script in this file.
func newAdmin(t *testing.T, script string) admin {
	t.Helper()
	u, err := url.Parse(setting(t, "API_URL"))
	if err != nil {
		t.Fatal(err)
	}
	return admin{T: t, script: script, home: t.TempDir(), host: u.Hostname(), port: u.Port()}
}

// debianScript is RabbitMQ's own.
const debianScript = "/usr/bin/rabbitmqadmin"

// servedScript is the one that the broker gives to download.
func servedScript(t *testing.T) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", setting(t, "API_URL")+"/cli/rabbitmqadmin", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	script, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("GET /cli/rabbitmqadmin: %s, %v", res.Status, err)
	}
	file := filepath.Join(t.TempDir(), "rabbitmqadmin")
	if err := os.WriteFile(file, script, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// run returns what it prints; it must end with this code.
func (a admin) run(code int, args ...string) string {
	a.Helper()
	return a.exec(code, append([]string{"-H", a.host, "-P", a.port}, args...)...)
}

// exec is run without naming the broker.
func (a admin) exec(code int, args ...string) string {
	a.Helper()
	// The script of Debian 12 is written for Debian's Python.
	cmd := exec.CommandContext(a.Context(), "/usr/bin/python3", append([]string{a.script}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+a.home)
	cmd.Stdin = strings.NewReader(a.input)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		a.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		a.Fatalf("rabbitmqadmin %q ended with %d, want %d: %s", args, got, code, out)
	}
	return strings.TrimSpace(string(out))
}

// want runs it and compares what it prints.
func (a admin) want(want string, args ...string) {
	a.Helper()
	if got := a.run(0, args...); got != want {
		a.Errorf("rabbitmqadmin %q printed\n%s\nwant\n%s", args, got, want)
	}
}

// refuses runs it and compares what it prints before it ends with 1.
func (a admin) refuses(want string, args ...string) {
	a.Helper()
	if got := a.run(1, args...); got != want {
		a.Errorf("rabbitmqadmin %q printed\n%s\nwant\n%s", args, got, want)
	}
}

func TestRabbitmqadmin(t *testing.T) {
	if _, err := os.Stat(debianScript); err != nil {
		t.Fatalf("%v; install Debian's package rabbitmq-server, which has the script", err)
	}
	manage(newAdmin(t, debianScript))
}

// The script that the broker serves does the same.
func TestServedRabbitmqadmin(t *testing.T) {
	manage(newAdmin(t, servedScript(t)))
}

// manage makes one of everything and removes it.
func manage(a admin) {
	a.Helper()
	a.want("vhost declared", "declare", "vhost", "name=adm")
	in := func(args ...string) []string { return append([]string{"--vhost=adm"}, args...) }
	a.want("permission declared", "declare", "permission", "vhost=adm", "user=guest", "configure=.*", "write=.*", "read=.*")
	a.want("exchange declared", in("declare", "exchange", "name=x", "type=topic")...)
	a.want("queue declared", in("declare", "queue", "name=q", "durable=true", `arguments={"x-max-length":10}`)...)
	a.want("binding declared", in("declare", "binding", "source=x", "destination=q", "routing_key=a.#")...)
	a.want("policy declared", in("declare", "policy", "name=p", "pattern=^q$", `definition={"message-ttl":60000}`, "apply-to=queues")...)
	a.want("user declared", "declare", "user", "name=adm", "password=secret", "tags=monitoring")
	a.want("vhost_limit declared", "declare", "vhost_limit", "vhost=adm", "name=max-queues", "value=20")
	if got := a.run(0, in("-f", "tsv", "list", "bindings", "source", "destination", "routing_key")...); !slices.Contains(strings.Split(got, "\n"), "x\tq\ta.#") {
		a.Errorf("bindings: %q", got)
	}
	a.want("name\tmessages\tpolicy\tdurable\nq\t0\tp\tTrue", in("-f", "tsv", "list", "queues", "name", "messages", "policy", "durable")...)
	// The script lists policies of all vhosts, whatever --vhost says.
	if got := a.run(0, in("-f", "tsv", "list", "policies", "vhost", "name", "pattern", "apply-to")...); !slices.Contains(strings.Split(got, "\n"), "adm\tp\t^q$\tqueues") {
		a.Errorf("policies: %q", got)
	}
	a.want("Message published", in("publish", "exchange=x", "routing_key=a.b", "payload=hello", `properties={"delivery_mode":2}`)...)
	a.want("Message published but NOT routed", in("publish", "exchange=x", "routing_key=b", "payload=hello")...)
	a.want("routing_key\texchange\tmessage_count\tpayload\tpayload_bytes\tpayload_encoding\tredelivered\na.b\tx\t0\thello\t5\tstring\tFalse",
		in("-f", "tsv", "get", "queue=q", "ackmode=ack_requeue_true")...)
	if got := a.run(0, in("-f", "raw_json", "list", "queues", "name", "messages")...); got == "" {
		a.Error("list queues has no JSON")
	}
	a.want("queue purged", in("purge", "queue", "name=q")...)
	overview := a.run(0, "-f", "pretty_json", "show", "overview")
	var shown []struct {
		Node string `json:"node"`
	}
	if err := json.Unmarshal([]byte(overview), &shown); err != nil || len(shown) != 1 || !strings.Contains(shown[0].Node, "@") {
		a.Errorf("show overview: %v: %s", err, overview)
	}
	file := filepath.Join(a.TempDir(), "definitions.json")
	a.run(0, in("export", file)...)
	a.want("queue deleted", in("delete", "queue", "name=q")...)
	a.run(0, in("import", file)...)
	a.want("name\tmessages\tpolicy\nq\t0\tp", in("-f", "tsv", "list", "queues", "name", "messages", "policy")...)
	a.want("binding deleted", in("delete", "binding", "source=x", "destination_type=queue", "destination=q", "properties_key=a.%23")...)
	a.want("exchange deleted", in("delete", "exchange", "name=x")...)
	if got, want := a.run(1, in("delete", "queue", "name=none")...), "*** Not found: /api/queues/adm/none"; got != want {
		a.Errorf("deleting a queue that is not there printed %q, want %q", got, want)
	}
	if got := a.run(1, "-u", "guest", "-p", "wrong", "list", "queues"); !strings.Contains(got, "Access refused") {
		a.Errorf("a wrong password: %q", got)
	}
	a.want("user deleted", "delete", "user", "name=adm")
	a.want("vhost deleted", "delete", "vhost", "name=adm")
}
