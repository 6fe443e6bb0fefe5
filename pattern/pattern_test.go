package pattern

import (
	"errors"
	"strings"
	"testing"
)

// The matches are what RabbitMQ 4.0 says of the same expressions.
func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		expr     string
		yes, not []string
	}{
		{`b`, []string{"abc"}, []string{"ac"}}, // a search
		{`^(?!amq\.).*`, []string{"orders", "", "amq"}, []string{"amq.gen-1"}},
		{`^(?!amq\.|sys[()]).+x$`, []string{"sysx"}, []string{"sys(x", "amq.x"}},
		{`^(?=a)(?!ab).*`, []string{"ac"}, []string{"ab", "c"}},
		{`^(.*(?<![E|e]rror))?$`, []string{"orders", "error-log", ""}, []string{"my.error", "my.Error"}},
		{`(?<!g)oo`, []string{"foo", "goo.oo"}, []string{"goo", "o"}},
		{`(?<=a|bc)d`, []string{"ad", "xbcd"}, []string{"cd", "d"}},
		{`^(?=.*[A-Z])(?=.*\d).{6,}$`, []string{"Secret1"}, []string{"secret1", "Secret", "Se1"}},
		{`^a(?!.*b$)`, []string{"abc", "a"}, []string{"ab", "a.b"}},
		{`^(a+)b\1$`, []string{"aba", "aabaa"}, []string{"aabaaa", "b"}},
		{`^(?<x>a|b)\k<x>$`, []string{"aa", "bb"}, []string{"ab"}},
		{`^(?i)(a)\1(?!x)`, []string{"aA", "AAy"}, []string{"aAX", "a"}},
		{`(?i)^\W+(?<!x)$`, []string{".-"}, []string{"sks", "k"}},
		{`^(?>a|ab)c`, []string{"ac"}, []string{"abc"}},
		{`^(?:a|ab)c(?!d)`, []string{"ac", "abc"}, []string{"abcd"}},
		{`^[a\-z\]]{2,}(?!x)$`, []string{"a-", "z]"}, []string{"b-", "a"}},
		{`^x{2,3}?(?!x)`, []string{"xx", "xxx"}, []string{"x", "xxxx"}},
		{`^a|b(?!c)|^$`, []string{"a", "xb", ""}, []string{"bc", "x"}},
		{`^a.c(?!x)`, []string{"abc"}, []string{"a\nc"}},
		{`(?s)^a.c(?!x)`, []string{"a\nc"}, nil},
		{"(?x)^ a b # comment\n c (?!x)", []string{"abc"}, []string{"a b c"}},
		{`^(?i:a)b(?!x)`, []string{"Ab"}, []string{"AB"}},
		{`^[[:alpha:]][[:^digit:]](?!x)`, []string{"a-"}, []string{"1-", "a1"}},
		{`\bred\b(?!-)`, []string{"a red x", "red"}, []string{"reds", "red-"}},
		{`^(?#only)a(?!b)`, []string{"ac"}, []string{"ab"}},
		{`^a(?:(?<=(a))x|\1b)`, []string{"ax"}, []string{"aab"}},
		{`(?<!.).$`, []string{"é"}, []string{"aé"}},
		{`^ü(?!x).$`, []string{"üß"}, []string{"üx", "ü"}},
	} {
		p, err := Compile(tt.expr)
		if err != nil {
			t.Errorf("%s: %v", tt.expr, err)
			continue
		}
		for _, s := range tt.yes {
			if !p.MatchString(s) {
				t.Errorf("%s does not match %q", tt.expr, s)
			}
		}
		for _, s := range tt.not {
			if p.MatchString(s) {
				t.Errorf("%s matches %q", tt.expr, s)
			}
		}
	}
}

// The reasons and places are RabbitMQ 4.0's, but for what is not supported.
func TestErrors(t *testing.T) {
	const beside = " is not supported beside what looks around or refers back"
	for _, want := range []struct {
		expr, reason string
		at           int
	}{
		{`(`, "missing )", 1},
		{`a(b`, "missing )", 3},
		{`^(?!(`, "missing )", 5},
		{`a)`, "unmatched parentheses", 1},
		{`[`, "missing terminating ] for character class", 1},
		{`[a`, "missing terminating ] for character class", 2},
		{`[z-a]`, "range out of order in character class", 3},
		{`*`, "nothing to repeat", 0},
		{`(?i)*`, "nothing to repeat", 4},
		{`a**`, "nothing to repeat", 2},
		{`\`, `\ at end of pattern`, 1},
		{`(a)\2`, "reference to non-existent subpattern", 5},
		{`a++b`, "possessive repetition is not supported: write (?>...)", 2},
		{`^\h(?!x)`, `\h` + beside, 1},
		{`^\Qa\E(?!x)`, `\Q` + beside, 1},
		{`^\x{61}(?!x)`, `\x` + beside, 1},
		{`(a)\g{1}`, `\g` + beside, 3},
		{`^[a-z-[aeiou]](?!x)`, `-[` + beside, 5},
	} {
		_, err := Compile(want.expr)
		if e, ok := errors.AsType[*Error](err); !ok || e.Reason != want.reason || e.At != want.at {
			t.Errorf("%s: %v, want %s at %d", want.expr, err, want.reason, want.at)
		}
	}
	for _, expr := range []string{strings.Repeat("(", 100_000), "(?!a)" + strings.Repeat("a", maxLength), `a(?R)`, `\K`} {
		if _, err := Compile(expr); err == nil {
			t.Errorf("%.20s was taken", expr)
		}
	}
}

// What takes too long does not match, and in the end is not tried any more.
func TestHostileExpressionsGiveUp(t *testing.T) {
	for _, expr := range []string{
		`^(?!x)(a+)+$`,
		`^(?!(a+)+$).*`,
		strings.Repeat("(|)", 40) + "(?!)",
		strings.Repeat("(?<=", 6) + "(?!)" + strings.Repeat(")", 6),
		"(?:" + strings.Repeat("()", 1500) + "){60000}(?!x)",
		"(?!x)(?i)[" + strings.Repeat("aeiou", 700) + "]+$",
	} {
		p, err := Compile(expr)
		if err != nil {
			continue // that is as good
		}
		p.more.MatchTimeout /= 100
		if p.MatchString(strings.Repeat("a", 254) + "!") {
			t.Errorf("%.20s matches", expr)
		}
	}
	p, err := Compile(`^(?!x)(a+)+$`)
	if err != nil {
		t.Fatal(err)
	}
	if !p.MatchString("aa") {
		t.Fatal("it does not match what it can match at once")
	}
	p.late.Store(maxLate)
	if p.MatchString("aa") {
		t.Error("an expression that took too long before is still tried")
	}
}

func FuzzCompile(f *testing.F) {
	for _, expr := range []string{`^(?!amq\.).*`, `(?<=a)(b)\1{2,}[[:alpha:]\d-]`, `(?i-s:a|(?>b))`} {
		f.Add(expr, "abc")
	}
	f.Fuzz(func(t *testing.T, expr, s string) {
		p, err := Compile(expr)
		if _, ours := errors.AsType[*Error](err); err != nil && !ours {
			t.Fatal(err)
		}
		if err == nil {
			p.MatchString(s)
		}
	})
}
