package frames

import (
	"fmt"
	"math"
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
	if s, ok := text(v); ok {
		return asUTF8(s)
	}
	return Term(v)
}

// QuotedTerm is PlainTerm in quotes, and none for a void: so RabbitMQ 4.0 shows the
// two values of an argument that differ.
func QuotedTerm(v any) string {
	if v == nil {
		return "none"
	}
	return "'" + PlainTerm(v) + "'"
}

// BinaryTerm prints a string as an Erlang binary: <<"abc">> when it can be
// printed, else <<1,2,3>>. What is no UTF-8 is taken for Latin-1.
func BinaryTerm(s string) string {
	text := asUTF8(s)
	switch {
	case s == "" || !printable(text, utf8.MaxRune):
		return "<<" + numbers([]byte(s)) + ">>"
	case text == s && !isASCII(s):
		return "<<" + quote(s) + "/utf8>>"
	}
	return "<<" + quote(text) + ">>"
}

// StringTerm prints a string as an Erlang list of characters: "abc" when all of
// them are Latin-1 and can be printed, else [1,2,3].
func StringTerm(s string) string {
	text := asUTF8(s)
	if s == "" || !printable(text, maxLatin1) {
		return "[" + numbers([]rune(text)) + "]"
	}
	return quote(text)
}

const maxLatin1 = 0xff

// asUTF8 is the string itself, or what its bytes are as Latin-1.
func asUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return Latin1(s)
}

// Latin1 is a string that has each byte of s as a character.
func Latin1(s string) string {
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

// escape is how Erlang prints a character that it escapes; else "".
func escape(c rune) string {
	switch c {
	case '\b':
		return `\b`
	case '\t':
		return `\t`
	case '\n':
		return `\n`
	case '\v':
		return `\v`
	case '\f':
		return `\f`
	case '\r':
		return `\r`
	case 0x1b:
		return `\e`
	case '"', '\\':
		return `\` + string(c)
	}
	return ""
}

// printable says whether Erlang prints all characters as such; none may be above limit.
func printable(s string, limit rune) bool {
	for _, c := range s {
		switch {
		case c > limit, c == 0xfffe, c == 0xffff, 0x7f <= c && c < 0xa0:
			return false
		case c < ' ' && escape(c) == "":
			return false
		}
	}
	return true
}

func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		if e := escape(c); e != "" {
			b.WriteString(e)
			continue
		}
		b.WriteRune(c)
	}
	b.WriteByte('"')
	return b.String()
}

// numbers prints items with commas between them.
func numbers[T byte | rune](items []T) string {
	var b strings.Builder
	for i, n := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(n)))
	}
	return b.String()
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// FloatTerm prints a float as Erlang does: the shorter of 100.0 and 1.0e3, and
// with an exponent what is so large that not all integers of its size are floats.
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
	if math.Abs(f) < 1<<53 && len(decimal) <= len(scientific) {
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
