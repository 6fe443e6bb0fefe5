//go:build tools

package tools_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// inVHost is the broker's script, and how to run it in a virtual host of its own.
func inVHost(t *testing.T, name string) (a admin, in func(args ...string) []string) {
	t.Helper()
	a = newAdmin(t, servedScript(t))
	a.want("vhost declared", "declare", "vhost", "name="+name)
	return a, func(args ...string) []string { return append([]string{"--vhost=" + name}, args...) }
}

func TestServedScriptFormats(t *testing.T) {
	a, in := inVHost(t, "formats")
	a.want("No items", in("list", "queues")...)
	a.want("", in("-q", "list", "queues")...)
	a.want("queue declared", in("declare", "queue", "name=small", `arguments={"x-max-length":10}`)...)
	a.want("queue declared", in("declare", "queue", "name=other queue", "queue_type=quorum")...)
	columns := []string{"list", "queues", "name", "durable", "arguments.x-max-length", "type"}
	for format, want := range map[string]string{
		"table": `
+-------------+---------+------------------------+---------+
|    name     | durable | arguments.x-max-length |  type   |
+-------------+---------+------------------------+---------+
| other queue | True    |                        | quorum  |
| small       | True    | 10                     | classic |
+-------------+---------+------------------------+---------+`,
		"tsv": "name\tdurable\targuments.x-max-length\ttype\nother queue\tTrue\t\tquorum\nsmall\tTrue\t10\tclassic",
		"kvp": `
name="other queue" durable="True" arguments.x-max-length="" type="quorum"
name="small" durable="True" arguments.x-max-length="10" type="classic"`,
		"bash": "other queue small",
		"long": `
--------------------------------------------------------------------------------

                  name: other queue
               durable: True
arguments.x-max-length: ` + `
                  type: quorum

--------------------------------------------------------------------------------

                  name: small
               durable: True
arguments.x-max-length: 10
                  type: classic

--------------------------------------------------------------------------------`,
	} {
		a.want(strings.TrimSpace(want), in(append([]string{"-f", format}, columns...)...)...)
	}
	for _, format := range []string{"raw_json", "pretty_json"} {
		var got []struct{ Name string }
		raw := a.run(0, in("-f", format, "list", "queues", "name")...)
		if err := json.Unmarshal([]byte(raw), &got); err != nil || len(got) != 2 || got[1].Name != "small" {
			t.Errorf("-f %s: %v: %s", format, err, raw)
		}
	}
	a.want("small\nother queue", in("-q", "-f", "tsv", "-S", "name", "-R", "list", "queues", "name")...)
	a.want("small\nother queue", in("-qf", "tsv", "list", "queues", "name", "--sort=name", "--sort-reverse")...)
}

func TestServedScriptMessages(t *testing.T) {
	a, in := inVHost(t, "messages")
	a.want("queue declared", in("declare", "queue", "name=q")...)
	piped := a
	piped.input = "\xff\x00 from standard input"
	piped.want("Message published", in("publish", "routing_key=q", `properties={"content_type":"x/y"}`)...)
	file := filepath.Join(t.TempDir(), "payload")
	a.want(`
+-------------+----------+---------------+---------------+-------------------------+-------------+
| routing_key | exchange | message_count | payload_bytes | properties.content_type | redelivered |
+-------------+----------+---------------+---------------+-------------------------+-------------+
| q           |          | 0             | 22            | x/y                     | False       |
+-------------+----------+---------------+---------------+-------------------------+-------------+`[1:],
		in("-d", "2", "get", "queue=q", "payload_file="+file, "ackmode=ack_requeue_false")...)
	got, err := os.ReadFile(file)
	if err != nil || string(got) != piped.input {
		t.Errorf("the payload in its file: %q, %v, want %q", got, err, piped.input)
	}
	a.refuses("ERROR: There is no message to write to '"+file+"'", in("get", "queue=q", "payload_file="+file)...)
	a.want("Message published", in("publish", "routing_key=q", "payload=aGk=", "payload_encoding=base64")...)
	a.want(`routing_key="q" exchange="" message_count="0" payload="hi" payload_bytes="2" payload_encoding="string" properties="" redelivered="False"`,
		in("-f", "kvp", "get", "queue=q")...)
}

func TestServedScriptDefinitions(t *testing.T) {
	a, in := inVHost(t, "definitions")
	a.want("queue declared", in("declare", "queue", "name=q", "durable=true")...)
	a.want("exchange declared", in("declare", "exchange", "name=x", "type=fanout")...)
	a.want("binding declared", in("declare", "binding", "source=x", "destination=q")...)
	a.want("operator_policy declared", in("declare", "operator_policy", "name=op", "pattern=.*", `definition={"max-length":5}`)...)
	file := filepath.Join(t.TempDir(), "definitions.json")
	a.want("Exported definitions for "+a.host+` to "`+file+`"`, in("export", file)...)
	a.want("queue deleted", in("delete", "queue", "name=q")...)
	a.want("exchange deleted", in("delete", "exchange", "name=x")...)
	a.want(`Uploaded definitions from "`+file+`" to `+a.host+".", in("import", file)...)
	a.want("source\tdestination\trouting_key\n\tq\tq\nx\tq", in("-f", "tsv", "list", "bindings")...)
	a.want("operator_policy deleted", in("delete", "operator_policy", "name=op")...)
	a.refuses("ERROR: Could not read the definitions: [Errno 2] No such file or directory: '/none/x'", in("import", "/none/x")...)
}

