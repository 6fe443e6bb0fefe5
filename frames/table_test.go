package frames

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// fieldVectors has a value of every type, without name.
var fieldVectors = []struct {
	v    any
	wire string
}{
	{true, "t\x01"},
	{false, "t\x00"},
	{int8(-2), "b\xfe"},
	{uint8(254), "B\xfe"},
	{int16(-2), "s\xff\xfe"},
	{uint16(65534), "u\xff\xfe"},
	{int32(-2), "I\xff\xff\xff\xfe"},
	{uint32(4294967294), "i\xff\xff\xff\xfe"},
	{int64(-2), "l\xff\xff\xff\xff\xff\xff\xff\xfe"},
	{float32(-1.5), "f\xbf\xc0\x00\x00"},
	{-1.5, "d\xbf\xf8\x00\x00\x00\x00\x00\x00"},
	{Decimal{2, 314}, "D\x02\x00\x00\x01\x3a"},
	{"", "S\x00\x00\x00\x00"},
	{"a\xff", "S\x00\x00\x00\x02a\xff"}, // need not be UTF-8
	{[]byte{0, 1}, "x\x00\x00\x00\x02\x00\x01"},
	{Timestamp(1 << 40), "T\x00\x00\x01\x00\x00\x00\x00\x00"},
	{Table{{"k", int8(1)}, {"", nil}}, "F\x00\x00\x00\x06\x01kb\x01\x00V"},
	{Table(nil), "F\x00\x00\x00\x00"},
	{[]any{int8(1), "x", []any{}}, "A\x00\x00\x00\x0d" + "b\x01" + "S\x00\x00\x00\x01x" + "A\x00\x00\x00\x00"},
	{[]any{}, "A\x00\x00\x00\x00"},
	{nil, "V"},
}

func TestFieldTypes(t *testing.T) {
	for _, tt := range fieldVectors {
		wire := "\x04name" + tt.wire
		got, err := ParseTable([]byte(wire))
		if want := (Table{{"name", tt.v}}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %#v, %v, want %#v", wire, got, err, want)
		}
		if err := CheckTable([]byte(wire)); err != nil {
			t.Errorf("%q: %v", wire, err)
		}
		encoded := AppendTable([]byte("x"), Table{{"name", tt.v}})
		if want := "x\x00\x00\x00" + string(rune(len(wire))) + wire; string(encoded) != want {
			t.Errorf("%#v: %q, want %q", tt.v, encoded, want)
		}
		tag, value, ok := FindField([]byte("\x01at\x01"+wire+"\x01zV"), "name")
		v, err := DecodeField(tag, value)
		if !ok || tag != tt.wire[0] || err != nil || !reflect.DeepEqual(v, tt.v) {
			t.Errorf("%q: FindField gives %c %q %v, which is %#v, %v", wire, tag, value, ok, v, err)
		}
		for i := 1; i < len(wire); i++ { // what is cut short is refused
			_, err := ParseTable([]byte(wire[:i]))
			wantReply(t, err, "SYNTAX_ERROR - a field table ends in the middle of a field")
			wantReply(t, CheckTable([]byte(wire[:i])), "SYNTAX_ERROR - a field table ends in the middle of a field")
		}
	}
}

func TestFieldTypesThatAreReadDifferently(t *testing.T) {
	for _, tt := range []struct {
		in   string
		v    any
		wire string
	}{
		{"L\xff\xff\xff\xff\xff\xff\xff\xfe", int64(-2), "l\xff\xff\xff\xff\xff\xff\xff\xfe"},
		{"t\x07", true, "t\x01"},
	} {
		got, err := ParseTable([]byte("\x01k" + tt.in))
		if err != nil || !reflect.DeepEqual(got, Table{{"k", tt.v}}) {
			t.Errorf("%q: %#v, %v", tt.in, got, err)
		}
		if encoded := string(AppendTable(nil, got)[4:]); encoded != "\x01k"+tt.wire {
			t.Errorf("%q became %q, want %q", tt.in, encoded, tt.wire)
		}
	}
	if got := AppendTable(nil, Table{{"k", struct{}{}}}); string(got) != "\x00\x00\x00\x03\x01kV" {
		t.Errorf("a Go type that is no field type: %q", got)
	}
}

func TestFloatsKeepTheirBits(t *testing.T) {
	for _, wire := range []string{"\x01kd\x7f\xf0\x00\x00\x00\x00\x00\x01", "\x01kd\xff\xf8\x00\x00\x00\x00\x00\x07", "\x01kf\x7f\x80\x00\x01"} {
		got, err := ParseTable([]byte(wire))
		if encoded := string(AppendTable(nil, got)[4:]); err != nil || encoded != wire {
			t.Errorf("%q became %q, %v", wire, encoded, err)
		}
	}
}

