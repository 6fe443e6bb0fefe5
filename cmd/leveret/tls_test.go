package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func runTLSGenerate(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	code = run(t.Context(), append([]string{"leveret", "tls", "generate"}, args...), strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

func TestTLSGenerate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	code, out, errs := runTLSGenerate(t, dir, "--hosts", "mq.test,10.0.0.1", "--client", "alice", "--client", "bob", "--days", "3")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, want := range []string{"ssl_options.cacertfile = " + filepath.Join(dir, "ca.pem"), "ssl_options.keyfile = " + filepath.Join(dir, "server.key"), "bob.pem"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	for _, tt := range []struct {
		name, host string
		usage      x509.ExtKeyUsage
	}{
		{"server", "mq.test", x509.ExtKeyUsageServerAuth},
		{"server", "10.0.0.1", x509.ExtKeyUsageServerAuth},
		{"alice", "", x509.ExtKeyUsageClientAuth},
		{"bob", "", x509.ExtKeyUsageClientAuth},
	} {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, tt.name+".pem"), filepath.Join(dir, tt.name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: tt.host, KeyUsages: []x509.ExtKeyUsage{tt.usage}}); err != nil {
			t.Errorf("%s as %q: %v", tt.name, tt.host, err)
		}
		if left := time.Until(pair.Leaf.NotAfter); left < 71*time.Hour || left > 72*time.Hour {
			t.Errorf("%s is valid for %s, want 72h", tt.name, left)
		}
		if info, err := os.Stat(filepath.Join(dir, tt.name+".key")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s.key: mode %v, error %v, want 0600", tt.name, info.Mode(), err)
		}
	}
}

func TestTLSGenerateKeepsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	if code, _, errs := runTLSGenerate(t, dir); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	before, _ := os.ReadFile(filepath.Join(dir, "ca.pem"))
	code, _, errs := runTLSGenerate(t, dir, "--client", "other")
	if after, _ := os.ReadFile(filepath.Join(dir, "ca.pem")); code == 0 || !strings.Contains(errs, "ca.pem is there already") || string(after) != string(before) {
		t.Errorf("exit code %d, %s; want a refusal and the file as it was", code, errs)
	}
	if code, _, errs := runTLSGenerate(t, dir, "--force"); code != 0 {
		t.Errorf("with --force: exit code %d: %s", code, errs)
	}
	if after, _ := os.ReadFile(filepath.Join(dir, "ca.pem")); string(after) == string(before) {
		t.Error("with --force nothing is new")
	}
	if code, _, _ := runTLSGenerate(t, t.TempDir(), "--client", "../x"); code != exitUsage {
		t.Errorf("--client ../x: exit code %d, want %d", code, exitUsage)
	}
}
