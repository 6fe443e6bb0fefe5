package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Scripts empty a node with stop_app, reset and start_app, and end it with stop.
func TestResetAndStop(t *testing.T) {
	dir := shortDir(t)
	pidFile := filepath.Join(dir, "pid")
	t.Setenv("LEVERET_PID_FILE", pidFile)
	ask(t, "") // which forgets the variables of a default user
	t.Setenv("RABBITMQ_DEFAULT_USER", "app")
	t.Setenv("RABBITMQ_DEFAULT_PASS_FILE", secretFile(t, "sesame\n"))
	startSelf(t, "serve", "--listen", "127.0.0.1:0", "--data-dir", dir, "--management-listen", "off", "--prometheus-listen", "off")
	t.Setenv("LEVERET_DATA_DIR", dir)
	for _, line := range []struct {
		command string
		code    int
		want    string // in the output
	}{
		{"rabbitmqctl wait " + pidFile, 0, "pid is "},
		{"rabbitmqadmin declare queue name=q", 0, ""},
		{"rabbitmqctl add_vhost v", 0, ""},
		{"rabbitmqctl add_user u p", 0, ""},
		{"rabbitmqctl set_global_parameter g 1", 0, ""},
		{"rabbitmqctl reset", exitUsage, "Stop it with 'rabbitmqctl stop_app'"},
		{"rabbitmqctl stop_app", 0, "Stopping rabbit application on node"},
		{"rabbitmqctl reset", 0, "Resetting node"},
		{"rabbitmqctl start_app", 0, "Starting node"},
		{"rabbitmqctl -s list_queues name", 0, ""},
		{"rabbitmqctl -s list_vhosts", 0, "/\n"},
		{"rabbitmqctl -s list_users", 0, "app\t[administrator]\n"},
		{"rabbitmqctl -s list_permissions", 0, "app\t.*\t.*\t.*\n"},
		{"rabbitmqctl authenticate_user app sesame", 0, "Success"},
		{"rabbitmqctl authenticate_user app guest", exitData, ""},
		{"rabbitmqctl wait --pid 999999999 -t 5", exitUnavailable, "process 999999999 is not running"}, // although a broker answers
		{"rabbitmqctl wait --pid 1 " + pidFile, exitUsage, "Cannot specify both pid and pidfile"},
		{"rabbitmqctl stop", 0, "Stopping and halting node"},
		{"rabbitmqctl ping", exitUnavailable, ""},
		{"rabbitmqctl stop", exitUnavailable, ""},
		{"rabbitmqctl stop --idempotent", 0, ""},
		{"rabbitmqctl wait --pid " + strconv.Itoa(999_999_999) + " -t 5", exitUnavailable, "process 999999999 is not running"},
	} {
		code, out, errs := call(t, "", words(line.command)...)
		if code != line.code || !strings.Contains(out+errs, line.want) || line.want == "" && line.code == 0 && strings.HasPrefix(line.command, "rabbitmqctl -s") && out != "" {
			t.Errorf("%s: exit %d, %s%s; want %d and %q", line.command, code, out, errs, line.code, line.want)
		}
	}
	if _, err := os.Stat(pidFile); !os.IsNotExist(err) {
		t.Errorf("the file with the number of the process: %v, want none after a stop", err)
	}
}

// secretFile is a file with a secret.
func secretFile(t *testing.T, text string) (name string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// import_definitions passes over what it has imported before, if it is told to.
func TestImportOnce(t *testing.T) {
	ask(t, startBroker(t))
	file := filepath.Join(t.TempDir(), "d.json")
	if err := os.WriteFile(file, []byte(`{"vhosts":[{"name":"v"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []struct{ command, want string }{
		{"rabbitmqctl import_definitions " + file + " --skip-if-unchanged", "Importing definitions"},
		{"rabbitmqctl delete_vhost v", "Deleting"},
		{"rabbitmqctl import_definitions " + file + " --skip-if-unchanged", "nothing is done"},
		{"rabbitmqctl -s list_vhosts", "/\n"},
		{"rabbitmqctl import_definitions " + file + " --format json", "Importing definitions"},
		{"rabbitmqctl -s list_vhosts", "/\nv\n"},
	} {
		if code, out, errs := call(t, "", words(line.command)...); code != 0 || !strings.Contains(out, line.want) || strings.HasPrefix(line.command, "rabbitmqctl -s") && out != line.want {
			t.Errorf("%s: exit %d, %s%s; want %q", line.command, code, out, errs, line.want)
		}
	}
	if code, _, _ := call(t, "", "rabbitmqctl", "import_definitions", file, "--format", "erlang"); code != exitData {
		t.Errorf("the format erlang: exit %d, want %d", code, exitData)
	}
}

// Build files start a server in the background, set it up and stop it.
func TestDetached(t *testing.T) {
	dir := shortDir(t)
	ask(t, "")
	t.Setenv("LEVERET_DATA_DIR", dir)
	t.Setenv("LEVERET_LISTEN", "127.0.0.1:0")
	t.Setenv("LEVERET_MANAGEMENT_LISTEN", "off")
	t.Setenv("LEVERET_PROMETHEUS_LISTEN", "off")
	t.Setenv(programVariable, "rabbitmq-server")
	if code, out, errs := call(t, "", "rabbitmq-server", "-detached"); code != 0 {
		t.Fatalf("rabbitmq-server -detached: exit %d, %s%s", code, out, errs)
	}
	t.Setenv("LEVERET_MANAGEMENT_LISTEN", nobody) // for the client: see ask
	for _, command := range []string{"rabbitmqctl await_startup -t 120", "rabbitmqctl add_user u p", "rabbitmqctl stop"} {
		if code, out, errs := call(t, "", words(command)...); code != 0 {
			t.Errorf("%s: exit %d, %s%s", command, code, out, errs)
		}
	}
}

// A reset takes as long as there is to delete.
func TestResetWaits(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `[{"name":"leveret@here","being_drained":true}]`)
	}))
	t.Cleanup(s.Close)
	for _, args := range [][]string{nil, {"--timeout", "60"}} {
		o := &options{}
		f := o.flags()
		if err := f.Parse(args); err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Timeout: time.Minute}
		api := &api{base: s.URL, http: client, local: true}
		if err := reset(t.Context(), &session{api: api, opts: o, flags: f, out: io.Discard}, nil); err != nil {
			t.Error(err)
		}
		if given := args != nil; (client.Timeout == time.Minute) != given {
			t.Errorf("reset %v waits for %v", args, client.Timeout)
		}
	}
}
