package broker

import (
	"crypto/tls"
	"crypto/x509"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/management"
)

// endsSoon is how long before its end a certificate is warned of in the log.
const endsSoon = 14 * 24 * time.Hour

// warnOfEnd logs that certificates cannot be used at the time now, or not for long:
// those of t, which clients refuse, and the roots, whose clients are refused. The
// listener goes on.
func (c *certificate) warnOfEnd(t *tls.Config, roots []*x509.Certificate, now time.Time) {
	for i := range t.Certificates {
		for _, cert := range chain(&t.Certificates[i]) {
			c.warnOf(cert, now, c.cfg.Cert, "the certificate", "clients refuse it")
		}
	}
	if !c.cfg.VerifyPeer {
		return
	}
	for _, root := range roots {
		c.warnOf(root, now, c.cfg.CACert, "the certificate of an authority", "clients with its certificates are refused")
	}
}

// warnOf logs the end of one certificate, and what follows from it.
func (c *certificate) warnOf(cert *x509.Certificate, now time.Time, file, what, effect string) {
	const advice = "put a new one in its place, it is taken over without a restart"
	log := c.log.With(zap.String("file", file), zap.Stringer("subject", cert.Subject),
		zap.Time("not-before", cert.NotBefore), zap.Time("not-after", cert.NotAfter))
	switch {
	case now.After(cert.NotAfter):
		log.Error(what + " has expired, " + effect + ": " + advice)
	case now.Before(cert.NotBefore):
		log.Error(what + " is not valid yet, " + effect + ": look at the clock of this machine, or " + advice)
	case now.Add(endsSoon).After(cert.NotAfter):
		log.Warn(what + " expires soon: " + advice)
	}
}

// chain are the certificates that a pair shows to clients: its own, and those
// behind it that can be read.
func chain(pair *tls.Certificate) []*x509.Certificate {
	if pair.Leaf == nil {
		return nil
	}
	list := []*x509.Certificate{pair.Leaf}
	for _, der := range pair.Certificate[min(1, len(pair.Certificate)):] {
		if cert, err := x509.ParseCertificate(der); err == nil {
			list = append(list, cert)
		}
	}
	return list
}

// expiries are the certificates that listeners use now: whole chains, and those of
// the authorities, whether clients are verified or not (RabbitMQ 4.0).
func (b *Broker) expiries() []management.Certificate {
	var list []management.Certificate
	for _, c := range b.certificates {
		t, roots := c.inUse()
		for i := range t.Certificates {
			list = appendExpiries(list, c.cfg.Cert, chain(&t.Certificates[i]))
		}
		list = appendExpiries(list, c.cfg.CACert, roots)
	}
	return list
}

func appendExpiries(list []management.Certificate, file string, certs []*x509.Certificate) []management.Certificate {
	for _, c := range certs {
		list = append(list, management.Certificate{File: file, Subject: c.Subject.String(), NotBefore: c.NotBefore, NotAfter: c.NotAfter})
	}
	return list
}
