package frames

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Term prints a field value as the Erlang term that RabbitMQ 4.0 shows in error
// texts.
func Term(v any) string {
	if n, ok := Integer(v); ok {
		return strconv.FormatInt(n, 10)
	}
	switch v := v.(type) {
	case string:
		return BinaryTerm(v)
	case []byte:
		return BinaryTerm(string(v))
	case float32:
		return FloatTerm(float64(v))
	case float64:
		return FloatTerm(v)
	case Timestamp:
		return strconv.FormatUint(uint64(v), 10)
	case Decimal:
		return fmt.Sprintf("{%d,%d}", v.Scale, v.Value)
	case nil:
		return "undefined"
	case Table:
		return ListTerm(len(v), func(i int) string {
			return "{" + BinaryTerm(v[i].Name) + "," + TypeName(v[i].Value) + "," + Term(v[i].Value) + "}"
		})
	case []any:
		return ListTerm(len(v), func(i int) string { return "{" + TypeName(v[i]) + "," + Term(v[i]) + "}" })
	}
	return fmt.Sprint(v) // true and false
}

// PlainTerm prints a string as it is and all other values as Term does.
func PlainTerm(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return Term(v)
}

// BinaryTerm prints a string as an Erlang binary.
func BinaryTerm(s string) string {
	if !utf8.ValidString(s) || isASCII(s) {
		return ErlangBinary([]byte(s))
	}
	return `<<"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"/utf8>>`
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// FloatTerm prints a float as Erlang does, the shorter of 100.0 and 1.0e3.
func FloatTerm(f float64) string {
	text := strconv.FormatFloat(f, 'e', -1, 64) // -1.25e+03
	mantissa, exponent, ok := strings.Cut(text, "e")
	if !ok { // no number
		return text
	}
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	exp, _ := strconv.Atoi(exponent) // as FormatFloat wrote it
	scientific := mantissa + "e" + strconv.Itoa(exp)
	decimal := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(decimal, ".") {
		decimal += ".0"
	}
	if len(decimal) <= len(scientific) {
		return decimal
	}
	return scientific
}

// ListTerm prints a list of n items.
func ListTerm(n int, item func(i int) string) string {
	var s strings.Builder
	s.WriteByte('[')
	for i := range n {
		if i > 0 {
			s.WriteByte(',')
		}
		s.WriteString(item(i))
	}
	s.WriteByte(']')
	return s.String()
}
