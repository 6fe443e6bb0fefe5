package broker

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/leveretmq/leveret/config"
)

func TestHTTPAPIIsServed(t *testing.T) {
	cfg := testConfig(t)
	cfg.ManagementListen = "127.0.0.1:0"
	b := New(cfg, nil)
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	url := "http://guest:guest@" + b.apiListener.Addr().String() + "/api/whoami"
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("GET /api/whoami: %s, want 200", resp.Status)
	}
	stop(t, b)
	if _, err := http.Get(url); err == nil {
		t.Error("the HTTP API answers after Stop")
	}
}

func TestHTTPAPIAddressThatIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := testConfig(t)
	cfg.ManagementListen = l.Addr().String()
	_, err = New(cfg, nil).Start()
	if err == nil || !strings.Contains(err.Error(), "--management-listen") {
		t.Errorf("error %v, want one that names --management-listen", err)
	}
}

func TestHTTPAPIListensOnLoopbackByDefault(t *testing.T) {
	host, _, err := net.SplitHostPort(config.DefaultManagementListen)
	if err != nil || !net.ParseIP(host).IsLoopback() {
		t.Errorf("the default address of the HTTP API is %s, want loopback", config.DefaultManagementListen)
	}
}
