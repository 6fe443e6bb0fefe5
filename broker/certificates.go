package broker

import "github.com/leveretmq/leveret/management"

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
