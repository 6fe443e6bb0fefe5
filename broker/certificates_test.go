package broker

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leveretmq/leveret/config"
)

// That clients will refuse a certificate is in the log before they do.
func TestWarnOfCertificatesThatEnd(t *testing.T) {
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	for _, tt := range []struct {
		name     string
		from, to time.Duration // from now
		want     string
	}{
		{"expired", -30 * day, -time.Hour, "has expired"},
		{"not yet valid", time.Hour, 30 * day, "not valid yet"},
		{"ends soon", -30 * day, 13 * day, "expires soon"},
		{"good", -30 * day, 15 * day, ""},
	} {
		core, logged := observer.New(zap.WarnLevel)
		c := &certificate{cfg: config.TLS{Cert: "c.pem"}, log: zap.New(core)}
		c.warnOfEnd(&tls.Config{Certificates: []tls.Certificate{{Leaf: &x509.Certificate{NotBefore: now.Add(tt.from), NotAfter: now.Add(tt.to)}}}}, now)
		lines := logged.All()
		if tt.want == "" {
			if len(lines) > 0 {
				t.Errorf("%s: logs %q, want nothing", tt.name, lines[0].Message)
			}
			continue
		}
		if len(lines) != 1 || !strings.Contains(lines[0].Message, tt.want) || lines[0].ContextMap()["file"] != "c.pem" {
			t.Errorf("%s: logs %v, want one line with %q", tt.name, lines, tt.want)
		}
	}
}

// The end of a certificate is looked at when it is read first and when it is read anew.
func TestEndIsLookedAtWhenRead(t *testing.T) {
	cfg := newAuthority(t, "ca", nil).files(t.TempDir()) // valid for an hour
	core, logged := observer.New(zap.WarnLevel)
	c, err := newCertificate(cfg, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.reload(); err != nil {
		t.Fatal(err)
	}
	if n := logged.Len(); n != 2 {
		t.Errorf("%d warnings, want one for each time it is read", n)
	}
}

// RabbitMQ 4.0: a file of authorities that cannot be used ends the start, whether
// clients are verified or not.
func TestWrongAuthorityWithoutVerification(t *testing.T) {
	cfg := newAuthority(t, "ca", nil).files(t.TempDir())
	if err := os.WriteFile(cfg.CACert, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newCertificate(cfg, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "BEGIN CERTIFICATE") {
		t.Errorf("the error is %v, want one that says what the file should have", err)
	}
}
