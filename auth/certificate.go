package auth

import "crypto/x509"

// An AltKind is a kind of subject alternative name.
type AltKind string

// The kinds (RabbitMQ 4.0: ssl_cert_login_san_type).
const (
	AltDNS   AltKind = "dns"
	AltIP    AltKind = "ip"
	AltEmail AltKind = "email"
	AltURI   AltKind = "uri"
)

// certName is the name of the user whose certificate this is; "" if it has
// none, which is nobody's.
func (c *Config) certName(cert *x509.Certificate) string {
	if cert == nil {
		return ""
	}
	if c.CertName == AlternativeName {
		names := alternativeNames(cert, c.AltKind)
		if c.AltIndex < len(names) {
			return names[c.AltIndex]
		}
		return ""
	}
	subject, err := parseName(cert.RawSubject)
	switch {
	case err != nil:
		return "" // nobody's: who cannot be named whole could pass for another
	case c.CertName == CommonName:
		return commonNames(subject)
	}
	return formatName(subject)
}

func alternativeNames(cert *x509.Certificate, kind AltKind) []string {
	var names []string
	switch kind {
	case AltIP:
		for _, ip := range cert.IPAddresses {
			names = append(names, ip.String())
		}
	case AltEmail:
		names = cert.EmailAddresses
	case AltURI:
		for _, uri := range cert.URIs {
			names = append(names, uri.String())
		}
	default:
		names = cert.DNSNames
	}
	return names
}
