package frames

import (
	"bytes"
	"reflect"
	"testing"
)

// allProperties has every property, in the order of the wire.
const allProperties = "\xff\xfc" +
	"\x0atext/plain" + "\x04gzip" + "\x00\x00\x00\x04\x01ht\x01" + "\x02" + "\x09" +
	"\x04corr" + "\x05reply" + "\x0560000" + "\x03mid" + "\x00\x00\x00\x00\x5f\x5e\x10\x00" +
	"\x03typ" + "\x05guest" + "\x03app" + "\x02cl"

func parsed(t *testing.T, b string) Properties {
	t.Helper()
	var p Properties
	if err := p.Parse([]byte(b)); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParseAllProperties(t *testing.T) {
	want := Properties{
		Flags:           0xfffc,
		ContentType:     []byte("text/plain"),
		ContentEncoding: []byte("gzip"),
		Headers:         []byte("\x01ht\x01"),
		DeliveryMode:    2,
		Priority:        9,
		CorrelationID:   []byte("corr"),
		ReplyTo:         []byte("reply"),
		Expiration:      []byte("60000"),
		MessageID:       []byte("mid"),
		Timestamp:       1600000000,
		Type:            []byte("typ"),
		UserID:          []byte("guest"),
		AppID:           []byte("app"),
		ClusterID:       []byte("cl"),
	}
	got := parsed(t, allProperties)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if b := got.Append([]byte("x")); string(b) != "x"+allProperties {
		t.Errorf("became %q", b)
	}
}

func TestEachPropertyAlone(t *testing.T) {
	for _, tt := range []struct {
		flag int
		wire string
	}{
		{FlagContentType, "\x80\x00\x01a"},
		{FlagContentEncoding, "\x40\x00\x01a"},
		{FlagHeaders, "\x20\x00\x00\x00\x00\x00"},
		{FlagDeliveryMode, "\x10\x00\x03"},
		{FlagPriority, "\x08\x00\xff"},
		{FlagCorrelationID, "\x04\x00\x00"},
		{FlagReplyTo, "\x02\x00\x01a"},
		{FlagExpiration, "\x01\x00\x01a"},
		{FlagMessageID, "\x00\x80\x01a"},
		{FlagTimestamp, "\x00\x40\xff\xff\xff\xff\xff\xff\xff\xff"},
		{FlagType, "\x00\x20\x01a"},
		{FlagUserID, "\x00\x10\x01a"},
		{FlagAppID, "\x00\x08\x01a"},
		{FlagClusterID, "\x00\x04\x01a"},
	} {
		p := parsed(t, tt.wire)
		for bit := range 16 {
			if flag := uint16(1) << bit; p.Has(flag) != (int(flag) == tt.flag) {
				t.Errorf("%q: Has(%#x) is %v", tt.wire, flag, p.Has(flag))
			}
		}
		if b := p.Append(nil); string(b) != tt.wire {
			t.Errorf("%q became %q", tt.wire, b)
		}
		for i := range len(tt.wire) {
			var cut Properties
			wantReply(t, cut.Parse([]byte(tt.wire[:i])), "SYNTAX_ERROR - malformed content header properties")
		}
	}
}

func TestPropertiesThatAreRefused(t *testing.T) {
	const malformed = "SYNTAX_ERROR - malformed content header properties"
	for wire, want := range map[string]string{
		"":                                     malformed,
		"\x00":                                 malformed,
		"\x00\x00\x00":                         malformed, // a byte left over
		"\x10\x00\x02\x02":                     malformed,
		allProperties + "x":                    malformed,
		"\x00\x01\x00\x00":                     malformed, // a second flag word
		"\x80\x00\x05ab":                       malformed,
		"\x20\x00\x00\x00\x00\x05\x01ht\x01":   malformed, // a table longer than the block
		"\x20\x00\xff\xff\xff\xff":             malformed,
		"\x20\x00\x00\x00\x00\x03\x01hz":       "SYNTAX_ERROR - unknown field table type 'z'",
		"\x20\x00\x00\x00\x00\x03\x01ht":       "SYNTAX_ERROR - a field table ends in the middle of a field",
		"\x30\x00\x00\x00\x00\x03\x01ht\x02":   "SYNTAX_ERROR - a field table ends in the middle of a field",
		"\x20\x00\x00\x00\x00\x04\x01ht\x01\t": malformed,
	} {
		var p Properties
		wantReply(t, p.Parse([]byte(wire)), want)
	}
}

func TestFlagsOfNoProperty(t *testing.T) {
	for _, wire := range []string{"\x10\x01\x02", "\x10\x02\x02", "\x10\x03\x02"} {
		p := parsed(t, wire)
		if got := string(p.Append(nil)); got != "\x10\x00\x02" {
			t.Errorf("%q became %q, want it without them", wire, got)
		}
	}
}

func TestParseForgetsWhatWasThere(t *testing.T) {
	p := parsed(t, allProperties)
	if err := p.Parse([]byte{0, 0}); err != nil || !reflect.DeepEqual(p, Properties{}) {
		t.Errorf("%+v, %v, want no properties", p, err)
	}
}

func TestParseOfPropertiesDoesNotCopy(t *testing.T) {
	b := []byte("\x80\x00\x01a")
	var p Properties
	if err := p.Parse(b); err != nil {
		t.Fatal(err)
	}
	if &p.ContentType[0] != &b[3] {
		t.Error("the content type was copied")
	}
}

func TestPropertiesTable(t *testing.T) {
	p := parsed(t, "\x00\x00")
	if table, err := p.Table(); table != nil || err != nil {
		t.Errorf("without headers: %v, %v", table, err)
	}
	p.SetTable(Table{{"h", int64(1)}})
	if got, want := string(p.Append(nil)), "\x20\x00\x00\x00\x00\x0b\x01hl\x00\x00\x00\x00\x00\x00\x00\x01"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if table, err := p.Table(); err != nil || !reflect.DeepEqual(table, Table{{"h", int64(1)}}) {
		t.Errorf("%v, %v", table, err)
	}
	p.SetTable(nil)
	if got, want := string(p.Append(nil)), "\x20\x00\x00\x00\x00\x00"; got != want {
		t.Errorf("an empty table: %q, want %q", got, want)
	}
}

func FuzzProperties(f *testing.F) {
	f.Add([]byte(allProperties))
	f.Add([]byte("\x00\x00"))
	f.Add([]byte("\x10\x00\x02"))
	f.Add([]byte("\x20\x00\x00\x00\x00\x03\x01hV"))
	f.Add([]byte("\x00\x01\x00\x00"))
	f.Add([]byte("\x08\x02\x05"))
	f.Add([]byte("\x08\x01\x05"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p Properties
		if p.Parse(b) != nil {
			return
		}
		want := bytes.Clone(b)
		want[1] &^= FlagUnused
		if again := p.Append(nil); !bytes.Equal(again, want) {
			t.Fatalf("%q became %q, want %q", b, again, want)
		}
		if _, err := p.Table(); err != nil {
			t.Errorf("%q was taken, its table is refused: %v", b, err)
		}
	})
}
