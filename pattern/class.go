package pattern

import (
	"slices"
	"strings"
	"unicode"
)

// class reads what follows the bracket of [...].
func (s *parser) class() func(rune) bool {
	negated := s.accept("^")
	var members []func(rune) bool
	for first := true; ; first = false {
		if s.at == len(s.text) {
			s.fail("missing terminating ] for character class", len(s.text))
		}
		if !first && s.accept("]") {
			break
		}
		is := s.member()
		if s.flags.fold {
			is = folded(is)
		}
		members = append(members, is)
	}
	return func(c rune) bool {
		return slices.ContainsFunc(members, func(is func(rune) bool) bool { return is(c) }) != negated
	}
}

// member reads one character, range or kind in a class.
func (s *parser) member() func(rune) bool {
	if strings.HasPrefix(s.text[s.at:], "[:") {
		if name, _, found := strings.Cut(s.text[s.at+2:], ":]"); found {
			is := s.posix(name)
			s.at += len(name) + 4
			return is
		}
	}
	low, is := s.bound()
	if is != nil {
		return is
	}
	if rest := s.text[s.at:]; len(rest) < 2 || rest[0] != '-' || rest[1] == ']' {
		return func(c rune) bool { return c == low }
	}
	s.at++
	high, is := s.bound()
	if is != nil { // the hyphen stands for itself
		return func(c rune) bool { return c == low || c == '-' || is(c) }
	}
	if low > high {
		s.fail("range out of order in character class", s.at-1)
	}
	return func(c rune) bool { return low <= c && c <= high }
}

// bound reads a character, or a kind of characters, of a class.
func (s *parser) bound() (rune, func(rune) bool) {
	start := s.at
	c := s.rune()
	if c != '\\' {
		return c, nil
	}
	if s.at == len(s.text) {
		s.fail(`\ at end of pattern`, s.at)
	}
	if s.accept("b") {
		return '\b', nil
	}
	if is := s.kind(); is != nil {
		return 0, is
	}
	return s.escaped(start), nil
}

// kind reads the escapes for a kind of character, inside a class or not; nil if
// it is none of those.
func (s *parser) kind() func(rune) bool {
	c := s.text[s.at]
	if is := kinds[unicode.ToLower(rune(c))]; is != nil {
		s.at++
		if unicode.IsUpper(rune(c)) {
			return func(c rune) bool { return !is(c) }
		}
		return is
	}
	if c != 'p' && c != 'P' {
		return nil
	}
	s.at++
	name := ""
	if negated := c == 'P'; s.accept("{") {
		name = s.upTo("}", "malformed \\P or \\p sequence")
		if strings.HasPrefix(name, "^") {
			name, negated = name[1:], !negated
		}
		return s.property(name, negated)
	}
	if s.at < len(s.text) {
		name = string(s.rune())
	}
	return s.property(name, c == 'P')
}

var kinds = map[rune]func(rune) bool{'d': isDigit, 'w': isWord, 's': isSpace, 'h': isHorizontal, 'v': isVertical}

func (s *parser) property(name string, negated bool) func(rune) bool {
	table := unicode.Categories[name]
	if table == nil {
		table = unicode.Scripts[name]
	}
	if table == nil {
		s.fail("unknown property name after \\P or \\p", s.at)
	}
	return func(c rune) bool { return unicode.Is(table, c) != negated }
}

func (s *parser) posix(name string) func(rune) bool {
	name, negated := strings.CutPrefix(name, "^")
	is := posix[name]
	if is == nil {
		s.fail("unknown POSIX class name", s.at+2)
	}
	return func(c rune) bool { return is(c) != negated }
}

var posix = map[string]func(rune) bool{
	"digit": isDigit, "word": isWord, "space": isSpace,
	"alpha":  func(c rune) bool { return isWord(c) && c != '_' && !isDigit(c) },
	"alnum":  func(c rune) bool { return isWord(c) && c != '_' },
	"upper":  func(c rune) bool { return 'A' <= c && c <= 'Z' },
	"lower":  func(c rune) bool { return 'a' <= c && c <= 'z' },
	"xdigit": func(c rune) bool { return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' },
	"punct":  func(c rune) bool { return '!' <= c && c <= '~' && (!isWord(c) || c == '_') },
	"blank":  func(c rune) bool { return c == ' ' || c == '\t' },
	"graph":  func(c rune) bool { return '!' <= c && c <= '~' },
	"print":  func(c rune) bool { return ' ' <= c && c <= '~' },
	"cntrl":  func(c rune) bool { return c < ' ' || c == 0x7f },
	"ascii":  func(c rune) bool { return c <= 0x7f },
}
