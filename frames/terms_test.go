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
		{float32(1e16), "1.0000000272564224e16"},
		{9007199254740991.0, "9007199254740991.0"},
		{9007199254740992.0, "9.007199254740992e15"},
		{1.5e-7, "1.5e-7"},
		{123456.789, "123456.789"},
	} {
		if got := Term(tt.v); got != tt.want {
			t.Errorf("Term(%T %v) = %s, want %s", tt.v, tt.v, got, tt.want)
		}
	}
	for want, v := range map[string]any{"'a'": "a", "'é'": []byte("\xe9"), "'5'": int32(5), "none": nil} {
		if got := QuotedTerm(v); got != want {
			t.Errorf("QuotedTerm(%v) = %s, want %s", v, got, want)
		}
	}
}

func TestBinaryTerm(t *testing.T) {
	for in, want := range map[string]string{
		"":                  `<<>>`,
		"abc ~":             `<<"abc ~">>`,
		`a"b\`:              `<<"a\"b\\">>`,
		"\x00\x00\x05ab":    `<<0,0,5,97,98>>`,
		"ab\x7f":            `<<97,98,127>>`,
		"a\b\t\n\v\f\r\x1b": `<<"a\b\t\n\v\f\r\e">>`,
		"é€\n":              `<<"é€\n"/utf8>>`,
		"é\x7f":             `<<195,169,127>>`,
		"\u0080":            `<<194,128>>`,
		"\uffff":            `<<239,191,191>>`,
		"\xfc\xfd":          `<<"üý">>`, // no UTF-8
		"\xfc\x80":          `<<252,128>>`,
		"0123456789abcdef":  `<<"0123456789abcdef">>`,
	} {
		if got := BinaryTerm(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestStringTerm(t *testing.T) {
	for in, want := range map[string]string{
		"":          `[]`,
		`it's "a"`:  `"it's \"a\""`,
		"a\\\n\x1b": `"a\\\n\e"`,
		"é":         `"é"`,
		"\xe9":      `"é"`,
		"a€":        `[97,8364]`,
		"\x80":      `[128]`,
		"\x00":      `[0]`,
	} {
		if got := StringTerm(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// A verb that quotes the bytes shows them better than Latin-1 would.
func TestQuotedBytesInTextsStay(t *testing.T) {
	wantReply(t, Errorf(PreconditionFailed, "name %q is not valid UTF-8", "\xff"), `PRECONDITION_FAILED - name "\xff" is not valid UTF-8`)
	wantReply(t, Errorf(NotFound, "no exchange '%s' in vhost '%s'", "\xe9\xff", "é"), "NOT_FOUND - no exchange 'éÿ' in vhost 'é'")
}
