package broker

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/leveretmq/leveret/config"
)

// An authority signs certificates of a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority makes one; parent is nil for a root.
func newAuthority(t *testing.T, name string, parent *authority) *authority {
	a := &authority{t: t}
	a.cert, a.key = issue(t, name, true, parent)
	return a
}

func issue(t *testing.T, name string, ca bool, parent *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, IsCA: ca, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signer, signerKey := template, key
	if ca {
		template.KeyUsage |= x509.KeyUsageCertSign
		template.DNSNames = nil
	}
	if parent != nil {
		signer, signerKey = parent.cert, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer, &key.PublicKey, signerKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func certPEM(certs ...*x509.Certificate) []byte {
	var out []byte
	for _, c := range certs {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return out
}

func keyPEM(t *testing.T, key *ecdsa.PrivateKey) []byte {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// files writes a new server certificate and the root, and returns where.
func (a *authority) files(dir string) config.TLS {
	a.t.Helper()
	cert, key := issue(a.t, "localhost", false, a)
	cfg := config.TLS{CACert: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), Depth: 1}
	for name, b := range map[string][]byte{cfg.CACert: certPEM(a.cert), cfg.Cert: certPEM(cert), cfg.Key: keyPEM(a.t, key)} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return cfg
}

// client is the TLS of a client that trusts the authority and shows a
// certificate signed by signer, or none if that is nil.
func (a *authority) client(name string, signer *authority) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	c := &tls.Config{RootCAs: roots, ServerName: "localhost"}
	if signer != nil {
		cert, key := issue(a.t, name, false, signer)
		chain := [][]byte{cert.Raw}
		if signer.cert != a.cert {
			chain = append(chain, signer.cert.Raw)
		}
		c.Certificates = []tls.Certificate{{Certificate: chain, PrivateKey: key}}
	}
	return c
}

// startTLS starts a broker with one listener with TLS and one for HTTPS.
func startTLS(t *testing.T, change func(*config.Config)) *Broker {
	t.Helper()
	cfg := testConfig(t)
	cfg.InMemory = true
	cfg.Listen, cfg.TLSListen, cfg.ManagementTLSListen = "", "127.0.0.1:0", "127.0.0.1:0"
	change(&cfg)
	cfg.ManagementTLS = cfg.TLS
	b := New(cfg, nil)
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, b) })
	return b
}

// handshake connects and reads a little: with TLS 1.3 a client learns only then
// that its certificate was refused.
func handshake(b *Broker, c *tls.Config) (tls.ConnectionState, error) {
	sock, err := tls.Dial("tcp", b.listeners[0].Addr().String(), c)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer sock.Close()
	if _, err := sock.Write([]byte("AMQP\x00\x00\x09\x01")); err != nil {
		return sock.ConnectionState(), err
	}
	_, err = sock.Read(make([]byte, 1))
	return sock.ConnectionState(), err
}

func TestClientCertificates(t *testing.T) {
	ca := newAuthority(t, "root", nil)
	middle := newAuthority(t, "middle", ca)
	stranger := newAuthority(t, "stranger", nil)
	files := ca.files(t.TempDir())
	for _, tt := range []struct {
		name            string
		verify, require bool
		depth           int
		client          *tls.Config
		want            bool
	}{
		{"nobody asks", false, false, 1, ca.client("c", nil), true},
		{"a stranger's, and nobody asks", false, false, 1, ca.client("c", stranger), true},
		{"asked for, none", true, false, 1, ca.client("c", nil), true},
		{"asked for, good", true, false, 1, ca.client("c", ca), true},
		{"asked for, a stranger's", true, false, 1, ca.client("c", stranger), false},
		{"required, none", true, true, 1, ca.client("c", nil), false},
		{"required, good", true, true, 0, ca.client("c", ca), true},
		{"one in between, one allowed", true, true, 1, ca.client("c", middle), true},
		{"one in between, none allowed", true, true, 0, ca.client("c", middle), false},
	} {
		b := startTLS(t, func(c *config.Config) {
			c.TLS = files
			c.TLS.VerifyPeer, c.TLS.RequirePeer, c.TLS.Depth = tt.verify, tt.require, tt.depth
		})
		if tt.client.Certificates != nil { // show it whoever the server says it wants
			cert := tt.client.Certificates[0]
			tt.client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
		}
		if _, err := handshake(b, tt.client); (err == nil) != tt.want {
			t.Errorf("%s: error %v, want success %v", tt.name, err, tt.want)
		}
	}
}

