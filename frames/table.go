package frames

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
)

// A Table is a field table, in the order of the wire. Values have the Go types
// that follow, by RabbitMQ's type letters:
//
//	t bool       b int8     B uint8    s int16   u uint16   I int32   i uint32
//	l, L int64   f float32  d float64  D Decimal S string   x []byte
//	T Timestamp  F Table    A []any    V nil
//
// L is read as l and so written as l (RabbitMQ 4.0).
type Table []Field

// A Field is one name and value of a Table.
type Field struct {
	Name  string
	Value any
}

// A Decimal is value / 10^scale.
type Decimal struct {
	Scale uint8
	Value uint32
}

// A Timestamp counts seconds since the Unix epoch.
type Timestamp uint64

// maxNesting is how deep tables and arrays may nest. RabbitMQ has no limit;
// without one a frame of brackets would be a stack of thousands of calls.
const maxNesting = 128

// Lookup returns the value of the first field of this name.
func (t Table) Lookup(name string) (any, bool) {
	for i := range t {
		if t[i].Name == name {
			return t[i].Value, true
		}
	}
	return nil, false
}

// Set replaces the first field of this name or appends one.
func (t Table) Set(name string, v any) Table {
	for i := range t {
		if t[i].Name == name {
			t[i].Value = v
			return t
		}
	}
	return append(t, Field{name, v})
}

// Without returns the table without the fields of this name; it shares nothing
// with t that is written to.
func (t Table) Without(name string) Table {
	return slices.DeleteFunc(slices.Clone(t), func(f Field) bool { return f.Name == name })
}

// Sorted returns a copy in order of name with only the first field of each
// name: how RabbitMQ sends a table that it has changed.
func (t Table) Sorted() Table {
	s := slices.Clone(t)
	slices.SortStableFunc(s, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(s, func(a, b Field) bool { return a.Name == b.Name })
}

// CheckNumbers returns a hard error if a floating-point number in the table is not
// finite: definitions, which are JSON, could not say what it is. RabbitMQ 4.0 has no
// such numbers; it drops the connection.
func (t Table) CheckNumbers() error {
	for i := range t {
		if !finite(t[i].Value) {
			return Unboundf(SyntaxError, "field '%s' of a field table is or has a number that is not finite", t[i].Name)
		}
	}
	return nil
}

// finite says whether all floating-point numbers of a field value are finite.
func finite(v any) bool {
	switch v := v.(type) {
	case float32:
		return finite(float64(v))
	case float64:
		return !math.IsNaN(v) && !math.IsInf(v, 0)
	case Table:
		return !slices.ContainsFunc(v, func(f Field) bool { return !finite(f.Value) })
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !finite(e) })
	}
	return true
}

// ParseTable decodes a table's contents, without its length prefix. The values
// own their memory.
func ParseTable(b []byte) (Table, error) { return parseTable(b, 0) }

func parseTable(b []byte, depth int) (Table, error) {
	if depth > maxNesting {
		return nil, errNesting
	}
	var t Table
	for len(b) > 0 {
		n := int(b[0])
		if len(b) < 1+n {
			return nil, errShortTable
		}
		name := string(b[1 : 1+n])
		v, rest, err := parseValue(b[1+n:], depth)
		if err != nil {
			return nil, err
		}
		t = append(t, Field{name, v})
		b = rest
	}
	return t, nil
}

var (
	errShortTable = Unboundf(SyntaxError, "a field table ends in the middle of a field")
	errNesting    = Unboundf(SyntaxError, "a field table is nested more than %d deep", maxNesting)
)

func errFieldType(tag byte) *Error {
	return Unboundf(SyntaxError, "unknown field table type %q", rune(tag))
}

// valueSize returns how many bytes the value with this tag takes at the start
// of b, after the tag.
func valueSize(tag byte, b []byte) (int, error) {
	var n int
	switch tag {
	case 't', 'b', 'B':
		n = 1
	case 's', 'u':
		n = 2
	case 'I', 'i', 'f':
		n = 4
	case 'l', 'L', 'd', 'T':
		n = 8
	case 'D':
		n = 5
	case 'V':
	case 'S', 'x', 'F', 'A':
		if len(b) < 4 {
			return 0, errShortTable
		}
		size := binary.BigEndian.Uint32(b)
		if uint64(size) > uint64(len(b)-4) {
			return 0, errShortTable
		}
		n = 4 + int(size)
	default:
		return 0, errFieldType(tag)
	}
	if len(b) < n {
		return 0, errShortTable
	}
	return n, nil
}

func parseValue(b []byte, depth int) (v any, rest []byte, err error) {
	if len(b) == 0 {
		return nil, nil, errShortTable
	}
	tag := b[0]
	n, err := valueSize(tag, b[1:])
	if err != nil {
		return nil, nil, err
	}
	v, err = decodeValue(tag, b[1:1+n], depth)
	return v, b[1+n:], err
}

