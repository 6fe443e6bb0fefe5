package auth

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"strings"
	"testing"
	"unicode/utf8"
)

// attribute is one attribute of a name; a string is encoded as encoding/asn1 likes.
func attribute(v any, oid ...int) pkix.AttributeTypeAndValue {
	return pkix.AttributeTypeAndValue{Type: oid, Value: v}
}

// text is a value of a type of string that encoding/asn1 does not choose.
func text(tag int, s string) asn1.RawValue { return asn1.RawValue{Tag: tag, Bytes: []byte(s)} }

func steps(attributes ...pkix.AttributeTypeAndValue) pkix.RDNSequence {
	var name pkix.RDNSequence
	for _, a := range attributes {
		name = append(name, pkix.RelativeDistinguishedNameSET{a})
	}
	return name
}

// What RabbitMQ 4.0 makes of these subjects.
func TestNamesAreFormattedAsByRabbitMQ(t *testing.T) {
	for _, tt := range []struct {
		name pkix.RDNSequence
		want string
	}{
		{nil, ""},
		{steps(attribute("US", 2, 5, 4, 6), attribute("ST x", 2, 5, 4, 8), attribute("Loc", 2, 5, 4, 7), attribute("Org, Inc.", 2, 5, 4, 10),
			attribute("ou1", 2, 5, 4, 11), attribute("ou2", 2, 5, 4, 11), attribute("title", 2, 5, 4, 12), attribute("123", 2, 5, 4, 5),
			attribute("sn", 2, 5, 4, 4), attribute("gn", 2, 5, 4, 42), attribute("ini", 2, 5, 4, 43), attribute("gen", 2, 5, 4, 44),
			attribute("dnq", 2, 5, 4, 46), attribute("pseu", 2, 5, 4, 65), attribute("street", 2, 5, 4, 9), attribute("postal", 2, 5, 4, 17),
			attribute("name", 2, 5, 4, 41), attribute("desc", 2, 5, 4, 13), attribute(text(22, "corp"), 0, 9, 2342, 19200300, 100, 1, 25),
			attribute("uid1", 0, 9, 2342, 19200300, 100, 1, 1), attribute(text(22, "a@b.c"), 1, 2, 840, 113549, 1, 9, 1), attribute("x1", 1, 2, 3, 4)),
			`1.2.3.4=x1,EMAILADDRESS=a@b.c,UID=uid1,DC=corp,2.5.4.13=desc,2.5.4.41=name,2.5.4.17=postal,2.5.4.9=street,PSEUDONYM=pseu,` +
				`2.5.4.46=dnq,GENERATIONQUALIFIER=gen,INITIALS=ini,GIVENNAME=gn,SN=sn,SERIALNUMBER=123,TITLE=title,OU=ou2,OU=ou1,O=Org\, Inc.,L=Loc,ST=ST x,C=US`},
		{pkix.RDNSequence{{attribute("O=a+b", 2, 5, 4, 10)}, {attribute("x", 2, 5, 4, 3), attribute("u1", 0, 9, 2342, 19200300, 100, 1, 1)}}, `CN=x+UID=u1,O=O=a\+b`},
		{steps(attribute(" lead", 2, 5, 4, 3)), `CN=\ lead`},
		{steps(attribute("trail ", 2, 5, 4, 3)), `CN=trail\ `},
		{steps(attribute("  ", 2, 5, 4, 3)), `CN=\ \ `},
		{steps(attribute("#hash", 2, 5, 4, 3)), `CN=\#hash`},
		{steps(attribute(`a"b\c<d>e;f`, 2, 5, 4, 3)), `CN=a\"b\\c\<d\>e\;f`},
		{steps(attribute("a=b/c", 2, 5, 4, 3)), `CN=a=b/c`},
		{steps(attribute("é", 2, 5, 4, 3)), `CN=\C3\A9`},
		{steps(attribute("nul\x00x", 2, 5, 4, 3)), `CN=nul\00x`},
		{steps(attribute("a~b\x7fc d", 2, 5, 4, 3)), `CN=a\7Eb\7Fc d`},
		{steps(attribute(text(12, ""), 2, 5, 4, 3)), `CN=`},
		{steps(attribute(text(30, "\x00h\x00\xe9"), 2, 5, 4, 3)), `CN=h\C3\A9`},
		{steps(attribute(text(20, "h\xe9"), 2, 5, 4, 3)), `CN=h\C3\A9`},
		{steps(attribute(text(28, "\x00\x00\x00h\x00\x01\xf6\x00"), 2, 5, 4, 3)), `CN=h\F0\9F\98\80`},
		// RabbitMQ refuses the next one, and shows the last as an Erlang term.
		{steps(attribute(5, 2, 5, 4, 3)), `CN=#020105`},
		{steps(attribute(5, 1, 2, 3, 4)), `1.2.3.4=#020105`},
	} {
		cfg := Config{CertName: DistinguishedName}
		if got := cfg.certName(&x509.Certificate{RawSubject: rawName(tt.name)}); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

// Certificates that differ in an attribute that pkix.Name has no field for are
// two users'.
func TestEveryAttributeCounts(t *testing.T) {
	cfg := Config{CertName: DistinguishedName}
	of := func(dc string) string {
		return cfg.certName(&x509.Certificate{RawSubject: rawName(steps(attribute(text(22, dc), 0, 9, 2342, 19200300, 100, 1, 25), attribute("svc", 2, 5, 4, 3)))})
	}
	if of("dev") != "CN=svc,DC=dev" || of("prod") != "CN=svc,DC=prod" {
		t.Errorf("names %q and %q", of("dev"), of("prod"))
	}
}

func TestSeveralCommonNamesAreJoined(t *testing.T) {
	cfg := Config{CertName: CommonName}
	name := steps(attribute("first", 2, 5, 4, 3), attribute("org", 2, 5, 4, 10), attribute("sec,ond", 2, 5, 4, 3))
	if got := cfg.certName(&x509.Certificate{RawSubject: rawName(name)}); got != "first,sec,ond" {
		t.Errorf("name %q", got)
	}
	name = append(name, steps(attribute(5, 2, 5, 4, 3))...)
	if got := cfg.certName(&x509.Certificate{RawSubject: rawName(name)}); got != "" {
		t.Errorf("with a number: name %q, want none", got)
	}
}

func TestANameThatCannotBeReadIsNobodys(t *testing.T) {
	whole := rawName(steps(attribute("cn", 2, 5, 4, 3)))
	for _, raw := range [][]byte{nil, whole[:len(whole)-1], append(whole[:len(whole):len(whole)], 0)} {
		for _, part := range []CertName{DistinguishedName, CommonName} {
			cfg := Config{CertName: part}
			if got := cfg.certName(&x509.Certificate{RawSubject: raw}); got != "" {
				t.Errorf("%x: name %q, want none", raw, got)
			}
		}
	}
}

func FuzzDistinguishedName(f *testing.F) {
	f.Add(rawName(nil))
	f.Add(rawName(steps(attribute("US", 2, 5, 4, 6), attribute(text(30, "\x00h\x00"), 2, 5, 4, 3), attribute(5, 1, 2, 3))))
	f.Fuzz(func(t *testing.T, der []byte) {
		name, err := parseName(der)
		if err != nil {
			return
		}
		s := formatName(name)
		if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= '~' }) {
			t.Errorf("%x: %q has what is no printable ASCII", der, s)
		}
		commonNames(name)
	})
}
