package amqp

import (
	"context"
	"crypto/tls"
	"net"
	"strings"

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
	ctx, cancel := context.WithTimeout(ctx, c.srv.cfg.TLSTimeout)
	defer cancel()
	if err := sock.HandshakeContext(ctx); err != nil {
		return err
	}
	state := sock.ConnectionState()
	c.start.TLS, c.start.TLSVersion, c.start.TLSCipher = true, tlsName(state.Version), tls.CipherSuiteName(state.CipherSuite)
	if chains := state.VerifiedChains; len(chains) > 0 {
		c.cert = chains[0][0]
		c.start.PeerCertificate = c.cert
	}
	return nil
}

// credentials gathers what a login may look at.
func (c *conn) credentials(m *frames.ConnectionStartOk) auth.Credentials {
	peer := c.start.Peer.Addr()
	cr := auth.Credentials{
		Mechanism: m.Mechanism, Response: m.Response, Peer: peer,
		Loopback: peer.IsLoopback() || !peer.IsValid(), // what has no address is a pipe or a Unix socket
		Remote:   behindProxyElsewhere(c.sock),
	}
	cr.Certificate = c.cert
	return cr
}

// behindProxyElsewhere says whether a proxy that is not on this host told the
// client's address: it is the word of whoever reached the port.
func behindProxyElsewhere(sock net.Conn) bool {
	if secure, ok := sock.(*tls.Conn); ok {
		sock = secure.NetConn()
	}
	proxied, ok := sock.(interface{ ProxyAddr() net.Addr })
	if !ok {
		return false
	}
	proxy := addrPort(proxied.ProxyAddr()).Addr()
	return proxy.IsValid() && !proxy.IsLoopback()
}

// tlsName is a version of TLS as RabbitMQ writes it: tlsv1.3.
func tlsName(version uint16) string {
	return strings.ToLower(strings.Replace(tls.VersionName(version), "TLS ", "TLSv", 1))
}
