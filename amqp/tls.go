package amqp

import (
	"context"
	"crypto/tls"
	"crypto/x509"

	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/frames"
)

// handshakeTLS finishes the TLS handshake of a connection that has one, and
// takes note of the client's certificate.
func (c *conn) handshakeTLS(ctx context.Context) error {
	sock, ok := c.sock.(*tls.Conn)
	if !ok {
		return nil
	}
	if err := sock.HandshakeContext(ctx); err != nil {
		return err
	}
	c.start.TLS = true
	if chains := sock.ConnectionState().VerifiedChains; len(chains) > 0 {
		c.cert = chains[0][0]
	}
	return nil
}

// credentials gathers what a login may look at.
func (c *conn) credentials(m *frames.ConnectionStartOk) auth.Credentials {
	peer := c.start.Peer.Addr()
	cr := auth.Credentials{
		Mechanism: m.Mechanism, Response: m.Response, Peer: peer,
		Loopback: peer.IsLoopback() || !peer.IsValid(), // what has no address is a pipe or a Unix socket
	}
	if c.cert != nil {
		cr.CommonName = c.cert.Subject.CommonName
		cr.DistinguishedName = c.cert.Subject.ToRDNSequence().String()
		cr.AlternativeName = alternativeName(c.cert)
	}
	return cr
}

// alternativeName is the first subject alternative name, DNS before e-mail
// before URI.
func alternativeName(cert *x509.Certificate) string {
	switch {
	case len(cert.DNSNames) > 0:
		return cert.DNSNames[0]
	case len(cert.EmailAddresses) > 0:
		return cert.EmailAddresses[0]
	case len(cert.URIs) > 0:
		return cert.URIs[0].String()
	}
	return ""
}
