package classic

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/leveretmq/leveret/message"
)

func TestExtraRoundTrip(t *testing.T) {
	death := message.Death{Queue: "q", Reason: "expired", Exchange: "x", Keys: []string{"a", ""}, Expiration: "60000", Count: 3, Time: -1}
	for _, m := range []*message.More{
		{},
		{CC: []string{"a"}},
		{BCC: []string{"", "b"}},
		{CC: []string{"a", "b"}, Deaths: []message.Death{death, {}}, FirstDeath: death},
	} {
		b := appendExtra(nil, m)
		got, err := parseExtra(b)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("parseExtra(%x) = %+v, %v, want %+v", b, got, err, m)
		}
	}
}

func TestExtraLeavesReturnedOut(t *testing.T) {
	got, err := parseExtra(appendExtra(nil, &message.More{CC: []string{"a"}, Returned: []byte("x")}))
	if err != nil || got.Returned != nil {
		t.Errorf("Returned = %q, %v, want nil", got.Returned, err)
	}
}

func TestExtraDamaged(t *testing.T) {
	whole := appendExtra(nil, &message.More{CC: []string{"abc"}, Deaths: []message.Death{{Queue: "q"}}})
	for n := range whole {
		if _, err := parseExtra(whole[:n]); err == nil {
			t.Errorf("parseExtra of %d of %d bytes has no error", n, len(whole))
		}
	}
	if _, err := parseExtra(append(bytes.Clone(whole), 0)); err == nil {
		t.Error("parseExtra of a byte too many has no error")
	}
	if _, err := parseExtra([]byte{2}); err != errExtraVersion {
		t.Errorf("parseExtra of another version = %v", err)
	}
	if _, err := parseExtra([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f}); err == nil {
		t.Error("parseExtra of a huge list has no error")
	}
}

// What parses must re-encode to the same bytes.
func FuzzExtra(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0})
	f.Add(appendExtra(nil, &message.More{CC: []string{"a", "b"}, BCC: []string{"c"},
		Deaths:     []message.Death{{Queue: "q", Reason: "maxlen", Exchange: "x", Keys: []string{"k"}, Expiration: "1", Count: 300, Time: 1 << 40}},
		FirstDeath: message.Death{Queue: "p"}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseExtra(b)
		if err != nil {
			return
		}
		if again := appendExtra(nil, m); !bytes.Equal(again, b) {
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
