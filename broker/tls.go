package broker

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/config"
)

// lookEvery is how often the files of a certificate are looked at, at most, and
// only while clients connect.
const lookEvery = time.Second

// A certificate makes the TLS configuration of a listener, and makes it anew
// when its files change. Connections keep what they began with.
type certificate struct {
	cfg config.TLS  // immutable
	log *zap.Logger // immutable

	// mu guards the fields below. It is held while the files are read, at most
	// once a second.
	mu      sync.Mutex
	current *tls.Config         // immutable itself
	roots   []*x509.Certificate // who signs clients' certificates, in current
	looked  time.Time           // when the files were looked at last
	files   []fileState         // what they were then
}

// A fileState tells whether a file was changed.
type fileState struct {
	size     int64
	modified time.Time
}

// newCertificate reads the files. They must be right at the start.
func newCertificate(cfg config.TLS, log *zap.Logger) (*certificate, error) {
	c := &certificate{cfg: cfg, log: log}
	c.looked, c.files = time.Now(), c.state()
	var err error
	if c.current, c.roots, err = tlsConfig(cfg); err == nil {
		c.warnOfEnd(c.current, c.roots, time.Now())
	}
	return c, err
}

// config is for a listener: it asks for the current one at each handshake.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS10, // the current one decides
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.get(), nil },
	}
}

// get is the current configuration; changed files are read first.
func (c *certificate) get() *tls.Config {
	t, _ := c.inUse()
	return t
}

// inUse is the same, with the roots.
func (c *certificate) inUse() (t *tls.Config, roots []*x509.Certificate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) >= lookEvery {
		c.lookLocked()
	}
	return c.current, c.roots
}

// lookLocked reads the files if they are not what they were. What cannot be used
// is in the log. c.mu must be held.
func (c *certificate) lookLocked() {
	c.looked = time.Now()
	files := c.state()
	if slices.Equal(files, c.files) {
		return
	}
	if err := c.reloadLocked(files); err != nil {
		c.log.Error("the changed certificate cannot be used; the one before stays in use until the files are right", zap.Error(err))
	}
}

// reload reads the files whether they changed or not.
func (c *certificate) reload() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reloadLocked(c.state())
}

// reloadLocked takes new files if they are right; else it keeps what it has and
// tries again when they change once more, as somebody may be writing them. c.mu
// must be held.
func (c *certificate) reloadLocked(files []fileState) error {
	c.files = files
	fresh, roots, err := tlsConfig(c.cfg)
	if err != nil {
		return err
	}
	c.current, c.roots = fresh, roots
	c.log.Info("certificate loaded", zap.String("file", c.cfg.Cert))
	c.warnOfEnd(fresh, roots, time.Now())
	return nil
}

// state looks at the files. One that cannot be looked at is a change.
func (c *certificate) state() []fileState {
	var states []fileState
	for _, name := range []string{c.cfg.Cert, c.cfg.Key, c.cfg.CACert} {
		if name == "" {
			continue
		}
		var s fileState
		if info, err := os.Stat(name); err == nil {
			s = fileState{info.Size(), info.ModTime()}
		}
		states = append(states, s)
	}
	return states
}

// tlsConfig reads the files of a certificate. The roots are those of ClientCAs.
func tlsConfig(cfg config.TLS) (t *tls.Config, roots []*x509.Certificate, err error) {
	cert, err := keyPair(cfg)
	if err != nil {
		return nil, nil, err
	}
	t = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: nil}
	if len(cfg.Versions) > 0 {
		t.MinVersion = version(cfg.Versions[0])
		t.MaxVersion = version(cfg.Versions[len(cfg.Versions)-1])
	}
	for _, name := range cfg.Ciphers {
		if id, ok := config.CipherSuite(name); ok { // config has left out the others
			t.CipherSuites = append(t.CipherSuites, id)
		}
	}
	if cfg.CACert != "" { // a wrong file is told of even if nobody is verified yet, as by RabbitMQ 4.0
		if roots, err = readRoots(cfg.CACert); err != nil {
			return nil, nil, err
		}
		t.ClientCAs = x509.NewCertPool()
		for _, root := range roots {
			t.ClientCAs.AddCert(root)
		}
	}
	if !cfg.VerifyPeer {
		return t, roots, nil
	}
	t.ClientAuth = tls.VerifyClientCertIfGiven
	if cfg.RequirePeer {
		t.ClientAuth = tls.RequireAndVerifyClientCert
	}
	t.VerifyConnection = func(s tls.ConnectionState) error { return checkDepth(s.VerifiedChains, cfg.Depth) }
	return t, roots, nil
}

