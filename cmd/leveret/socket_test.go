package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leveretmq/leveret/broker"
	"github.com/leveretmq/leveret/config"
)

// shortDir is a folder whose path leaves room for the name of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lv")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// startOnDisk starts a broker that has no HTTP API but that of its socket, in
// the folder that the client's environment names.
func startOnDisk(t *testing.T) (dataDir string) {
	t.Helper()
	dir := shortDir(t)
	startIn(t, dir)
	ask(t, "")
	t.Setenv("LEVERET_DATA_DIR", dir)
	return dir
}

func TestSocketNeedsNoPassword(t *testing.T) {
	dir := startOnDisk(t)
	for _, line := range []string{
		"rabbitmqctl change_password guest secret", // the default login works no more
		"rabbitmqadmin declare queue name=q",
		"rabbitmqctl add_vhost v",
		"rabbitmqctl -p v list_queues",
		"rabbitmq-diagnostics check_running",
		"rabbitmq-diagnostics check_port_connectivity",
		"leveret publish -k q hello",
	} {
		if code, _, errs := call(t, "", words(line)...); code != 0 {
			t.Errorf("%s: exit %d, %s", line, code, errs)
		}
	}
	if _, out, _ := call(t, "", "leveret", "get", "q"); out != "hello\n" {
		t.Errorf("get prints %q", out)
	}
	if _, out, _ := call(t, "", "rabbitmqctl", "ping"); !strings.Contains(out, filepath.Join(dir, broker.AdminSocket)) {
		t.Errorf("ping prints %q, want the path of the socket", out)
	}
	t.Setenv("LEVERET_DATA_DIR", t.TempDir())
	for _, line := range []string{"--data-dir " + dir + " list_queues", "list_queues --data-dir " + dir} {
		if code, _, errs := call(t, "", append([]string{"leveret"}, words(line)...)...); code != 0 {
			t.Errorf("%s: exit %d, %s", line, code, errs)
		}
	}
}

func TestLoginOverTheSocket(t *testing.T) {
	startOnDisk(t)
	for password, want := range map[string]int{"guest": 0, "wrong": exitNoAccess} {
		if code, _, errs := call(t, "", "rabbitmqctl", "--user", "guest", "--password", password, "list_queues"); code != want {
			t.Errorf("password %s: exit %d, want %d; %s", password, code, want, errs)
		}
	}
	if code, _, errs := call(t, "", "rabbitmqctl", "authenticate_user", "guest", "guest"); code != 0 {
		t.Errorf("authenticate_user: exit %d, %s", code, errs)
	}
	if code, _, _ := call(t, "", "rabbitmqctl", "authenticate_user", "guest", "wrong"); code != exitData {
		t.Errorf("authenticate_user with a wrong password: exit %d, want %d", code, exitData)
	}
}

// Where a folder is named and nothing answers there, no other broker is asked: it
// would be the wrong one.
func TestNamedFolderWithoutABroker(t *testing.T) {
	dir, url := shortDir(t), strings.TrimPrefix(startBroker(t), "http://")
	const longName = "rabbit@my-release-rabbitmq-0.my-release-rabbitmq-headless.default.svc.cluster.local" // of a Helm chart
	for _, tt := range []struct {
		flag string
		env  map[string]string
		asks string // "" is nobody
	}{
		{dir, nil, ""},
		{"", map[string]string{"LEVERET_DATA_DIR": dir}, ""},
		{"", map[string]string{"RABBITMQ_MNESIA_DIR": dir}, ""},
		{"", map[string]string{"LEVERET_DATA_DIR": dir, "LEVERET_MANAGEMENT_LISTEN": "off"}, ""},
		{"", map[string]string{"LEVERET_DATA_DIR": dir, "LEVERET_MANAGEMENT_LISTEN": url}, "http://" + url},
		{dir, map[string]string{"LEVERET_URL": url}, "http://" + url},
		{"", map[string]string{"LEVERET_DATA_DIR": dir, "LEVERET_IN_MEMORY": "true", "LEVERET_MANAGEMENT_LISTEN": url}, "http://" + url},
		{"", map[string]string{"LEVERET_DATA_DIR": dir, "LEVERET_IN_MEMORY": "true"}, "http://" + config.DefaultManagementListen},
		{"", map[string]string{"RABBITMQ_MNESIA_BASE": "/bitnami/rabbitmq/mnesia", "RABBITMQ_NODENAME": longName}, "http://" + config.DefaultManagementListen},
		{dir + strings.Repeat("/d", broker.MaxSocketPath/2), nil, "http://" + config.DefaultManagementListen},
		{"", map[string]string{"XDG_DATA_HOME": dir, "LEVERET_IN_MEMORY": "true"}, "http://" + config.DefaultManagementListen},
	} {
		a := newAPI(&options{dataDir: tt.flag}, func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok })
		if tt.asks != "" {
			if a.base != tt.asks || a.http.Transport != nil {
				t.Errorf("%q, %v: asks %s, want %s", tt.flag, tt.env, a.base, tt.asks)
			}
			continue
		}
		err := a.get(t.Context(), "/version", nil)
		if err == nil || codeOf(err) != exitUnavailable || !strings.Contains(err.Error(), filepath.Join(dir, broker.AdminSocket)) {
			t.Errorf("%q, %v: error %v, want exit %d and the socket's path", tt.flag, tt.env, err, exitUnavailable)
		}
	}
	ask(t, "")
	t.Setenv("LEVERET_MANAGEMENT_LISTEN", "")
	for _, line := range []string{"add_vhost v", "ping", "await_startup -t 1"} {
		code, _, errs := call(t, "", append([]string{"rabbitmqctl", "--data-dir", dir}, words(line)...)...)
		if code != exitUnavailable && code != exitTimeout || !strings.Contains(errs, broker.AdminSocket) {
			t.Errorf("%s: exit %d, %s", line, code, errs)
		}
	}
}