func TestTablesThatAreRefused(t *testing.T) {
	const short = "SYNTAX_ERROR - a field table ends in the middle of a field"
	for wire, want := range map[string]string{
		"\x01kz":                             "SYNTAX_ERROR - unknown field table type 'z'",
		"\x01k\x00":                          `SYNTAX_ERROR - unknown field table type '\x00'`,
		"\x01kS\xff\xff\xff\xffx":            short,
		"\x05abc":                            short,
		"\x00":                               short,
		"\x01kF\x00\x00\x00\x03\x01az":       "SYNTAX_ERROR - unknown field table type 'z'",
		"\x01kF\x00\x00\x00\x01\x05V":        short,
		"\x01kA\x00\x00\x00\x03t\x01z":       "SYNTAX_ERROR - unknown field table type 'z'",
		"\x01kA\x00\x00\x00\x01t\x01":        short, // the octet is outside
		"\x01kV\x01kA\x00\x00\x00\x02I\x00V": short,
	} {
		table, err := ParseTable([]byte(wire))
		wantReply(t, err, want)
		wantReply(t, CheckTable([]byte(wire)), want)
		if table != nil {
			t.Errorf("%q: %+v", wire, table)
		}
	}
}

// nested is a table with n tables or arrays, as tag says, inside each other.
func nested(tag byte, n int) []byte {
	var v any
	for range n {
		if tag == 'F' {
			inner := Table{{"k", v}}
			if v == nil {
				inner = nil
			}
			v = inner
			continue
		}
		if v == nil {
			v = []any{}
			continue
		}
		v = []any{v}
	}
	return AppendTable(nil, Table{{"k", v}})[4:]
}

func TestNestingIsLimited(t *testing.T) {
	const tooDeep = "SYNTAX_ERROR - a field table is nested more than 128 deep"
	for _, tag := range []byte{'F', 'A'} {
		if _, err := ParseTable(nested(tag, 128)); err != nil {
			t.Errorf("128 %c: %v", tag, err)
		}
		if err := CheckTable(nested(tag, 128)); err != nil {
			t.Errorf("128 %c: %v", tag, err)
		}
		_, err := ParseTable(nested(tag, 129))
		wantReply(t, err, tooDeep)
		wantReply(t, CheckTable(nested(tag, 129)), tooDeep)
		found, value, _ := FindField(nested(tag, 129), "k")
		_, err = DecodeField(found, value)
		wantReply(t, err, tooDeep)
	}
}

func TestFindField(t *testing.T) {
	b := []byte("\x01at\x01" + "\x02abS\x00\x00\x00\x02xy" + "\x01ab\x05" + "\x01zV")
	for _, tt := range []struct {
		name  string
		tag   byte
		value string
		ok    bool
	}{
		{"a", 't', "\x01", true}, // the first of two
		{"ab", 'S', "xy", true},
		{"z", 'V', "", true},
		{"", 0, "", false},
		{"abc", 0, "", false},
	} {
		tag, value, ok := FindField(b, tt.name)
		if tag != tt.tag || string(value) != tt.value || ok != tt.ok {
			t.Errorf("%q: %c %q %v, want %c %q %v", tt.name, tag, value, ok, tt.tag, tt.value, tt.ok)
		}
	}
	for _, malformed := range []string{"\x05a", "\x01az", "\x01aS\x00\x00\x00\x09", "\x01a"} {
		if tag, value, ok := FindField([]byte(malformed), "a"); ok || tag != 0 || value != nil {
			t.Errorf("%q: %c %q", malformed, tag, value)
		}
	}
}

func TestDecodedValuesOwnTheirMemory(t *testing.T) {
	b := []byte("\x01aS\x00\x00\x00\x01x" + "\x01bx\x00\x00\x00\x01y")
	table, err := ParseTable(b)
	if err != nil {
		t.Fatal(err)
	}
	_, value, _ := FindField(b, "b")
	v, _ := DecodeField('x', value)
	clear(b)
	if want := (Table{{"a", "x"}, {"b", []byte("y")}}); !reflect.DeepEqual(table, want) || string(v.([]byte)) != "y" {
		t.Errorf("table is %+v, field %q", table, v)
	}
}

