package broker

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/config"
)

// socketConfig is a configuration whose data directory has a path that is short
// enough for a socket.
func socketConfig(t *testing.T) (cfg config.Config, path string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "lv")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cfg = testConfig(t)
	cfg.InMemory, cfg.DataDir = false, dir
	return cfg, filepath.Join(dir, AdminSocket)
}

// overSocket is a client that asks over the socket whatever the URL.
func overSocket(t *testing.T, path string) *http.Client {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func answer(t *testing.T, c *http.Client, method, path, body string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://socket/api"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

func TestAdminSocketNeedsNoLogin(t *testing.T) {
	cfg, path := socketConfig(t)
	b := New(cfg, nil)
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Fatalf("the socket is %v (%v), want mode 0600", info, err)
	}
	c := overSocket(t, path)
	for _, step := range []struct {
		method, path, body string
		status             int
		text               string
	}{
		{"GET", "/whoami", "", 200, `{"name":"local","tags":["administrator","impersonator"],"is_internal_user":true}`},
		{"PUT", "/vhosts/v", "", 201, ""},
		{"PUT", "/queues/v/q", `{"durable":true}`, 201, ""}, // a vhost that nobody has permissions in
		{"POST", "/exchanges/v/amq.default/publish", `{"routing_key":"q","payload":"m","payload_encoding":"string","properties":{"user_id":"bob"}}`, 200, `{"routed":true}`},
		{"GET", "/permissions/v/local", "", 404, ""},
	} {
		status, text := answer(t, c, step.method, step.path, step.body)
		if status != step.status || step.text != "" && text != step.text {
			t.Errorf("%s %s: %d %s, want %d %s", step.method, step.path, status, text, step.status, step.text)
		}
	}
	stop(t, b)
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there after Stop: %v", err)
	}
}

// Credentials that are shown over the socket count.
func TestAdminSocketChecksALogin(t *testing.T) {
	cfg, path := socketConfig(t)
	b := New(cfg, nil)
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	defer stop(t, b)
	c := overSocket(t, path)
	for password, want := range map[string]int{"guest": 200, "wrong": 401} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://socket/api/whoami", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("guest", password)
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("guest with password %q gets %d, want %d", password, resp.StatusCode, want)
		}
	}
}

func TestAdminSocketOfAKilledBrokerIsReplaced(t *testing.T) {
	cfg, path := socketConfig(t)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	b := New(cfg, nil)
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	defer stop(t, b)
	if status, text := answer(t, overSocket(t, path), "GET", "/version", ""); status != 200 || text != `"4.0.5"` {
		t.Errorf("GET /version: %d %s", status, text)
	}
}

func TestAdminSocketLeavesOtherFilesAlone(t *testing.T) {
	cfg, path := socketConfig(t)
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(cfg, nil).Start(); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("error %v, want one that says to move the file away", err)
	}
	if raw, err := os.ReadFile(path); string(raw) != "mine" {
		t.Errorf("the file has %q (%v), want what it had", raw, err)
	}
}

func TestAdminSocketRefusesOtherUsers(t *testing.T) {
	_, path := socketConfig(t)
	plain, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	uids := make(chan int, 2)
	uids <- os.Geteuid() + 1
	uids <- os.Geteuid()
	l := &adminListener{Listener: plain, user: func(net.Conn) (int, error) { return <-uids, nil }, log: zap.NewNop()}
	defer l.Close()
	stranger, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	owner, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	if _, err := owner.Write([]byte("o")); err != nil {
		t.Fatal(err)
	}
	got, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	var b [1]byte
	if _, err := got.Read(b[:]); err != nil || b[0] != 'o' {
		t.Errorf("accepted a connection that sends %q (%v), want the owner's", b, err)
	}
	if _, err := stranger.Read(b[:]); err != io.EOF {
		t.Errorf("the stranger reads %v, want the end", err)
	}
}

func TestPeerUserIsThisProcess(t *testing.T) {
	_, path := socketConfig(t)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if uid, err := peerUser(s); err != nil || uid != os.Geteuid() {
		t.Errorf("peerUser is %d (%v), want %d", uid, err, os.Geteuid())
	}
}
