package broker

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leveretmq/leveret/config"
)

// A folder as Kubernetes mounts secrets: the files are links through a link to a
// folder, which an update replaces by another one.
func TestCertificatesOfKubernetesAreFollowed(t *testing.T) {
	ca := newAuthority(t, "root", nil)
	dir := t.TempDir()
	update := func(version string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		ca.files(filepath.Join(dir, version))
		if err := os.Symlink(version, filepath.Join(dir, "..tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	update("..v1")
	files := config.TLS{Depth: 1}
	for name, to := range map[string]*string{"ca.pem": &files.CACert, "cert.pem": &files.Cert, "key.pem": &files.Key} {
		*to = filepath.Join(dir, name)
		if err := os.Symlink(filepath.Join("..data", name), *to); err != nil {
			t.Fatal(err)
		}
	}
	loaded := make(chan struct{}, 10)
	core, _ := observer.New(zapcore.InfoLevel)
	log := zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
		if e.Message == "certificate loaded" {
			loaded <- struct{}{}
		}
		return nil
	}))
	cfg := testConfig(t)
	cfg.InMemory, cfg.Listen, cfg.TLSListen, cfg.TLS = true, "", "127.0.0.1:0", files
	b := New(cfg, log)
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	defer stop(t, b)
	conn, err := amqp091.DialTLS("amqps://guest:guest@"+b.listeners[0].Addr().String()+"/", ca.client("c", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	before, err := handshake(b, ca.client("c", nil))
	if err != nil {
		t.Fatal(err)
	}
	update("..v2")
	select {
	case <-loaded:
	case <-time.After(time.Minute):
		t.Fatal("the new certificate was not loaded within a minute")
	}
	after, err := handshake(b, ca.client("c", nil))
	if err != nil {
		t.Fatal(err)
	}
	if before.PeerCertificates[0].Equal(after.PeerCertificates[0]) {
		t.Error("the certificate before is still served")
	}
	if _, err := conn.Channel(); err != nil {
		t.Errorf("a connection that was open: %v", err)
	}
}
