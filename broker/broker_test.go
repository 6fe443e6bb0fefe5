package broker

import (
	"context"
	"net"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leveretmq/leveret/config"
)

func testConfig(t *testing.T) config.Config {
	cfg := config.Default()
	cfg.Listen = "127.0.0.1:0"
	cfg.DataDir = t.TempDir()
	return cfg
}

// stop ends the broker at the end of its test.
func stop(t *testing.T, b *Broker) {
	t.Helper()
	if err := b.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

// Tools that start a broker wait for these lines, in this order.
func TestStartLog(t *testing.T) {
	core, logged := observer.New(zapcore.InfoLevel)
	cfg := testConfig(t)
	cfg.ManagementListen = "127.0.0.1:0"
	b := New(cfg, zap.New(core))
	addr, err := b.Start()
	if err != nil {
		t.Fatal(err)
	}
	stop(t, b)
	var lines []string
	for _, e := range logged.All() {
		lines = append(lines, e.Message)
	}
	all := strings.Join(lines, "\n")
	for _, want := range []string{"starting Leveret", "HTTP API on http://127.0.0.1:", "started TCP listener on " + addr.String(), "Server startup complete; 0 plugins started.", "stopped"} {
		_, rest, found := strings.Cut(all, want)
		if !found {
			t.Errorf("the log lacks %q, or it comes too early:\n%s", want, strings.Join(lines, "\n"))
		}
		all = rest
	}
}

// The program may say at any time whether there is little to do: it does not know when
// the broker starts or ends.
func TestCalmAtAnyTime(t *testing.T) {
	b := New(testConfig(t), nil)
	done := make(chan struct{})
	said := make(chan struct{})
	go func() {
		defer close(said)
		for calm := true; ; calm = !calm {
			select {
			case <-done:
				return
			default:
				b.SetCalm(calm)
			}
		}
	}()
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	stop(t, b)
	close(done)
	<-said
	b.SetCalm(true)
}

// A start that fails leaves nothing behind: the directory can be used at once.
func TestFailedStartCleansUp(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cfg := testConfig(t)
	cfg.Listen = taken.Addr().String()
	if _, err := New(cfg, nil).Start(); err == nil || !strings.Contains(err.Error(), "port in use") {
		t.Errorf("Start with a taken port: error %v", err)
	}
	cfg.Listen = "127.0.0.1:0"
	b := New(cfg, nil)
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	stop(t, b)
}

func TestTwoBrokersInOneProcess(t *testing.T) {
	one, two := New(testConfig(t), nil), New(testConfig(t), nil)
	for _, b := range []*Broker{one, two} {
		if _, err := b.Start(); err != nil {
			t.Fatal(err)
		}
		defer stop(t, b)
	}
}

func TestDataDirectoryThatCannotBeMade(t *testing.T) {
	cfg := testConfig(t)
	cfg.DataDir = "/dev/null/leveret"
	_, err := New(cfg, nil).Start()
	if err == nil || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("error %v, want one that names --data-dir", err)
	}
}

// A listener that dies is reported; the broker can still be stopped.
func TestFailedListener(t *testing.T) {
	b := New(testConfig(t), nil)
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	if err := b.listeners[0].Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-b.Failed(); !strings.Contains(err.Error(), "accept connections on 127.0.0.1:") {
		t.Errorf("Failed() = %v", err)
	}
	stop(t, b)
}

// The log tells how many files and sockets there may be, and warns of few.
func TestOpenFilesAreReported(t *testing.T) {
	limit, known := openFilesLimit()
	if !known {
		t.Fatal("this system does not tell its limit of open files")
	}
	core, logged := observer.New(zapcore.InfoLevel)
	New(testConfig(t), zap.New(core)).logSettings()
	said := logged.FilterMessage("open files and sockets are limited").All()
	if len(said) != 1 || said[0].ContextMap()["limit"] != limit {
		t.Errorf("the log has %v, want the limit %d", said, limit)
	}
	if warned := logged.FilterMessageSnippet("few clients can connect").Len() == 1; warned != (limit < fewFiles) {
		t.Errorf("with %d files the log warns: %v", limit, warned)
	}
}
