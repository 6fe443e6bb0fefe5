package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/leveretmq/leveret/config"
)

// An amqpListener is one address that clients connect to.
type amqpListener struct {
	net.Listener
	tls bool
}

// openListeners opens the AMQP listeners, the plain ones first.
func (b *Broker) openListeners() error {
	plain, secure := config.Addresses(b.cfg.Listen), config.Addresses(b.cfg.TLSListen)
	if len(plain)+len(secure) == 0 {
		return errors.New("no address for clients: set --listen or --tls-listen (LEVERET_LISTEN, LEVERET_TLS_LISTEN)")
	}
	for _, address := range plain {
		l, err := b.listen(address, plain, "listen", "LEVERET_LISTEN")
		if err != nil {
			return err
		}
		b.listeners = append(b.listeners, amqpListener{Listener: l})
	}
	if len(secure) == 0 {
		return nil
	}
	cert, err := b.loadCertificate(b.cfg.TLS)
	if err != nil {
		return fmt.Errorf("TLS for AMQP: %w", err)
	}
	for _, address := range secure {
		l, err := b.listen(address, secure, "tls-listen", "LEVERET_TLS_LISTEN")
		if err != nil {
			return err
		}
		b.listeners = append(b.listeners, amqpListener{tls.NewListener(l, cert.config()), true})
	}
	return nil
}

// closeListeners closes what nobody was accepted from yet.
func (b *Broker) closeListeners() {
	for _, l := range b.listeners {
		_ = l.Close() // nothing is lost with it
	}
	if b.apiListener != nil {
		_ = b.apiListener.Close()
	}
	if b.apiTLSListener != nil {
		_ = b.apiTLSListener.Close()
	}
	if b.metricsListener != nil {
		_ = b.metricsListener.Close()
	}
	if b.metricsTLSListener != nil {
		_ = b.metricsTLSListener.Close()
	}
	b.metricsTLSListener = nil
	if b.pprofListener != nil {
		_ = b.pprofListener.Close()
	}
	if b.adminListener != nil {
		_ = b.adminListener.Close()
	}
	b.listeners, b.apiListener, b.apiTLSListener, b.metricsListener, b.adminListener = nil, nil, nil, nil, nil
}

// loadCertificate reads a certificate and keeps it for Reload.
func (b *Broker) loadCertificate(cfg config.TLS) (*certificate, error) {
	c, err := newCertificate(cfg, b.log)
	if err != nil {
		return nil, fmt.Errorf("%w; correct the files or their names (leveret config check tells where those are set)", err)
	}
	b.certificates = append(b.certificates, c)
	return c, nil
}

// Reload reads the certificates anew; connections stay open. What cannot be
// used is refused, and the one before stays in use. It is for SIGHUP: changed
// files are found without it, too, by the next client that connects.
func (b *Broker) Reload() error {
	var failures []error
	said := make(map[string]bool) // listeners with the same files fail alike
	for _, c := range b.certificates {
		if err := c.reload(); err != nil && !said[err.Error()] {
			said[err.Error()] = true
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// acceptAll starts the acceptors. Both kinds of line are RabbitMQ's: tools that
// start a broker wait for them.
func (b *Broker) acceptAll(ctx context.Context) {
	for _, l := range b.listeners {
		a := newAcceptor(l)
		b.acceptors = append(b.acceptors, a)
		b.running.Go(func() { b.serve(ctx, a) })
		kind := "TCP"
		if l.tls {
			kind = "TLS (SSL)"
		}
		b.log.Info("started " + kind + " listener on " + l.Addr().String())
	}
}

// serve accepts clients of one listener. It returns when Stop has closed it, or
// reports that something else did.
func (b *Broker) serve(ctx context.Context, l net.Listener) {
	err := b.server.Serve(ctx, l)
	if b.stopping.Load() {
		return
	}
	if err == nil {
		err = net.ErrClosed
	}
	select {
	case b.failed <- fmt.Errorf("accept connections on %s: %w", l.Addr(), err):
	default: // one reason is enough
	}
}

// openMetricsTLS opens the metrics' listener with TLS.
func (b *Broker) openMetricsTLS() error {
	address := b.cfg.PrometheusTLSListen
	if address == "" {
		return nil
	}
	cert, err := b.loadCertificate(b.cfg.PrometheusTLS)
	if err != nil {
		return fmt.Errorf("TLS for the metrics: %w", err)
	}
	l, err := net.Listen(network(address, nil), address)
	if err != nil {
		return fmt.Errorf("cannot serve the metrics with TLS on %s: %w; choose another address with prometheus.ssl.port (LEVERET_PROMETHEUS_TLS_LISTEN)", address, err)
	}
	b.metricsTLSListener = tls.NewListener(l, cert.config())
	return nil
}

// listen opens one of a list of listeners.
func (b *Broker) listen(address string, all []string, flag, variable string) (net.Listener, error) {
	open := func(address string) (net.Listener, error) {
		return listenTCP(network(address, all), address, b.cfg.TCP)
	}
	l, err := open(address)
	if err == nil {
		s := newSuspendable(l, func(a net.Addr) (net.Listener, error) { return open(a.String()) })
		b.suspendable = append(b.suspendable, s)
		l = s
	}
	switch {
	case err == nil && b.cfg.TCP.Proxy: // its header comes before TLS
		return newProxyListener(l, b.cfg.Limits.HandshakeTimeout, b.log), nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("port in use: %s is taken, perhaps by another broker; stop that one or choose another address with --%s (%s)", address, flag, variable)
	case err != nil:
		return nil, fmt.Errorf("cannot listen on %s: %w; choose another address with --%s (%s)", address, err, flag, variable)
	}
	return l, nil
}

// network says which addresses a listener takes. All of IPv4 means IPv4 only,
// for which Go wants to be told. The IPv6 address of all interfaces takes IPv4 as well, unless another
// listener has that port for IPv4.
func network(address string, all []string) string {
	own, err := netip.ParseAddrPort(address)
	switch {
	case err != nil || !own.Addr().IsUnspecified(): // a name, no host at all, or one address
		return "tcp"
	case own.Addr().Is4():
		return "tcp4"
	}
	for _, other := range all {
		if o, err := netip.ParseAddrPort(other); err == nil && o.Addr() == netip.IPv4Unspecified() && o.Port() == own.Port() && o.Port() != 0 {
			return "tcp6"
		}
	}
	return "tcp"
}
