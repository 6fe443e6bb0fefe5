package broker

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
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
		c.warnOfEnd(&tls.Config{Certificates: []tls.Certificate{{Leaf: &x509.Certificate{NotBefore: now.Add(tt.from), NotAfter: now.Add(tt.to)}}}}, nil, now)
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

// Each certificate of a chain ends it, and so do those of the authorities (RabbitMQ
// 4.0), but the log tells of those only if clients are verified.
func TestEndsOfWholeChains(t *testing.T) {
	const day = 24 * time.Hour
	root, between, leaf := lasting(t, "root", 8*day), lasting(t, "between", 5*day), lasting(t, "localhost", 700*day)
	for _, verify := range []bool{false, true} {
		dir := t.TempDir()
		cfg := config.TLS{CACert: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), VerifyPeer: verify}
		for name, b := range map[string][]byte{cfg.CACert: certPEM(root.cert), cfg.Cert: certPEM(leaf.cert, between.cert), cfg.Key: keyPEM(t, leaf.key)} {
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		core, logged := observer.New(zap.WarnLevel)
		c, err := newCertificate(cfg, zap.New(core))
		if err != nil {
			t.Fatal(err)
		}
		var ends []string
		for _, e := range (&Broker{certificates: []*certificate{c}}).expiries() {
			ends = append(ends, fmt.Sprintf("%s %s %d", filepath.Base(e.File), e.Subject, int(time.Until(e.NotAfter)/day)))
		}
		if want := []string{"cert.pem CN=localhost 699", "cert.pem CN=between 4", "ca.pem CN=root 7"}; !slices.Equal(ends, want) {
			t.Errorf("ends %q, want %q", ends, want)
		}
		want := []string{"CN=between"}
		if verify {
			want = append(want, "CN=root")
		}
		var told []string
		for _, line := range logged.All() {
			told = append(told, line.ContextMap()["subject"].(string))
		}
		if !slices.Equal(told, want) {
			t.Errorf("verify_peer %v: the log tells of %q, want %q", verify, told, want)
		}
	}
}

// lasting is a certificate that ends after some time from now.
func lasting(t *testing.T, name string, d time.Duration) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(d)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{t: t, cert: cert, key: key}
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
