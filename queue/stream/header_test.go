package stream

import (
	"reflect"
	"testing"

	"github.com/leveretmq/leveret/frames"
)

// withOffset is what a delivery has as its property block.
func withOffset(raw []byte, offset uint64) []byte {
	var h header
	h.parse(raw)
	return h.appendTo(nil, offset)
}

func TestHeaderWithOffset(t *testing.T) {
	const at7 = "\x0fx-stream-offsetl\x00\x00\x00\x00\x00\x00\x00\x07"
	for name, tt := range map[string]struct{ raw, want string }{
		"nothing":       {"\x00\x00", "\x30\x00\x00\x00\x00\x19" + at7 + "\x01"},
		"damaged":       {"\xff", "\x30\x00\x00\x00\x00\x19" + at7 + "\x01"},
		"delivery mode": {"\x10\x00\x02", "\x30\x00\x00\x00\x00\x19" + at7 + "\x02"},
		"another mode":  {"\x10\x00\x07", "\x30\x00\x00\x00\x00\x19" + at7 + "\x01"},
		"empty table":   {"\x20\x00\x00\x00\x00\x00", "\x30\x00\x00\x00\x00\x19" + at7 + "\x01"},
		"content type and encoding before, application after": {
			"\xc0\x08\x01a\x02bc\x03app", "\xf0\x08\x01a\x02bc\x00\x00\x00\x19" + at7 + "\x01\x03app"},
		"before and after it": {
			"\x20\x00\x00\x00\x00\x07\x01at\x01\x01zV",
			"\x30\x00\x00\x00\x00\x20\x01at\x01" + at7 + "\x01zV\x01"},
		"a name twice": {
			"\x20\x00\x00\x00\x00\x0a\x01zV\x01at\x01\x01zV",
			"\x30\x00\x00\x00\x00\x20\x01at\x01" + at7 + "\x01zV\x01"},
		"not in order": {
			"\x20\x00\x00\x00\x00\x0b\x01zV\x02abV\x01at\x01",
			"\x30\x00\x00\x00\x00\x24\x01at\x01\x02abV" + at7 + "\x01zV\x01"},
		"the publisher's own": {
			"\x20\x00\x00\x00\x00\x19\x0fx-stream-offsetl\xff\xff\xff\xff\xff\xff\xff\xff",
			"\x30\x00\x00\x00\x00\x19" + at7 + "\x01"},
	} {
		if got := string(withOffset([]byte(tt.raw), 7)); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// allTypes has a field of every type, in reverse order of the names.
func allTypes() frames.Table {
	values := []any{true, int8(1), uint8(2), int16(3), uint16(4), int32(5), uint32(6), int64(7), float32(1.5), 2.5,
		frames.Decimal{Scale: 1, Value: 2}, "text", []byte("bytes"), frames.Timestamp(9), frames.Table{{Name: "in", Value: "side"}},
		[]any{int32(1), "two"}, nil}
	var t frames.Table
	for i, v := range values {
		t = append(t, frames.Field{Name: string(rune('z' - i)), Value: v})
	}
	return t
}

func FuzzHeader(f *testing.F) {
	p := frames.Properties{Flags: frames.FlagPriority, Priority: 3}
	p.SetTable(allTypes())
	f.Add(p.Append(nil))
	f.Add([]byte("\x00\x00"))
	f.Add([]byte("\x20\x00\x00\x00\x00\x0a\x01zV\x01at\x01\x01zV"))
	f.Add([]byte("\x20\x00\x00\x00\x00\x19\x0fx-stream-offsetl\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Add([]byte("\x20\x00\x00\x00\x00\x0b\x01aL\x00\x00\x00\x00\x00\x00\x00\x07"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var before, after frames.Properties
		if before.Parse(raw) != nil {
			return
		}
		if err := after.Parse(withOffset(raw, 42)); err != nil {
			t.Fatalf("%q became a property block that is not well-formed: %v", raw, err)
		}
		// Values stay as they are, also those of type L, which no front door lets
		// pass. Decoded, they are those of type l.
		table, err := after.Table()
		if err != nil {
			t.Fatal(err)
		}
		after.SetTable(table)
		want, _ := before.Table()
		want = append(want.Without(offsetName), frames.Field{Name: offsetName, Value: int64(42)}).Sorted()
		if before.DeliveryMode != 2 {
			before.DeliveryMode = 1
		}
		before.Flags |= frames.FlagDeliveryMode
		before.SetTable(want)
		if got, want := after.Append(nil), before.Append(nil); !reflect.DeepEqual(got, want) {
			t.Errorf("%q became %q, want %q", raw, got, want)
		}
	})
}