func TestServedScriptErrors(t *testing.T) {
	a, in := inVHost(t, "errors")
	usage := func(text string) string { return "ERROR: " + text + "\n\nrabbitmqadmin --help for help" }
	a.want("queue declared", in("declare", "queue", "name=q")...)
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"*** Not found: /api/queues/errors/none", in("delete", "queue", "name=none")},
		{"*** Not found: /api/queues/none/q", []string{"-V", "none", "declare", "queue", "name=q"}},
		{"*** Access refused: /api/queues?columns=name,messages", []string{"-p", "wrong", "list", "queues"}},
		{"*** inequivalent arg 'durable' for queue 'q' in vhost 'errors': received 'false' but current is 'true'",
			in("declare", "queue", "name=q", "durable=false")},
		{"*** Could not connect: [Errno 111] Connection refused", []string{"-P", "1", "list", "queues"}},
		{"ERROR: Could not parse JSON:\n  {bad", in("declare", "queue", "name=r", "arguments={bad")},
		{usage("Action not specified"), nil},
		{usage("Action nothing not understood"), []string{"nothing"}},
		{usage(`mandatory argument "name" is required`), in("declare", "queue")},
		{usage(`argument "name" must not be empty`), in("delete", "queue", "name=")},
		{usage(`Argument "durable" not in the name=value format`), in("declare", "queue", "name=q", "durable")},
		{usage(`Argument "x" is not recognised; there are: name`), in("delete", "queue", "name=q", "x=1")},
		{usage("Type q not recognised; there are: connection"), in("close", "q")},
		{usage("Format 'xml' is not one of: raw_json, pretty_json, tsv, long, table, kvp, bash"), []string{"-f", "xml", "list", "queues"}},
		{usage("Could not read config file '/none/x'"), []string{"-c", "/none/x", "list", "queues"}},
		{usage("Exactly one argument required"), []string{"export"}},
	} {
		a.refuses(tt.want, tt.args...)
	}
	if got := a.run(2, "--nothing"); !strings.HasSuffix(got, "rabbitmqadmin: error: no such option: --nothing") {
		t.Errorf("an unknown option: %s", got)
	}
}

func TestServedScriptConfiguration(t *testing.T) {
	a, _ := inVHost(t, "configuration")
	file := filepath.Join(a.home, ".rabbitmqadmin.conf")
	err := os.WriteFile(file, []byte("[default]\nhostname = "+a.host+"\nport = "+a.port+"\n[here]\nhostname = "+a.host+
		"\nport = "+a.port+"\nvhost = configuration\nformat = tsv\n[user]\nusername = nobody\npassword = 5%\n[odd]\nhots = x\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		code int
		want string
		args []string
	}{
		{0, "queue declared", []string{"--declare-vhost", "configuration", "declare", "queue", "name=q"}},
		{0, "name\tmessages\nq\t0", []string{"-N", "here", "list", "queues"}},
		{0, "q", []string{"-N", "here", "-q", "list", "queues", "name"}},
		{0, "q", []string{"-c", file, "--node=here", "-f", "bash", "list", "queues"}},
		{0, "source\tdestination\trouting_key\n\tq\tq", []string{"-N", "here", "list", "bindings", "--vhost", "configuration", "-S", "nothing", "--base-uri", "http://" + a.host + ":" + a.port, "-y", "x", "-t", "5"}},
		{1, "*** Access refused: /api/users", []string{"-N", "user", "-H", a.host, "-P", a.port, "list", "users"}},
		{1, "ERROR: Could not read section 'none' in config file '" + file + "': it has default, here, user, odd\n\nrabbitmqadmin --help for help", []string{"-N", "none", "list", "users"}},
	} {
		if got := a.exec(tt.code, tt.args...); got != tt.want {
			t.Errorf("rabbitmqadmin %q printed\n%s\nwant\n%s", tt.args, got, tt.want)
		}
	}
	if got := a.exec(1, "-N", "odd", "list", "users"); !strings.HasPrefix(got, "ERROR: Section 'odd' of the config file has 'hots', which is not one of: hostname, port,") {
		t.Errorf("a key that there is not: %s", got)
	}
}

func TestServedScriptHelp(t *testing.T) {
	a := newAdmin(t, servedScript(t))
	a.want("rabbitmqadmin 4.0.5", "--version")
	for args, want := range map[string]string{
		"--help":            "--base-uri=BASE_URI",
		"help":              "--request-timeout=REQUEST_TIMEOUT",
		"help config":       "ssl_ca_cert_file: ",
		"help subcommands":  "  declare user name=... password=... or password_hash=... tags=... [hashing_algorithm=...]\n",
		"--bash-completion": "complete -F _rabbitmqadmin rabbitmqadmin",
	} {
		if got := a.exec(0, strings.Fields(args)...); !strings.Contains(got, want) {
			t.Errorf("rabbitmqadmin %s does not say %q: %s", args, want, got)
		}
	}
}
