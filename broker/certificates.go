package broker

import (
	"crypto/tls"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/management"
)

// endsSoon is how long before its end a certificate is warned of in the log.
const endsSoon = 14 * 24 * time.Hour

// warnOfEnd logs that the certificates of t cannot be used at the time now, or not
// for long: the listener goes on, and it is the clients who refuse them.
func (c *certificate) warnOfEnd(t *tls.Config, now time.Time) {
	const advice = "put a new one in its place, it is taken over without a restart"
	for _, pair := range t.Certificates {
		if pair.Leaf == nil {
			continue
		}
		log := c.log.With(zap.String("file", c.cfg.Cert), zap.Time("not-before", pair.Leaf.NotBefore), zap.Time("not-after", pair.Leaf.NotAfter))
		switch {
		case now.After(pair.Leaf.NotAfter):
			log.Error("the certificate has expired, clients refuse it: " + advice)
		case now.Before(pair.Leaf.NotBefore):
			log.Error("the certificate is not valid yet, clients refuse it: look at the clock of this machine, or " + advice)
		case now.Add(endsSoon).After(pair.Leaf.NotAfter):
			log.Warn("the certificate expires soon: " + advice)
		}
	}
}

// expiries are the certificates that listeners use now, with the earliest expiry of
// each chain.
func (b *Broker) expiries() []management.Certificate {
	var list []management.Certificate
	for _, c := range b.certificates {
		for _, pair := range c.get().Certificates {
			if pair.Leaf != nil {
				list = append(list, management.Certificate{File: c.cfg.Cert, Subject: pair.Leaf.Subject.String(), NotAfter: pair.Leaf.NotAfter})
			}
		}
	}
	return list
}