// decodeValue decodes a value whose size was checked.
func decodeValue(tag byte, b []byte, depth int) (any, error) {
	switch tag {
	case 't':
		return b[0] != 0, nil
	case 'b':
		return int8(b[0]), nil
	case 'B':
		return b[0], nil
	case 's':
		return int16(binary.BigEndian.Uint16(b)), nil
	case 'u':
		return binary.BigEndian.Uint16(b), nil
	case 'I':
		return int32(binary.BigEndian.Uint32(b)), nil
	case 'i':
		return binary.BigEndian.Uint32(b), nil
	case 'l', 'L':
		return int64(binary.BigEndian.Uint64(b)), nil
	case 'f':
		return math.Float32frombits(binary.BigEndian.Uint32(b)), nil
	case 'd':
		return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
	case 'T':
		return Timestamp(binary.BigEndian.Uint64(b)), nil
	case 'D':
		return Decimal{b[0], binary.BigEndian.Uint32(b[1:])}, nil
	case 'S':
		return string(b[4:]), nil
	case 'x':
		return slices.Clone(b[4:]), nil
	case 'F':
		t, err := parseTable(b[4:], depth+1)
		return t, err
	case 'A':
		return parseArray(b[4:], depth+1)
	}
	return nil, nil // 'V'; others were refused by valueSize
}

func parseArray(b []byte, depth int) (any, error) {
	if depth > maxNesting {
		return nil, errNesting
	}
	list := []any{}
	for len(b) > 0 {
		v, rest, err := parseValue(b, depth)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		b = rest
	}
	return list, nil
}

// AppendTable appends the table with its length prefix.
func AppendTable(dst []byte, t Table) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for i := range t {
		dst = appendShort(dst, t[i].Name)
		dst = appendValue(dst, t[i].Value)
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}

// appendValue appends a value with its tag. A Go type that stands for no field
// type is a bug of ours and becomes a void.
func appendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		if v {
			return append(dst, 't', 1)
		}
		return append(dst, 't', 0)
	case int8:
		return append(dst, 'b', byte(v))
	case uint8:
		return append(dst, 'B', v)
	case int16:
		return binary.BigEndian.AppendUint16(append(dst, 's'), uint16(v))
	case uint16:
		return binary.BigEndian.AppendUint16(append(dst, 'u'), v)
	case int32:
		return binary.BigEndian.AppendUint32(append(dst, 'I'), uint32(v))
	case uint32:
		return binary.BigEndian.AppendUint32(append(dst, 'i'), v)
	case int64:
		return binary.BigEndian.AppendUint64(append(dst, 'l'), uint64(v))
	case float32:
		return binary.BigEndian.AppendUint32(append(dst, 'f'), math.Float32bits(v))
	case float64:
		return binary.BigEndian.AppendUint64(append(dst, 'd'), math.Float64bits(v))
	case Timestamp:
		return binary.BigEndian.AppendUint64(append(dst, 'T'), uint64(v))
	case Decimal:
		return binary.BigEndian.AppendUint32(append(dst, 'D', v.Scale), v.Value)
	case string:
		dst = binary.BigEndian.AppendUint32(append(dst, 'S'), uint32(len(v)))
		return append(dst, v...)
	case []byte:
		dst = binary.BigEndian.AppendUint32(append(dst, 'x'), uint32(len(v)))
		return append(dst, v...)
	case Table:
		return AppendTable(append(dst, 'F'), v)
	case []any:
		return appendArray(append(dst, 'A'), v)
	}
	return append(dst, 'V')
}

func appendArray(dst []byte, list []any) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for _, v := range list {
		dst = appendValue(dst, v)
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}

// CheckTable says whether b is a well-formed table, without decoding it.
func CheckTable(b []byte) error { return checkTable(b, 0) }

func checkTable(b []byte, depth int) error {
	for len(b) > 0 {
		n := int(b[0])
		if len(b) < 2+n {
			return errShortTable
		}
		rest, err := checkValue(b[1+n:], depth)
		if err != nil {
			return err
		}
		b = rest
	}
	return nil
}

func checkValue(b []byte, depth int) (rest []byte, err error) {
	if len(b) == 0 {
		return nil, errShortTable
	}
	tag := b[0]
	n, err := valueSize(tag, b[1:])
	if err != nil {
		return nil, err
	}
	v := b[1 : 1+n]
	switch {
	case tag != 'F' && tag != 'A':
	case depth == maxNesting:
		return nil, errNesting
	case tag == 'F':
		err = checkTable(v[4:], depth+1)
	default:
		for list := v[4:]; len(list) > 0 && err == nil; {
			list, err = checkValue(list, depth+1)
		}
	}
	return b[1+n:], err
}

