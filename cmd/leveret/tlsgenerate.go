package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// A generator makes an authority and what it signs.
type generator struct {
	dir            string
	hosts, clients []string
	valid          time.Duration
	now            time.Time
	force          bool
}

// A signed is a certificate with its key.
type signed struct {
	cert *x509.Certificate
	der  []byte
	key  *ecdsa.PrivateKey
}

var clientName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]*$`)

// check refuses what cannot be made, and files that would be overwritten.
func (g *generator) check(days int) error {
	if days < 1 || days > 36_500 {
		return errors.New("--days must be a number from 1 to 36500")
	}
	if len(g.hosts) == 0 {
		return errors.New("--hosts must name the server")
	}
	for _, c := range g.clients {
		if !clientName.MatchString(c) || c == "ca" || c == "server" {
			return fmt.Errorf("--client %q cannot be the name of a file: use letters, digits, . _ @ and -, and not ca or server", c)
		}
	}
	if g.force {
		return nil
	}
	for _, name := range slices.Concat([]string{"ca", "server"}, g.clients) {
		for _, ending := range []string{".pem", ".key"} {
			file := filepath.Join(g.dir, name+ending)
			if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s is there already: choose another folder, or overwrite with --force", file)
			}
		}
	}
	return nil
}

func (g *generator) run() error {
	if err := os.MkdirAll(g.dir, 0o755); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	ca, err := g.sign("Leveret development CA", nil, func(c *x509.Certificate) {
		c.IsCA, c.BasicConstraintsValid, c.MaxPathLenZero = true, true, true
		c.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	})
	if err != nil {
		return err
	}
	server, err := g.sign(g.hosts[0], ca, func(c *x509.Certificate) {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		for _, h := range g.hosts {
			if ip := net.ParseIP(h); ip != nil {
				c.IPAddresses = append(c.IPAddresses, ip)
			} else {
				c.DNSNames = append(c.DNSNames, h)
			}
		}
	})
	if err != nil {
		return err
	}
	if err := errors.Join(g.write("ca", ca), g.write("server", server)); err != nil {
		return err
	}
	for _, name := range g.clients {
		client, err := g.sign(name, ca, func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		})
		if err != nil {
			return err
		}
		if err := g.write(name, client); err != nil {
			return err
		}
	}
	return nil
}

// sign makes a certificate that ca signs, or itself if ca is nil.
func (g *generator) sign(name string, ca *signed, edit func(*x509.Certificate)) (*signed, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	cert := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: g.now.Add(-time.Hour), NotAfter: g.now.Add(g.valid), // clocks differ
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
	}
	edit(cert)
	parent, signer := cert, key
	if ca != nil {
		parent, signer = ca.cert, ca.key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of %s: %w", name, err)
	}
	return &signed{cert, der, key}, nil
}

// write makes NAME.pem, and NAME.key that only its owner can read.
func (g *generator) write(name string, s *signed) error {
	key, err := x509.MarshalPKCS8PrivateKey(s.key)
	if err != nil {
		return err
	}
	return errors.Join(
		g.writeFile(name+".key", 0o600, &pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		g.writeFile(name+".pem", 0o644, &pem.Block{Type: "CERTIFICATE", Bytes: s.der}))
}

// writeFile puts a new file in place, so that it has this mode from the start.
func (g *generator) writeFile(name string, mode fs.FileMode, block *pem.Block) error {
	path := filepath.Join(g.dir, name)
	if g.force {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	return errors.Join(pem.Encode(f, block), f.Close())
}