// version is the number of a version that config has checked.
func version(name string) uint16 {
	switch name {
	case "tlsv1":
		return tls.VersionTLS10
	case "tlsv1.1":
		return tls.VersionTLS11
	case "tlsv1.2":
		return tls.VersionTLS12
	}
	return tls.VersionTLS13
}

// checkDepth refuses a client whose certificate is too far from its root: depth
// is how many may be in between (RabbitMQ 4.0: ssl_options.depth).
func checkDepth(chains [][]*x509.Certificate, depth int) error {
	if len(chains) == 0 {
		return nil
	}
	for _, chain := range chains {
		if len(chain)-2 <= depth {
			return nil
		}
	}
	return fmt.Errorf("more than %d certificates between the client's and its root: raise ssl_options.depth to allow that", depth)
}

// readRoots reads the certificates of a file, at least one. What else is in it is
// left out.
func readRoots(name string) ([]*x509.Certificate, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, readable("certificates of the authorities", err)
	}
	var roots []*x509.Certificate
	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			continue
		}
		if root, err := x509.ParseCertificate(block.Bytes); err == nil {
			roots = append(roots, root)
		}
	}
	if len(roots) == 0 {
		return nil, fmt.Errorf("%s has no certificate: want PEM with BEGIN CERTIFICATE", name)
	}
	return roots, nil
}

// keyPair reads certificate and key, which may be encrypted.
func keyPair(cfg config.TLS) (tls.Certificate, error) {
	cert, err := os.ReadFile(cfg.Cert)
	if err != nil {
		return tls.Certificate{}, readable("certificate", err)
	}
	key, err := os.ReadFile(cfg.Key)
	if err != nil {
		return tls.Certificate{}, readable("key of the certificate", err)
	}
	if key, err = decrypt(key, cfg.KeyPassword); err != nil {
		return tls.Certificate{}, fmt.Errorf("key %s: %w", cfg.Key, err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return pair, fmt.Errorf("certificate %s with key %s: %w", cfg.Cert, cfg.Key, err)
	}
	return pair, nil
}

// readable says what an error of a file means for the one who configured it.
func readable(what string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("read the %s: %w: the file must be readable for the user that the broker runs as", what, err)
	}
	return fmt.Errorf("read the %s: %w", what, err)
}

// decrypt takes the password off a key, if it has one.
func decrypt(key []byte, password string) ([]byte, error) {
	block, _ := pem.Decode(key)
	switch {
	case block == nil:
		return nil, errors.New("no PEM in it: want BEGIN PRIVATE KEY")
	case block.Type != "ENCRYPTED PRIVATE KEY" && block.Headers["DEK-Info"] == "":
		return key, nil
	case password == "":
		return nil, errors.New("it is encrypted: set its password as ssl_options.password (LEVERET_TLS_KEY_PASSWORD), or as management.ssl.password or prometheus.ssl.password if it is theirs")
	case block.Type == "ENCRYPTED PRIVATE KEY":
		der, err := decryptPKCS8(block.Bytes, []byte(password))
		if err != nil {
			return nil, err
		}
		return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
	}
	//lint:ignore SA1019 weak, but what such files have
	der, err := x509.DecryptPEMBlock(block, []byte(password))
	if err != nil {
		return nil, errors.New("the password is not the right one")
	}
	return pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: der}), nil
}
