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
// of different kinds are never equal. A void wants any value. A timestamp is an
// integer: of its seconds in the arguments, but of its milliseconds in a message,
// so that the same time is not equal.
type want struct {
	name string
	scalar
	nested any // a frames.Table or []any, if the kind is table or array
}

// A scalar is a value without parts. Equal values are equal scalars, but for
// NaN, which equals nothing.
type scalar struct {
	kind   kind
	scale  uint8  // of a decimal
	number uint64 // bits of a boolean, integer, float or decimal
	text   string // of a text or binary data
}

// A kind is a set of field types whose values can be equal.
type kind uint8

const (
	anything kind = iota // a void in the arguments
	void                 // a void in the message
	table
	array
	boolean // this and the following are scalars
	integer
	float
	decimal
	text
)

func (k kind) scalar() bool { return k >= boolean }

func boolScalar(b bool) scalar {
	if b {
		return scalar{kind: boolean, number: 1}
	}
	return scalar{kind: boolean}
}

func integerScalar(n int64) scalar { return scalar{kind: integer, number: uint64(n)} }

func floatScalar(f float64) scalar {
	if f == 0 {
		f = 0 // -0, too
	}
	return scalar{kind: float, number: math.Float64bits(f)}
}

func decimalScalar(d frames.Decimal) scalar {
	return scalar{kind: decimal, scale: d.Scale, number: uint64(d.Value)}
}

// newWant prepares an argument.
func newWant(name string, v any) want {
	if n, ok := frames.Integer(v); ok {
		return want{name: name, scalar: integerScalar(n)}
	}
	w := want{name: name}
	switch v := v.(type) {
	case bool:
		w.scalar = boolScalar(v)
	case float32:
		w.scalar = floatScalar(float64(v))
	case float64:
		w.scalar = floatScalar(v)
	case frames.Decimal:
		w.scalar = decimalScalar(v)
	case string:
		w.scalar = scalar{kind: text, text: v}
	case []byte:
		w.scalar = scalar{kind: text, text: string(v)}
	case frames.Table:
		w.kind, w.nested = table, v
	case []any:
		w.kind, w.nested = array, v
	case frames.Timestamp:
		w.scalar = integerScalar(int64(v))
	}
	return w
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
		return w.scalar == boolScalar(value[0] != 0)
	case integer:
		return w.number == uint64(decodeInteger(tag, value))
	case float:
		return math.Float64frombits(w.number) == decodeFloat(tag, value)
	case decimal:
		return w.scalar == decimalScalar(decodeDecimal(value))
	case text:
		return w.text == string(value)
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
	case 'S', 'x': // RabbitMQ 4.0 does not tell them apart
		return text
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

func decodeDecimal(b []byte) frames.Decimal {
	return frames.Decimal{Scale: b[0], Value: binary.BigEndian.Uint32(b[1:])}
}

// equalValues compares an argument's value with a message's inside of tables
// and arrays. The order of a table's fields does not count. A timestamp there is
// a kind of its own.
func equalValues(arg, v any) bool {
	if _, ok := v.(frames.Timestamp); ok {
		return arg == v
	}
	switch a := arg.(type) {
	case nil, frames.Timestamp:
		return arg == v
	case frames.Table:
		t, ok := v.(frames.Table)
		return ok && equalTables(a.Sorted(), t.Sorted())
	case []any:
		l, ok := v.([]any)
		return ok && equalArrays(a, l)
	}
	return newWant("", arg).scalar == newWant("", v).scalar
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
