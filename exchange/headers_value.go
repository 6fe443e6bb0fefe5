package exchange

import (
	"encoding/binary"
	"math"

	"github.com/leveretmq/leveret/frames"
)

// A want is one argument of a headers binding: the field of this name must be
// there, and be equal.
//
// RabbitMQ 4.0: integers of all widths are one kind, and so are floats; values
// of different kinds are never equal. A void wants any value. A timestamp of a
// message is the integer of its milliseconds, so one in the arguments, which is
// in seconds, is equal to none.
type want struct {
	name   string
	kind   kind
	number uint64 // bits of an integer, float, bool or decimal
	scale  uint8  // of a decimal
	text   string // of a string or binary
	nested any    // a frames.Table or []any
}

// A kind is a set of field types whose values can be equal.
type kind uint8

const (
	anything kind = iota // a void in the arguments
	nothing              // a timestamp in the arguments
	void                 // a void in the message
	boolean
	integer
	float
	decimal
	text
	binaryData
	table
	array
)

func newWant(name string, v any) want {
	w := wantOf(v)
	w.name = name
	return w
}

func wantOf(v any) want {
	if n, ok := frames.Integer(v); ok {
		return want{kind: integer, number: uint64(n)}
	}
	switch v := v.(type) {
	case bool:
		if v {
			return want{kind: boolean, number: 1}
		}
		return want{kind: boolean}
	case float32:
		return want{kind: float, number: math.Float64bits(float64(v))}
	case float64:
		return want{kind: float, number: math.Float64bits(v)}
	case frames.Decimal:
		return want{kind: decimal, number: uint64(v.Value), scale: v.Scale}
	case string:
		return want{kind: text, text: v}
	case []byte:
		return want{kind: binaryData, text: string(v)}
	case frames.Table:
		return want{kind: table, nested: v}
	case []any:
		return want{kind: array, nested: v}
	case frames.Timestamp:
		return want{kind: nothing}
	}
	return want{kind: anything}
}

// meets compares with an encoded value as frames.FindField returns it.
func (w *want) meets(tag byte, value []byte) bool {
	if w.kind == anything {
		return true
	}
	if w.kind != kindOf(tag) {
		return false
	}
	switch w.kind {
	case boolean:
		return (value[0] != 0) == (w.number != 0)
	case integer:
		return decodeInteger(tag, value) == int64(w.number)
	case float:
		return decodeFloat(tag, value) == math.Float64frombits(w.number)
	case decimal:
		return value[0] == w.scale && uint64(binary.BigEndian.Uint32(value[1:])) == w.number
	case text, binaryData:
		return string(value) == w.text
	case table, array:
		v, err := frames.DecodeField(tag, value)
		return err == nil && equalValues(w.nested, v)
	}
	return false
}

// kindOf is the kind of an encoded value.
func kindOf(tag byte) kind {
	switch tag {
	case 't':
		return boolean
	case 'b', 'B', 's', 'u', 'I', 'i', 'l', 'L', 'T':
		return integer
	case 'f', 'd':
		return float
	case 'D':
		return decimal
	case 'S':
		return text
	case 'x':
		return binaryData
	case 'F':
		return table
	case 'A':
		return array
	}
	return void
}

// decodeInteger decodes a value of kind integer.
func decodeInteger(tag byte, b []byte) int64 {
	switch tag {
	case 'b':
		return int64(int8(b[0]))
	case 'B':
		return int64(b[0])
	case 's':
		return int64(int16(binary.BigEndian.Uint16(b)))
	case 'u':
		return int64(binary.BigEndian.Uint16(b))
	case 'I':
		return int64(int32(binary.BigEndian.Uint32(b)))
	case 'i':
		return int64(binary.BigEndian.Uint32(b))
	case 'T':
		return int64(binary.BigEndian.Uint64(b) * 1000)
	}
	return int64(binary.BigEndian.Uint64(b)) // 'l', 'L'
}

// decodeFloat decodes a value of kind float.
func decodeFloat(tag byte, b []byte) float64 {
	if tag == 'f' {
		return float64(math.Float32frombits(binary.BigEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.BigEndian.Uint64(b))
}

// equalValues compares an argument's value with a message's inside of tables
// and arrays. The order of a table's fields does not count.
func equalValues(arg, v any) bool {
	switch a := arg.(type) {
	case nil:
		return v == nil
	case frames.Table:
		t, ok := v.(frames.Table)
		return ok && equalTables(a.Sorted(), t.Sorted())
	case []any:
		l, ok := v.([]any)
		return ok && equalArrays(a, l)
	case frames.Timestamp:
		return arg == v
	}
	x, y := wantOf(arg), wantOf(v)
	return x.kind == y.kind && x.number == y.number && x.scale == y.scale && x.text == y.text
}

func equalTables(a, b frames.Table) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name || !equalValues(a[i].Value, b[i].Value) {
			return false
		}
	}
	return true
}

func equalArrays(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !equalValues(a[i], b[i]) {
			return false
		}
	}
	return true
}
