package pattern

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// The matches are what RabbitMQ 4.0 says of the same expressions, but for the last:
// there a character is a byte.
func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		expr     string
		yes, not []string
	}{
		{`^(?!amq\.).*`, []string{"orders", "", "amq"}, []string{"amq.gen-1"}},
		{`^(.*(?<![E|e]rror))?$`, []string{"orders", "error-log", ""}, []string{"my.error", "my.Error"}},
		{`(?<!g)oo`, []string{"foo", "goo.oo"}, []string{"goo", "o"}},
		{`(?<=a|bc)d`, []string{"ad", "xbcd"}, []string{"cd", "d"}},
		{`^(?=.*[A-Z])(?=.*\d).{6,}$`, []string{"Secret1"}, []string{"secret1", "Secret", "Se1"}},
		{`^a(?!.*b$)`, []string{"abc", "a"}, []string{"ab", "a.b"}},
		{`^(a+)b\1$`, []string{"aba", "aabaa"}, []string{"aabaaa", "b"}},
		{`^(?<x>a|b)\k<x>$`, []string{"aa", "bb"}, []string{"ab"}},
		{`^(?P<x>a|b)(?P=x)$`, []string{"aa"}, []string{"ab"}},
		{`^(a)(b)\g{-1}\g{1}$`, []string{"abba"}, []string{"abab"}},
		{`^(?i)(a)\1(?!x)`, []string{"aA", "AAy"}, []string{"aAX", "a"}},
		{`^a++b`, []string{"aab"}, []string{"b"}},
		{`^a++a`, nil, []string{"aa"}},
		{`^a*+.a?+$`, []string{"aab"}, []string{"aaa"}},
		{`^(?>a|ab)c`, []string{"ac"}, []string{"abc"}},
		{`^(?:a|ab)c(?!d)`, []string{"ac", "abc"}, []string{"abcd"}},
		{`^[^]a]+(?=])`, []string{"b]"}, []string{"a]", "b"}},
		{`^[a\-z\]]{2,}+$`, []string{"a-", "z]"}, []string{"b-", "a"}},
		{`^\h\H\R(?=\z)`, []string{" x\n", "\tx\r\n"}, []string{"xx\n"}},
		{`^x{2,3}?(?!x)`, []string{"xx", "xxx"}, []string{"x", "xxxx"}},
		{`^x{,2}(?=$)`, []string{"x{,2}"}, []string{"xx"}},
		{`^a|b(?!c)|^$`, []string{"a", "xb", ""}, []string{"bc", "x"}},
		{`(?m)^b$(?!x)`, []string{"a\nb\nc"}, []string{"ab\nc"}},
		{`^a$(?!x)`, []string{"a", "a\n"}, []string{"a\n\n"}},
		{`^a.c(?!x)`, []string{"abc"}, []string{"a\nc"}},
		{`(?s)^a.c(?!x)`, []string{"a\nc"}, nil},
		{"(?x)^ a b # comment\n c (?!x)", []string{"abc"}, []string{"a b c"}},
		{`^(?i:a)b(?!x)`, []string{"Ab"}, []string{"AB"}},
		{`^((?i)a)b(?!x)`, []string{"Ab"}, []string{"AB"}},
		{`^\Qa.b\E(?!x)`, []string{"a.b"}, []string{"axb", "a.bx"}},
		{`^[[:alpha:]][[:^digit:]](?!x)`, []string{"a-"}, []string{"1-", "a1"}},
		{`^\x61\x{62}\143(?!x)`, []string{"abc"}, []string{"abd"}},
		{`\bred\b(?!-)`, []string{"a red x", "red"}, []string{"reds", "red-"}},
		{`^(?#only)a(?!b)`, []string{"ac"}, []string{"ab"}},
		{`^(a?)*b(?!c)`, []string{"b", "aab"}, []string{"aabc"}},
		{`^(a?){3}(?!a)`, []string{"aaa", ""}, []string{"aaaa"}},
		{`^(?:(a)|b)\1$`, []string{"aa"}, []string{"b"}},
		{`^(?!(a)b).\1?`, []string{"ac", "b"}, []string{"ab"}},
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

// The reasons and places are RabbitMQ 4.0's.
func TestErrors(t *testing.T) {
	for _, want := range []struct {
		expr, reason string
		at           int
	}{
		{`(`, "missing )", 1},
		{`a(b`, "missing )", 3},
		{`a)`, "unmatched parentheses", 1},
		{`[`, "missing terminating ] for character class", 1},
		{`[a`, "missing terminating ] for character class", 2},
		{`[z-a]`, "range out of order in character class", 3},
		{`*`, "nothing to repeat", 0},
		{`a**`, "nothing to repeat", 2},
		{`\`, `\ at end of pattern`, 1},
		{`a{2,1}`, "numbers out of order in {} quantifier", 5},
		{`(?<x`, "syntax error in subpattern name (missing terminator)", 4},
		{`[[:nope:]]`, "unknown POSIX class name", 3},
		{`(a)\2`, "reference to non-existent subpattern", 5},
		{`(?y)`, "unrecognized character after (? or (?-", 2},
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

// What takes too long does not match.
func TestExponentialExpressionGivesUp(t *testing.T) {
	p, err := Compile(`^(?!x)(a+)+$`)
	if err != nil {
		t.Fatal(err)
	}
	if p.MatchString(strings.Repeat("a", 60) + "b") {
		t.Error("it matches")
	}
	if p, _ = Compile(`^(?!(a+)+$).*`); p.MatchString(strings.Repeat("a", 60) + "b") {
		t.Error("a look-ahead that took too long counts as not found")
	}
}

// On what both can do, backtracking agrees with Go.
func TestAgainstGo(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	parts := strings.Fields(`a b ab . [ab] [^a] \w \d ^ $ ( (?: ) | * + ? *? +? {1,2} {2} \b (?i)a A c`)
	compared := 0
	for range 20_000 {
		var expr strings.Builder
		for range 1 + random.IntN(8) {
			expr.WriteString(parts[random.IntN(len(parts))])
		}
		re, err := regexp.Compile(expr.String())
		if err != nil || strings.Contains(expr.String(), "(?)") {
			continue
		}
		p, err := compileBacktracking(expr.String())
		if err != nil {
			t.Fatalf("%s: %v", &expr, err)
		}
		for range 4 {
			s := make([]byte, random.IntN(6))
			for i := range s {
				s[i] = "abAB1"[random.IntN(5)]
			}
			compared++
			if got, want := p.MatchString(string(s)), re.MatchString(string(s)); got != want {
				t.Fatalf("%s on %q: %v, want %v", &expr, s, got, want)
			}
		}
	}
	if compared < 5_000 {
		t.Errorf("only %d compared", compared)
	}
}

func FuzzCompile(f *testing.F) {
	for _, expr := range []string{`^(?!amq\.).*`, `(?<=a)(b)\1{2,}+[[:alpha:]\d-]`, `(?i-s:\Qa\E|\x{61})`} {
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
