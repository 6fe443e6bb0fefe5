package record

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/leveretmq/leveret/message"
)

func TestMoreRoundTrip(t *testing.T) {
	death := message.Death{Queue: "q", Reason: "expired", Exchange: "x", Keys: []string{"a", ""}, Expiration: "60000", Count: 3, Time: -1}
	for _, m := range []*message.More{
		{},
		{CC: []string{"a"}},
		{BCC: []string{"", "b"}},
		{CC: []string{"a", "b"}, Deaths: []message.Death{death, {}}, FirstDeath: death},
	} {
		b := AppendMore(nil, m)
		got, err := ParseMore(b)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("ParseMore(%x) = %+v, %v, want %+v", b, got, err, m)
		}
	}
}

func TestMoreDamaged(t *testing.T) {
	whole := AppendMore(nil, &message.More{CC: []string{"abc"}, Deaths: []message.Death{{Queue: "q"}}})
	for n := range whole {
		if _, err := ParseMore(whole[:n]); err == nil {
			t.Errorf("ParseMore of %d of %d bytes has no error", n, len(whole))
		}
	}
	if _, err := ParseMore(append(bytes.Clone(whole), 0)); err == nil {
		t.Error("ParseMore of a byte too many has no error")
	}
	if _, err := ParseMore([]byte{2}); err != errMoreVersion {
		t.Errorf("ParseMore of another version = %v", err)
	}
	if _, err := ParseMore([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f}); err == nil {
		t.Error("ParseMore of a huge list has no error")
	}
}

// What parses must re-encode to the same bytes.
func FuzzMore(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0})
	f.Add(AppendMore(nil, &message.More{CC: []string{"a", "b"}, BCC: []string{"c"},
		Deaths:     []message.Death{{Queue: "q", Reason: "maxlen", Exchange: "x", Keys: []string{"k"}, Expiration: "1", Count: 300, Time: 1 << 40}},
		FirstDeath: message.Death{Queue: "p"}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseMore(b)
		if err != nil {
			return
		}
		if again := AppendMore(nil, m); !bytes.Equal(again, b) {
			t.Errorf("%x became %x", b, again)
		}
	})
}

func TestParseTTL(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "5000": 5000, "+5": 5, "": -1, "+": -1, "x": -1, "99999999999999999999": -1} {
		if got := parseTTL([]byte(s)); got != want {
			t.Errorf("parseTTL(%q) = %d, want %d", s, got, want)
		}
	}
}