func TestTableOperations(t *testing.T) {
	table := Table{{"b", 1}, {"a", 2}, {"b", 3}}
	if v, ok := table.Lookup("b"); v != 1 || !ok {
		t.Errorf("b is %v, %v, want the first", v, ok)
	}
	if v, ok := table.Lookup("c"); v != nil || ok {
		t.Errorf("c is %v, %v", v, ok)
	}
	if got, want := table.Sorted(), (Table{{"a", 2}, {"b", 1}}); !slices.Equal(got, want) {
		t.Errorf("sorted: %v, want %v", got, want)
	}
	if got, want := table.Without("b"), (Table{{"a", 2}}); !slices.Equal(got, want) {
		t.Errorf("without b: %v, want %v", got, want)
	}
	if want := (Table{{"b", 1}, {"a", 2}, {"b", 3}}); !slices.Equal(table, want) {
		t.Errorf("the table itself became %v", table)
	}
	if got, want := table.Set("b", 9).Set("c", 4), (Table{{"b", 9}, {"a", 2}, {"b", 3}, {"c", 4}}); !slices.Equal(got, want) {
		t.Errorf("set: %v, want %v", got, want)
	}
}

func TestTypeNameAndInteger(t *testing.T) {
	for _, tt := range []struct {
		v       any
		name    string
		n       int64
		integer bool
	}{
		{true, "bool", 0, false},
		{int8(-1), "byte", -1, true},
		{uint8(255), "unsignedbyte", 255, true},
		{int16(-1), "short", -1, true},
		{uint16(65535), "unsignedshort", 65535, true},
		{int32(-1), "signedint", -1, true},
		{uint32(math.MaxUint32), "unsignedint", math.MaxUint32, true},
		{int64(-1), "long", -1, true},
		{float32(1), "float", 0, false},
		{1.0, "double", 0, false},
		{Timestamp(1), "timestamp", 0, false},
		{Decimal{}, "decimal", 0, false},
		{"1", "longstr", 0, false},
		{[]byte{}, "binary", 0, false},
		{Table{}, "table", 0, false},
		{[]any{}, "array", 0, false},
		{nil, "void", 0, false},
	} {
		n, ok := Integer(tt.v)
		if TypeName(tt.v) != tt.name || n != tt.n || ok != tt.integer {
			t.Errorf("%#v: %s, %d, %v, want %s, %d, %v", tt.v, TypeName(tt.v), n, ok, tt.name, tt.n, tt.integer)
		}
	}
}

func FuzzTable(f *testing.F) {
	var all strings.Builder
	for _, tt := range fieldVectors {
		f.Add([]byte("\x01k" + tt.wire))
		all.WriteString("\x01k" + tt.wire)
	}
	f.Add([]byte(all.String()))
	f.Add([]byte("\x01kL\x00\x00\x00\x00\x00\x00\x00\x01\x01kt\x02"))
	f.Add(nested('F', 130))
	f.Add(nested('A', 20))
	f.Fuzz(func(t *testing.T, b []byte) {
		table, err := ParseTable(b)
		if checked := CheckTable(b); (checked == nil) != (err == nil) || err != nil && checked.Error() != err.Error() {
			t.Fatalf("%q: CheckTable says %v, ParseTable %v", b, checked, err)
		}
		if err != nil {
			return
		}
		first := AppendTable(nil, table)[4:]
		if len(first) != len(b) { // bools and L may change, lengths do not
			t.Fatalf("%q became %q", b, first)
		}
		again, err := ParseTable(first)
		if err != nil {
			t.Fatalf("%q does not decode again: %v", first, err)
		}
		if second := AppendTable(nil, again)[4:]; !bytes.Equal(first, second) {
			t.Fatalf("%q became %q", first, second)
		}
		for _, field := range table {
			want, _ := table.Lookup(field.Name)
			tag, value, ok := FindField(b, field.Name)
			got, err := DecodeField(tag, value)
			if !ok || err != nil || !bytes.Equal(appendValue(nil, got), appendValue(nil, want)) {
				t.Fatalf("%q: field %q is %#v, %v, want %#v", b, field.Name, got, err, want)
			}
		}
	})
}

func TestNumbersThatAreNotFinite(t *testing.T) {
	for _, tt := range []struct {
		value any
		ok    bool
	}{
		{1.5, true}, {float32(1.5), true}, {math.MaxFloat64, true}, {"NaN", true}, {nil, true},
		{Table{{"b", []any{int64(1), 2.5}}}, true},
		{math.NaN(), false}, {math.Inf(1), false}, {math.Inf(-1), false}, {float32(math.Inf(1)), false},
		{[]any{1.5, math.NaN()}, false}, {Table{{"b", []any{Table{{"c", math.Inf(1)}}}}}, false},
	} {
		err := Table{{"a", tt.value}}.CheckNumbers()
		if (err == nil) != tt.ok {
			t.Errorf("%v: error %v", tt.value, err)
		}
	}
}
