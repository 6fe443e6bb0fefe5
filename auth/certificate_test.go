package auth

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"net"
	"net/url"
	"testing"
)

// rawName is a name as it is in a certificate.
func rawName(name pkix.RDNSequence) []byte {
	raw, err := asn1.Marshal(name)
	if err != nil {
		panic(err)
	}
	return raw
}

// testCert is a certificate with a name of every kind.
func testCert(commonName string) *x509.Certificate {
	return &x509.Certificate{
		RawSubject:     rawName(pkix.Name{CommonName: commonName, Organization: []string{"org"}}.ToRDNSequence()),
		DNSNames:       []string{"a.test", "b.test"},
		EmailAddresses: []string{"a@test"},
		IPAddresses:    []net.IP{net.IPv4(192, 0, 2, 1)},
		URIs:           []*url.URL{{Scheme: "urn", Opaque: "user:a"}},
	}
}

func TestExternalTakesTheConfiguredName(t *testing.T) {
	for _, tt := range []struct {
		part  CertName
		kind  AltKind
		index int
		want  string
	}{
		{CommonName, "", 0, "cn"},
		{DistinguishedName, "", 0, "CN=cn,O=org"},
		{AlternativeName, "", 0, "a.test"},
		{AlternativeName, AltDNS, 1, "b.test"},
		{AlternativeName, AltEmail, 0, "a@test"},
		{AlternativeName, AltIP, 0, "192.0.2.1"},
		{AlternativeName, AltURI, 0, "urn:user:a"},
		{AlternativeName, AltDNS, 2, ""},
	} {
		cfg := Config{CertName: tt.part, AltKind: tt.kind, AltIndex: tt.index}
		if got := cfg.certName(testCert("cn")); got != tt.want {
			t.Errorf("part %d, %s %d: %q, want %q", tt.part, tt.kind, tt.index, got, tt.want)
		}
		if tt.want == "" {
			continue
		}
		cfg.Mechanisms = []string{External}
		a := newAuthority(t, cfg)
		putUser(t, a, tt.want, Secret{})
		if u, err := a.Login(t.Context(), Credentials{Mechanism: External, Certificate: testCert("cn")}); u.Name != tt.want || err != nil {
			t.Errorf("user %q, error %v, want %q", u.Name, err, tt.want)
		}
	}
}
