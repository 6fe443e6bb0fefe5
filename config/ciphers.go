package config

import (
	"crypto/tls"
	"errors"
	"slices"
	"strings"
)

// CipherSuite finds a suite by its name in the standards, such as
// TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, or in OpenSSL, such as
// ECDHE-RSA-AES128-GCM-SHA256. It is not ok if Go has none of that name.
func CipherSuite(name string) (id uint16, ok bool) {
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if name == s.Name || name == OpenSSLName(s.Name) {
			return s.ID, true
		}
	}
	return 0, false
}

// OpenSSLName makes OpenSSL's name of a standard one.
func OpenSSLName(name string) string {
	name, ok := strings.CutPrefix(name, "TLS_")
	exchange, cipher, below := strings.Cut(name, "_WITH_")
	if !ok || !below {
		return "TLS_" + name // those of TLS 1.3 have one name
	}
	for _, r := range [][2]string{{"AES_", "AES"}, {"_CBC_SHA", "_SHA"}, {"3DES_EDE", "DES_CBC3"}, {"CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305"}, {"RC4_128", "RC4"}} {
		cipher = strings.Replace(cipher, r[0], r[1], 1)
	}
	if exchange == "RSA" { // without an exchange of keys
		return strings.ReplaceAll(cipher, "_", "-")
	}
	return strings.ReplaceAll(exchange+"_"+cipher, "_", "-")
}

// checkCiphers takes those suites out that Go does not have. They are noted, as
// lists of them are copied from place to place; with none left it is an error.
func (l *loader) checkCiphers(t *TLS) error {
	if t.Ciphers == nil {
		return nil
	}
	var known []string
	for _, name := range t.Ciphers {
		if _, ok := CipherSuite(name); ok {
			known = append(known, name)
		} else {
			l.note("the cipher suite " + name + " is not there; it is left out")
		}
	}
	if len(known) == 0 {
		return errors.New("none of the cipher suites is there: name others, or none for Go's choice: " + strings.Join(t.Ciphers, " "))
	}
	t.Ciphers = known
	return nil
}