func TestTLSVersions(t *testing.T) {
	ca := newAuthority(t, "root", nil)
	files := ca.files(t.TempDir())
	for _, tt := range []struct {
		server []string
		client uint16
		want   bool
	}{
		{nil, tls.VersionTLS13, true},
		{nil, tls.VersionTLS12, true},
		{nil, tls.VersionTLS11, false},
		{[]string{"tlsv1.3"}, tls.VersionTLS12, false},
		{[]string{"tlsv1.2"}, tls.VersionTLS13, false},
		{[]string{"tlsv1.1", "tlsv1.2"}, tls.VersionTLS11, true},
	} {
		b := startTLS(t, func(c *config.Config) {
			c.TLS = files
			c.TLS.Versions = tt.server
		})
		client := ca.client("c", nil)
		client.MinVersion, client.MaxVersion = tt.client, tt.client
		if _, err := handshake(b, client); (err == nil) != tt.want {
			t.Errorf("server %v, client %s: error %v, want success %v", tt.server, tls.VersionName(tt.client), err, tt.want)
		}
	}
}

// A new certificate is served as soon as its files are there; a connection with
// the old one stays open; a broken file changes nothing.
func TestCertificateReload(t *testing.T) {
	ca := newAuthority(t, "root", nil)
	dir := t.TempDir()
	files := ca.files(dir)
	b := startTLS(t, func(c *config.Config) { c.TLS = files })
	serial := func() string {
		t.Helper()
		state, err := handshake(b, ca.client("c", nil))
		if err != nil {
			t.Fatal(err)
		}
		return state.PeerCertificates[0].SerialNumber.String()
	}
	conn, err := amqp091.DialTLS("amqps://guest:guest@"+b.listeners[0].Addr().String()+"/", ca.client("c", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	first := serial()

	ca.files(dir)
	if err := b.Reload(); err != nil {
		t.Fatal(err)
	}
	second := serial()
	if second == first {
		t.Error("Reload: the certificate before is still served")
	}
	if err := os.WriteFile(files.Cert, []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.Reload(); err == nil || strings.Count(err.Error(), files.Cert) != 1 { // two listeners have it
		t.Errorf("Reload of a broken file: error %v, want one that names %s once", err, files.Cert)
	}
	if serial() != second {
		t.Error("a broken file changed the certificate")
	}

	ca.files(dir)
	for _, c := range b.certificates { // as if they had been looked at long ago
		c.mu.Lock()
		c.looked = time.Time{}
		c.mu.Unlock()
	}
	if serial() == second {
		t.Error("changed files: the certificate before is still served")
	}
	if _, err := conn.Channel(); err != nil {
		t.Errorf("the connection from before: %v", err)
	}
}

func TestExternalLogin(t *testing.T) {
	ca := newAuthority(t, "root", nil)
	files := ca.files(t.TempDir())
	for _, tt := range []struct {
		from config.CertName
		user string
	}{
		{config.DistinguishedName, "CN=alice"},
		{config.CommonName, "alice"},
		{config.AlternativeName, "localhost"},
	} {
		b := startTLS(t, func(c *config.Config) {
			c.TLS = files
			c.TLS.VerifyPeer = true
			c.DefaultUser = tt.user
			c.Auth.Mechanisms = []string{"PLAIN", "EXTERNAL"}
			c.Auth.CertName = tt.from
		})
		url := "amqps://" + b.listeners[0].Addr().String() + "/"
		conn, err := amqp091.DialTLS_ExternalAuth(url, ca.client("alice", ca))
		if err != nil {
			t.Errorf("%s: %v", tt.from, err)
			continue
		}
		conn.Close()
		if conn, err := amqp091.DialTLS_ExternalAuth(url, ca.client("alice", nil)); err == nil {
			conn.Close()
			t.Errorf("%s: a client without a certificate is let in", tt.from)
		}
	}
}

func TestHTTPS(t *testing.T) {
	ca := newAuthority(t, "root", nil)
	b := startTLS(t, func(c *config.Config) { c.TLS = ca.files(t.TempDir()) })
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: ca.client("c", nil)}}
	defer client.CloseIdleConnections()
	address := b.apiTLSListener.Addr().String()
	for path, want := range map[string]int{"/api/whoami": 200, "/api/health/checks/protocol-listener/https": 200, "/api/health/checks/protocol-listener/amqp%2Fssl": 200, "/api/health/checks/protocol-listener/http": 503} {
		resp, err := client.Get("https://guest:guest@" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("GET %s: %s, want %d", path, resp.Status, want)
		}
	}
}

func TestCertificateThatCannotBeUsed(t *testing.T) {
	ca := newAuthority(t, "root", nil)
	good := ca.files(t.TempDir())
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, tt := range []struct {
		change func(*config.TLS)
		want   string
	}{
		{func(c *config.TLS) { c.Cert = filepath.Join(dir, "none") }, "read the certificate: open " + dir},
		{func(c *config.TLS) { c.Key = write("no", "no key") }, "want BEGIN PRIVATE KEY"},
		{func(c *config.TLS) {
			c.Key = write("enc", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
		}, "set its password as ssl_options.password (LEVERET_TLS_KEY_PASSWORD)"},
		{func(c *config.TLS) { c.CACert = write("ca", "no") }, "want PEM with BEGIN CERTIFICATE"},
	} {
		cfg := testConfig(t)
		cfg.InMemory, cfg.TLSListen = true, "127.0.0.1:0"
		cfg.TLS = good
		cfg.TLS.VerifyPeer = true
		tt.change(&cfg.TLS)
		if _, err := New(cfg, nil).Start(); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "; correct the files or their names") {
			t.Errorf("error %v, want %q in it, and what to do", err, tt.want)
		}
	}
}

// A key with a password, as openssl writes it.
func TestKeyWithPassword(t *testing.T) {
	ca := newAuthority(t, "root", nil)
	_, key := issue(t, "localhost", false, ca)
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	//lint:ignore SA1019 see decrypt
	block, err := x509.EncryptPEMBlock(rand.Reader, "EC PRIVATE KEY", der, []byte("sesame"), x509.PEMCipherAES256)
	if err != nil {
		t.Fatal(err)
	}
	for password, want := range map[string]string{"sesame": "", "wrong": "the password is not the right one", "": "set its password as ssl_options.password (LEVERET_TLS_KEY_PASSWORD)"} {
		_, err := decrypt(pem.EncodeToMemory(block), password)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("decrypt with %q: error %v, want %q", password, err, want)
		}
	}
}