// Irregular says whether RabbitMQ 4.0 sends a well-formed table with other
// fields than it came with: it keeps the first of each name, and a value of type
// L becomes one of type l, also in tables and arrays within.
func Irregular(b []byte) bool {
	var few [16][]byte
	names := few[:0]
	for len(b) > 0 {
		n := int(b[0])
		tag := b[1+n]
		size, err := valueSize(tag, b[2+n:])
		if err != nil {
			return false
		}
		if len(names) == cap(few[:]) {
			return unsignedField(b) || manyDuplicates(names, b)
		}
		if hasUnsigned(tag, b[2+n:2+n+size]) {
			return true
		}
		name := b[1 : 1+n]
		for _, other := range names {
			if string(other) == string(name) {
				return true
			}
		}
		names = append(names, name)
		b = b[2+n+size:]
	}
	return false
}

// hasUnsigned says whether a well-formed value has the type L, or one within it.
func hasUnsigned(tag byte, v []byte) bool {
	switch tag {
	case 'L':
		return true
	case 'F':
		return unsignedField(v[4:])
	case 'A':
		for list := v[4:]; len(list) > 0; {
			size, err := valueSize(list[0], list[1:])
			if err != nil || hasUnsigned(list[0], list[1:1+size]) {
				return err == nil
			}
			list = list[1+size:]
		}
	}
	return false
}

// unsignedField is hasUnsigned for the fields of a table.
func unsignedField(b []byte) bool {
	for len(b) > 0 {
		n := int(b[0])
		size, err := valueSize(b[1+n], b[2+n:])
		if err != nil || hasUnsigned(b[1+n], b[2+n:2+n+size]) {
			return err == nil
		}
		b = b[2+n+size:]
	}
	return false
}

// manyDuplicates goes on where comparing each name with all others would be
// slow.
func manyDuplicates(names [][]byte, rest []byte) bool {
	seen := make(map[string]bool, 2*len(names))
	for _, n := range names {
		seen[string(n)] = true
	}
	t, err := ParseTable(rest)
	if err != nil {
		return false
	}
	for _, f := range t {
		if seen[f.Name] {
			return true
		}
		seen[f.Name] = true
	}
	return false
}

// Unique returns the table with only the first field of each name.
func (t Table) Unique() Table {
	seen := make(map[string]bool, len(t))
	return slices.DeleteFunc(slices.Clone(t), func(f Field) bool {
		again := seen[f.Name]
		seen[f.Name] = true
		return again
	})
}

// FindField returns the encoded value of the first field of this name in a
// well-formed table: its type letter and the bytes after it (for S, x, F and A
// without the length prefix). They alias b.
func FindField(b []byte, name string) (tag byte, value []byte, ok bool) {
	for len(b) > 0 {
		n := int(b[0])
		if len(b) < 2+n {
			return 0, nil, false
		}
		tag = b[1+n]
		size, err := valueSize(tag, b[2+n:])
		if err != nil {
			return 0, nil, false
		}
		if string(b[1:1+n]) == name {
			value = b[2+n : 2+n+size]
			if tag == 'S' || tag == 'x' || tag == 'F' || tag == 'A' {
				value = value[4:]
			}
			return tag, value, true
		}
		b = b[2+n+size:]
	}
	return 0, nil, false
}

// DecodeField decodes what FindField returned. The value owns its memory.
func DecodeField(tag byte, value []byte) (any, error) {
	switch tag {
	case 'S':
		return string(value), nil
	case 'x':
		return slices.Clone(value), nil
	case 'F':
		t, err := parseTable(value, 1)
		return t, err
	case 'A':
		return parseArray(value, 1)
	}
	return decodeValue(tag, value, 0)
}

// TypeName is what RabbitMQ calls the type of a field value in error texts.
func TypeName(v any) string {
	switch v.(type) {
	case bool:
		return "bool"
	case int8:
		return "byte"
	case uint8:
		return "unsignedbyte"
	case int16:
		return "short"
	case uint16:
		return "unsignedshort"
	case int32:
		return "signedint"
	case uint32:
		return "unsignedint"
	case int64:
		return "long"
	case float32:
		return "float"
	case float64:
		return "double"
	case Timestamp:
		return "timestamp"
	case Decimal:
		return "decimal"
	case string:
		return "longstr"
	case []byte:
		return "binary"
	case Table:
		return "table"
	case []any:
		return "array"
	}
	return "void"
}

// Integer returns the value of any of the integer types.
func Integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int8:
		return int64(v), true
	case uint8:
		return int64(v), true
	case int16:
		return int64(v), true
	case uint16:
		return int64(v), true
	case int32:
		return int64(v), true
	case uint32:
		return int64(v), true
	case int64:
		return v, true
	}
	return 0, false
}
