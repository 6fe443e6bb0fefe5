package broker

import (
	"io"
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

func TestHTTPAPIRefusesLongHeaders(t *testing.T) {
	cfg := testConfig(t)
	cfg.ManagementListen = "127.0.0.1:0"
	b := New(cfg, nil)
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	defer stop(t, b)
	for length, want := range map[int]int{30_000: http.StatusUnauthorized, 100_000: http.StatusRequestHeaderFieldsTooLarge} {
		req, err := http.NewRequest("GET", "http://"+b.apiListener.Addr().String()+"/api/overview", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth(strings.Repeat("n", length), "")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("a name of %d bytes: status %d, want %d", length, resp.StatusCode, want)
		}
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
	b := New(cfg, nil)
	_, err = b.Start()
	if err == nil || !strings.Contains(err.Error(), "--management-listen") {
		t.Errorf("error %v, want one that names --management-listen", err)
	}
	if err := b.Stop(t.Context()); err == nil || err.Error() != "the broker is not running" {
		t.Errorf("Stop: error %v", err)
	}
}

func TestHTTPAPIListensOnLoopbackByDefault(t *testing.T) {
	host, _, err := net.SplitHostPort(config.DefaultManagementListen)
	if err != nil || !net.ParseIP(host).IsLoopback() {
		t.Errorf("the default address of the HTTP API is %s, want loopback", config.DefaultManagementListen)
	}
}

func TestMetricsAreServed(t *testing.T) {
	cfg := testConfig(t)
	cfg.PrometheusListen = "127.0.0.1:0"
	b := New(cfg, nil)
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	if b.apiListener != nil {
		t.Error("the HTTP API is served although it is off")
	}
	url := "http://" + b.metricsListener.Addr().String() + "/metrics"
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"rabbitmq_queues 0", `leveret_store_durability{level="synced"} 1`, "leveret_queue_memory_limit_bytes 3.3554432e+07"} {
		if !strings.Contains(string(body), "\n"+want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
	stop(t, b)
	if _, err := http.Get(url); err == nil {
		t.Error("the metrics are served after Stop")
	}
}

func TestTakenMetricsAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := testConfig(t)
	cfg.ManagementListen, cfg.PrometheusListen = "127.0.0.1:0", l.Addr().String()
	_, err = New(cfg, nil).Start()
	if err == nil || !strings.Contains(err.Error(), "--prometheus-listen") {
		t.Errorf("error %v, want one that names --prometheus-listen", err)
	}
}

func TestMetricsListenOnLoopbackByDefault(t *testing.T) {
	host, _, err := net.SplitHostPort(config.DefaultPrometheusListen)
	if err != nil || !net.ParseIP(host).IsLoopback() {
		t.Errorf("the default address of the metrics is %s, want loopback", config.DefaultPrometheusListen)
	}
}