// The tool that people test a listener with. It is not on every machine.
func TestOpenSSLClient(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Logf("no openssl on this machine: %v", err)
		return
	}
	ca := newAuthority(t, "root", nil)
	b := startTLS(t, func(c *config.Config) {
		c.TLS = ca.files(t.TempDir())
		c.TLS.VerifyPeer, c.TLS.RequirePeer = true, true
	})
	dir := t.TempDir()
	cert, key := issue(t, "alice", false, ca)
	if err := os.WriteFile(filepath.Join(dir, "cert.pem"), certPEM(cert), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "key.pem"), keyPEM(t, key), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, openssl, "s_client", "-connect", b.listeners[0].Addr().String(), "-CAfile", b.cfg.TLS.CACert,
		"-cert", filepath.Join(dir, "cert.pem"), "-key", filepath.Join(dir, "key.pem"), "-verify_return_error", "-quiet")
	cmd.Stdin = strings.NewReader("AMQP\x00\x01\x00\x09") // a wrong header: the broker answers with the right one and closes
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "AMQP\x00\x00\x09\x01") {
		t.Errorf("openssl s_client: %v, got %q, want the broker's header", err, out)
	}
}

// A list of cipher suites is what a handshake below TLS 1.3 chooses from.
func TestCiphersOfAHandshake(t *testing.T) {
	ca := newAuthority(t, "root", nil)
	b := startTLS(t, func(c *config.Config) {
		c.TLS = ca.files(t.TempDir())
		c.TLS.Versions, c.TLS.Ciphers = []string{"tlsv1.2"}, []string{"ECDHE-ECDSA-AES256-GCM-SHA384"}
	})
	state, err := handshake(b, ca.client("", nil))
	if err != nil || state.CipherSuite != tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 {
		t.Errorf("the suite is %s, error %v; want the one that is configured", tls.CipherSuiteName(state.CipherSuite), err)
	}
	other := ca.client("", nil)
	other.MaxVersion, other.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
	if state, err := handshake(b, other); err == nil {
		t.Errorf("a client without it could connect, with %s", tls.CipherSuiteName(state.CipherSuite))
	}
}

func TestMetricsOverHTTPS(t *testing.T) {
	ca := newAuthority(t, "root", nil)
	b := start(t, func(c *config.Config) { c.PrometheusTLSListen, c.PrometheusTLS = "127.0.0.1:0", ca.files(t.TempDir()) })
	client := http.Client{Transport: &http.Transport{TLSClientConfig: ca.client("", nil), DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+b.metricsTLSListener.Addr().String()+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(body), "rabbitmq_identity_info{") {
		t.Errorf("status %d, error %v, %d bytes; want metrics", res.StatusCode, err, len(body))
	}
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/health/checks/protocol-listener/https%2Fprometheus", nil)
	r.RemoteAddr = "127.0.0.1:1"
	r.SetBasicAuth("guest", "guest")
	w := httptest.NewRecorder()
	if b.api.ServeHTTP(w, r); w.Code != http.StatusOK {
		t.Errorf("the listener with TLS is not known as one: %d %s", w.Code, w.Body)
	}
}