// Who changes something at an address that is a guess is told which, once.
func TestGuessedAddressIsAnnounced(t *testing.T) {
	url := startBroker(t)
	none := map[string]string{"XDG_DATA_HOME": shortDir(t), "LEVERET_IN_MEMORY": "true"}
	for _, tt := range []struct {
		o       options
		env     map[string]string
		guessed bool
	}{
		{options{}, none, true},
		{options{url: url}, none, false},
		{options{}, map[string]string{"LEVERET_URL": url, "LEVERET_IN_MEMORY": "true"}, false},
		{options{}, map[string]string{"LEVERET_MANAGEMENT_LISTEN": nobody, "LEVERET_IN_MEMORY": "true"}, false},
		{options{}, map[string]string{"LEVERET_MANAGEMENT_LISTEN": "off", "LEVERET_IN_MEMORY": "true"}, true},
		{options{dataDir: shortDir(t)}, nil, false}, // which asks nobody
	} {
		a := newAPI(&tt.o, func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok })
		if a.guessed != tt.guessed {
			t.Errorf("%+v, %v: guessed is %v, want %v", tt.o, tt.env, a.guessed, tt.guessed)
		}
		var said strings.Builder
		a.announce(&said)
		a.base = url
		var all []object
		if err := a.get(t.Context(), apiPath("queues"), &all); tt.guessed && (err != nil || said.Len() > 0) {
			t.Errorf("a look: %v, %q is said", err, said.String())
		}
		for range 2 {
			_ = a.put(t.Context(), apiPath("queues", "/", "q"), map[string]any{}) // where nobody is asked it fails
		}
		_ = a.post(t.Context(), apiPath("queues", "/", "q", "peek"), map[string]any{}, nil)
		if n := strings.Count(said.String(), "asking http://"+config.DefaultManagementListen); n != strings.Count(said.String(), "\n") || n != map[bool]int{true: 1}[tt.guessed] {
			t.Errorf("%+v, %v: %q is said", tt.o, tt.env, said.String())
		}
	}
	if code, _, errs := call(t, "", "rabbitmqctl", "add_vhost", "v"); code != 0 || errs != "" {
		t.Errorf("add_vhost: exit %d, %q", code, errs)
	}
}

// The socket of a broker that was killed is no reason not to ask at the address.
func TestDeadSocketIsPassedOver(t *testing.T) {
	url := startBroker(t)
	dir := shortDir(t)
	l, err := net.Listen("unix", filepath.Join(dir, broker.AdminSocket))
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	ask(t, "")
	t.Setenv("LEVERET_DATA_DIR", dir)
	t.Setenv("LEVERET_MANAGEMENT_LISTEN", strings.TrimPrefix(url, "http://"))
	if code, _, errs := call(t, "", "rabbitmqctl", "list_queues"); code != 0 {
		t.Errorf("exit %d, %s", code, errs)
	}
}
