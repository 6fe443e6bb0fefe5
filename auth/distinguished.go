package auth

import (
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
)

// A relativeNameSET is one step of a distinguished name: mostly one attribute. The
// end of its name makes encoding/asn1 read a SET.
type relativeNameSET []nameAttribute

type nameAttribute struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

// parseName reads a subject as it is in the certificate: all attributes, in their
// order. pkix.Name has some of them only.
func parseName(der []byte) ([]relativeNameSET, error) {
	var name []relativeNameSET
	rest, err := asn1.Unmarshal(der, &name)
	if err == nil && len(rest) > 0 {
		err = errors.New("bytes behind the name")
	}
	if err != nil {
		return nil, fmt.Errorf("parse a distinguished name: %w", err)
	}
	return name, nil
}

// formatName writes a name as RabbitMQ 4.0 does, which is nearly RFC 4514: the last
// step first, and what is no printable ASCII as its bytes of UTF-8 in hexadecimal.
func formatName(name []relativeNameSET) string {
	var b strings.Builder
	for i := len(name) - 1; i >= 0; i-- {
		for j, a := range name[i] {
			switch {
			case j > 0:
				b.WriteByte('+')
			case i < len(name)-1:
				b.WriteByte(',')
			}
			b.WriteString(attributeName(a.Type))
			b.WriteByte('=')
			if value, isText := attributeText(a.Value); isText {
				escapeValue(&b, value)
			} else {
				b.WriteString("#" + hex.EncodeToString(a.Value.FullBytes)) // RFC 4514, section 2.4
			}
		}
	}
	return b.String()
}

// commonNames joins all common names of a name with commas (RabbitMQ 4.0); it is ""
// if one of them is no text.
func commonNames(name []relativeNameSET) string {
	var list []string
	for _, step := range name {
		for _, a := range step {
			if attributeName(a.Type) != "CN" {
				continue
			}
			value, isText := attributeText(a.Value)
			if !isText {
				return ""
			}
			list = append(list, value)
		}
	}
	return strings.Join(list, ",")
}

// attributeName is what RabbitMQ 4.0 calls a type of attribute; its number if that
// has no name there.
func attributeName(t asn1.ObjectIdentifier) string {
	switch number := t.String(); number {
	case "2.5.4.3":
		return "CN"
	case "2.5.4.4":
		return "SN"
	case "2.5.4.5":
		return "SERIALNUMBER"
	case "2.5.4.6":
		return "C"
	case "2.5.4.7":
		return "L"
	case "2.5.4.8":
		return "ST"
	case "2.5.4.10":
		return "O"
	case "2.5.4.11":
		return "OU"
	case "2.5.4.12":
		return "TITLE"
	case "2.5.4.42":
		return "GIVENNAME"
	case "2.5.4.43":
		return "INITIALS"
	case "2.5.4.44":
		return "GENERATIONQUALIFIER"
	case "2.5.4.65":
		return "PSEUDONYM"
	case "0.9.2342.19200300.100.1.1":
		return "UID"
	case "0.9.2342.19200300.100.1.25":
		return "DC"
	case "1.2.840.113549.1.9.1":
		return "EMAILADDRESS"
	default:
		return number
	}
}

// The tags of strings that encoding/asn1 has no constant for.
const (
	tagVisibleString   = 26
	tagUniversalString = 28
)

// attributeText is the value as UTF-8, if it is a string.
func attributeText(v asn1.RawValue) (s string, ok bool) {
	if v.Class == asn1.ClassUniversal && !v.IsCompound {
		switch n := len(v.Bytes); {
		case v.Tag == asn1.TagUTF8String, v.Tag == asn1.TagPrintableString, v.Tag == asn1.TagIA5String,
			v.Tag == asn1.TagNumericString, v.Tag == tagVisibleString:
			return string(v.Bytes), true
		case v.Tag == asn1.TagT61String: // in practice ISO 8859-1
			return wideText(v.Bytes, 1), true
		case v.Tag == asn1.TagBMPString && n%2 == 0:
			return wideText(v.Bytes, 2), true
		case v.Tag == tagUniversalString && n%4 == 0:
			return wideText(v.Bytes, 4), true
		}
	}
	return "", false
}

// wideText decodes characters of so many bytes each.
func wideText(b []byte, width int) string {
	runes := make([]rune, 0, len(b)/width)
	for ; len(b) >= width; b = b[width:] {
		var r rune
		for _, c := range b[:width] {
			r = r<<8 | rune(c)
		}
		runes = append(runes, r)
	}
	if width != 2 {
		return string(runes)
	}
	units := make([]uint16, len(runes))
	for i, r := range runes {
		units[i] = uint16(r)
	}
	return string(utf16.Decode(units))
}

// escapeValue appends a value with what has a meaning in a name, or cannot be
// printed, behind a backslash.
func escapeValue(b *strings.Builder, s string) {
	for i := range len(s) {
		c := s[i]
		switch {
		case c == ' ' && (i == 0 || i == len(s)-1), c == '#' && i == 0, strings.IndexByte(`"+,;<>\`, c) >= 0:
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= '~':
			fmt.Fprintf(b, "\\%02X", c)
		default:
			b.WriteByte(c)
		}
	}
}
