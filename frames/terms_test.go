package frames

import "testing"

func TestTerm(t *testing.T) {
	for _, tt := range []struct {
		v    any
		want string
	}{
		{int8(-5), "-5"},
		{Timestamp(1 << 40), "1099511627776"},
		{Decimal{2, 100}, "{2,100}"},
		{nil, "undefined"},
		{true, "true"},
		{"a", `<<"a">>`},
		{[]byte("a"), `<<"a">>`},
		{"", "<<>>"},
		{Table{{"a", int32(1)}}, `[{<<"a">>,signedint,1}]`},
		{[]any{"a", nil}, `[{longstr,<<"a">>},{void,undefined}]`},
		{float32(0.5), "0.5"},
		{0.0, "0.0"},
		{-2.5, "-2.5"},
		{100.0, "100.0"},
		{1000.0, "1.0e3"},
		{1e20, "1.0e20"},
		{1.5e-7, "1.5e-7"},
		{123456.789, "123456.789"},
	} {
		if got := Term(tt.v); got != tt.want {
			t.Errorf("Term(%T %v) = %s, want %s", tt.v, tt.v, got, tt.want)
		}
	}
	if got := PlainTerm("a"); got != "a" {
		t.Errorf("PlainTerm of a string is %s, want it as it is", got)
	}
}
