package management

import (
	"encoding/json"
	"math"
	"testing"
	"unicode/utf8"

	"github.com/leveretmq/leveret/frames"
)

func TestAppendJSON(t *testing.T) {
	for _, tt := range []struct {
		v    any
		want string
	}{
		{nil, `null`},
		{"a\"\\\n\x01é", `"a\"\\\n\u0001é"`},
		{"\xff\x00", `"Not UTF-8, base64 is: /wA="`}, // no UTF-8
		{1.0, `1`},
		{1.5, `1.5`},
		{math.NaN(), `null`},
		{rate(2), `2.0`},
		{rate(0.4), `0.4`},
		{rate(math.Inf(1)), `0.0`},
		{int32(-3), `-3`},
		{frames.Timestamp(7), `7`},
		{frames.Decimal{Scale: 2, Value: 314}, `3.14`},
		{object{}, `{}`},
		{object{{"b", 1}, {"a", []any{true, []string{"x"}}}}, `{"b":1,"a":[true,["x"]]}`},
		{frames.Table{{Name: "k", Value: int64(1)}, {Name: "k", Value: int64(2)}}, `{"k":1}`}, // no name twice
		{frames.Table(nil), `{}`},
		{frames.Table{{Name: "k", Value: []any{3.0, float32(3), math.Copysign(0, -1), 1e20, 1234567.0, 0.1, int64(3), math.NaN(), frames.Table{{Name: "k", Value: 3.0}}}}},
			`{"k":[3.0,3.0,-0.0,1e+20,1.234567e+06,0.1,3,null,{"k":3.0}]}`},
		{json.RawMessage(`{"raw":1}`), `{"raw":1}`},
		{map[string]any{"n": json.Number("12")}, `{"n":12}`},
		{[]object(nil), `[]`},
	} {
		if got := string(appendJSON(nil, tt.v)); got != tt.want {
			t.Errorf("appendJSON(%#v) = %s, want %s", tt.v, got, tt.want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("plain")
	f.Add("a\"b\\c\n\t\x00\x7f ")
	f.Add("\xff")
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(appendJSON(nil, s), &got); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if utf8.ValidString(s) && got != s {
			t.Errorf("%q decodes to %q", s, got)
		}
	})
}
