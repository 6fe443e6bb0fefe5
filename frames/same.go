package frames

import "bytes"

// SameValue compares field values as RabbitMQ 4.0 does when it compares
// declarations: by kind, not by width. I 5 is l 5 and a timestamp of 5, and a
// string is the bytes it has, but 5 is neither 5.0 nor "5".
func SameValue(a, b any) bool {
	if x, ok := numeric(a); ok {
		y, ok := numeric(b)
		return ok && x == y
	}
	if x, ok := text(a); ok {
		y, ok := text(b)
		return ok && x == y
	}
	switch x := a.(type) {
	case float32:
		return sameFloat(float64(x), b)
	case float64:
		return sameFloat(x, b)
	case Table, []any:
		// A table tells apart what its encoding tells apart.
		return bytes.Equal(encoded(a), encoded(b))
	}
	switch b.(type) {
	case []byte, Table, []any:
		return false
	}
	return a == b
}

// numeric is the value of an integer or a timestamp.
func numeric(v any) (int64, bool) {
	if t, ok := v.(Timestamp); ok {
		return int64(t), true
	}
	return Integer(v)
}

// text is a string, or bytes.
func text(v any) (string, bool) {
	if b, ok := v.([]byte); ok {
		return string(b), true
	}
	s, ok := v.(string)
	return s, ok
}

func sameFloat(a float64, b any) bool {
	switch b := b.(type) {
	case float32:
		return a == float64(b)
	case float64:
		return a == b
	}
	return false
}

func encoded(v any) []byte { return AppendTable(nil, Table{{Name: "v", Value: v}}) }
