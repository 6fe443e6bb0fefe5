package broker

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestProfilesAreServed(t *testing.T) {
	cfg := testConfig(t)
	cfg.PprofListen = "127.0.0.1:0"
	b := New(cfg, nil)
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	url := "http://" + b.pprofListener.Addr().String() + "/debug/pprof/goroutine?debug=1"
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), "goroutine profile:") {
		t.Errorf("GET %s: %s, %v, %.60q", url, resp.Status, err, body)
	}
	stop(t, b)
	if _, err := http.Get(url); err == nil {
		t.Error("profiles are served after Stop")
	}
}

func TestProfilesAreOffByDefault(t *testing.T) {
	b := New(testConfig(t), nil)
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	defer stop(t, b)
	if b.pprofListener != nil {
		t.Errorf("profiles on %s, want none", b.pprofListener.Addr())
	}
}

// A stop does not wait for a profile that is being measured.
func TestStopCutsProfilesOff(t *testing.T) {
	cfg := testConfig(t)
	cfg.PprofListen = "127.0.0.1:0"
	b := New(cfg, nil)
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get("http://" + b.pprofListener.Addr().String() + "/debug/pprof/trace?seconds=3600")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := b.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the trace of an hour ended in order")
	}
}
