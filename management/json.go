package management

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/leveretmq/leveret/frames"
)

// An object is a JSON object whose members keep their order. Lists of queues
// have tens of thousands of them, so they are no maps.
type object []member

type member struct {
	name  string
	value any
}

// add appends a member; the name must be new.
func (o *object) add(name string, value any) { *o = append(*o, member{name, value}) }

// get returns the member at a dotted path.
func (o object) get(path string) (any, bool) {
	name, rest, deeper := strings.Cut(path, ".")
	for _, m := range o {
		if m.name != name {
			continue
		}
		if !deeper {
			return m.value, true
		}
		inner, _ := asObject(m.value)
		return inner.get(rest)
	}
	return nil, false
}

// asObject lets columns and sort keys reach into arguments, too.
func asObject(v any) (object, bool) {
	switch v := v.(type) {
	case object:
		return v, true
	case rateOnly:
		return object{{"rate", rate(v)}}, true
	case frames.Table:
		o := make(object, len(v))
		for i, f := range v {
			o[i] = member{f.Name, f.Value}
		}
		return o, true
	case map[string]any:
		o := make(object, 0, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			o.add(name, v[name])
		}
		return o, true
	}
	return nil, false
}

// MarshalJSON lets encoding/json take objects inside of other values.
func (o object) MarshalJSON() ([]byte, error) { return appendJSON(nil, o), nil }

// A rate is a number per second; it is always written as a float.
type rate float64

// A rateOnly is the object whose one member is a rate. Lists have ten of them for
// each queue, most of them 0, which then take no memory.
type rateOnly float64

// noMembers is the empty object, for what most queues have none of; immutable.
var noMembers any = object{}

// appendJSON appends a value as JSON. Field tables become objects, and bytes
// that are no UTF-8 base64 (RabbitMQ 4.0).
func appendJSON(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case string:
		return appendText(dst, v)
	case bool:
		return strconv.AppendBool(dst, v)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case uint64:
		return strconv.AppendUint(dst, v, 10)
	case frames.Timestamp:
		return strconv.AppendUint(dst, uint64(v), 10)
	case float64:
		return appendFloat(dst, v)
	case rate:
		return appendRate(dst, float64(v))
	case rateOnly:
		return append(appendRate(append(dst, `{"rate":`...), float64(v)), '}')
	case object:
		return appendObject(dst, v)
	case []object:
		return appendArray(dst, v)
	case []string:
		return appendArray(dst, v)
	case []any:
		return appendArray(dst, v)
	case frames.Table:
		return appendTable(dst, v)
	case []byte:
		return appendText(dst, string(v))
	case frames.Decimal:
		return appendFloat(dst, float64(v.Value)/math.Pow10(int(v.Scale)))
	case float32:
		return appendFloat(dst, float64(v))
	case json.RawMessage:
		return append(dst, v...)
	}
	if n, ok := frames.Integer(v); ok {
		return strconv.AppendInt(dst, n, 10)
	}
	return appendOther(dst, v)
}

// appendOther is for what only small answers have: decoded JSON, structs.
func appendOther(dst []byte, v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return append(dst, "null"...) // a type of ours that is no JSON: a bug
	}
	return append(dst, bytes.TrimRight(b.Bytes(), "\n")...)
}

func appendObject(dst []byte, o object) []byte {
	dst = append(dst, '{')
	for i, m := range o {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, m.name)
		dst = append(dst, ':')
		dst = appendJSON(dst, m.value)
	}
	return append(dst, '}')
}

func appendArray[T any](dst []byte, list []T) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSON(dst, v)
	}
	return append(dst, ']')
}

func appendTable(dst []byte, t frames.Table) []byte {
	dst = append(dst, '{')
	for i, f := range t.Unique() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(dst, f.Name)
		dst = append(dst, ':')
		dst = appendField(dst, f.Value)
	}
	return append(dst, '}')
}

// appendField appends a value of a field table. A double has a point or an exponent,
// so that it is one when it is read back: it never equals an integer (RabbitMQ 4.0).
func appendField(dst []byte, v any) []byte {
	switch v := v.(type) {
	case float64:
		return appendDouble(dst, v)
	case float32:
		return appendDouble(dst, float64(v))
	case []any:
		dst = append(dst, '[')
		for i := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendField(dst, v[i])
		}
		return append(dst, ']')
	}
	return appendJSON(dst, v)
}

func appendDouble(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'g', -1, 64)
	if !bytes.ContainsAny(dst[start:], ".e") {
		dst = append(dst, ".0"...)
	}
	return dst
}

// appendFloat appends an integral number without a point. JSON has neither NaN
// nor infinities.
func appendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return append(dst, "null"...)
	case f == math.Trunc(f) && math.Abs(f) < 1<<53:
		return strconv.AppendInt(dst, int64(f), 10)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

func appendRate(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		f = 0
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if bytes.IndexByte(dst[start:], '.') < 0 {
		dst = append(dst, ".0"...)
	}
	return dst
}

// appendText appends what a client gave as a string, with RabbitMQ 4.0's words if
// that is no text.
func appendText(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = "Not UTF-8, base64 is: " + base64.StdEncoding.EncodeToString([]byte(s))
	}
	return appendString(dst, s)
}

// appendString appends a string that is UTF-8.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		default:
			const hex = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}
