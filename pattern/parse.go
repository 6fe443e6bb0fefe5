package pattern

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Matching goes as deep as an expression is long: the limits keep it from filling memory.
const (
	maxLength = 32 << 10
	maxDepth  = 250
)

// compileBacktracking reads all of an expression, in the syntax of PCRE.
func compileBacktracking(expr string) (p *Pattern, err error) {
	if len(expr) > maxLength {
		return nil, &Error{"regular expression is too large", maxLength}
	}
	s := &parser{text: expr, names: map[string]int{}}
	defer func() {
		if e, wrong := recover().(*Error); wrong {
			p, err = nil, e
		}
	}()
	match := s.alternatives()
	if s.at < len(s.text) {
		s.fail("unmatched parentheses", s.at)
	}
	for _, ref := range s.references {
		if ref.group > s.groups {
			s.fail("reference to non-existent subpattern", ref.at)
		}
	}
	return &Pattern{match: match, groups: s.groups + 1}, nil
}

// A parser turns an expression into matchers as it reads it. What is wrong ends it
// with a panic of an *Error, which does not leave the package.
type parser struct {
	text       string
	at         int
	flags      flags
	depth      int
	groups     int
	names      map[string]int
	references []reference
}

type flags struct{ fold, dotAll, lines, free bool }

// A reference is a back reference, whose group may come later.
type reference struct{ group, at int }

func (s *parser) fail(reason string, at int) { panic(&Error{reason, at}) }

// accept takes the text if it is next.
func (s *parser) accept(text string) bool {
	if !strings.HasPrefix(s.text[s.at:], text) {
		return false
	}
	s.at += len(text)
	return true
}

func (s *parser) rune() rune {
	c, n := utf8.DecodeRuneInString(s.text[s.at:])
	s.at += n
	return c
}

// upTo takes the text before the mark, and the mark.
func (s *parser) upTo(mark, missing string) string {
	text, _, found := strings.Cut(s.text[s.at:], mark)
	if !found {
		s.fail(missing, len(s.text))
	}
	s.at += len(text) + len(mark)
	return text
}

func (s *parser) alternatives() matcher {
	if s.depth++; s.depth > maxDepth {
		s.fail("parentheses are too deeply nested", s.at)
	}
	flags := s.flags
	m := s.sequence()
	for s.accept("|") {
		m = either(m, s.sequence())
	}
	s.depth--
	s.flags = flags // what (?i) sets ends with its group
	return m
}

func (s *parser) sequence() matcher {
	m := matcher(nothing)
	for s.at < len(s.text) && s.text[s.at] != '|' && s.text[s.at] != ')' {
		if s.skip() {
			continue
		}
		m = sequence(m, s.repeated(s.atom()))
	}
	return m
}

// skip passes over what matches nothing: comments, and space in the mode x.
func (s *parser) skip() bool {
	switch {
	case s.accept("(?#"):
		s.upTo(")", "missing ) after comment")
	case s.accept(`\E`):
	case s.flags.free && isSpace(rune(s.text[s.at])):
		s.at++
	case s.flags.free && s.text[s.at] == '#':
		comment, _, _ := strings.Cut(s.text[s.at:], "\n")
		s.at += len(comment)
	default:
		return false
	}
	return true
}

// repeated reads how often m is repeated, if it is.
func (s *parser) repeated(m matcher) matcher {
	for s.at < len(s.text) {
		start := s.at
		least, most, found := s.repetition()
		if !found {
			break
		}
		if most != unlimited && least > most {
			s.fail("numbers out of order in {} quantifier", s.at-1)
		}
		if least > 65535 || most > 65535 {
			s.fail("number too big in {} quantifier", start+1)
		}
		possessive := s.accept("+")
		m = repeat(m, least, most, !possessive && s.accept("?"))
		if possessive {
			m = atomic(m)
		}
		if s.at < len(s.text) && strings.IndexByte("*+?", s.text[s.at]) >= 0 {
			s.fail("nothing to repeat", s.at)
		}
	}
	return m
}

func (s *parser) repetition() (least, most int, found bool) {
	switch {
	case s.accept("*"):
		return 0, unlimited, true
	case s.accept("+"):
		return 1, unlimited, true
	case s.accept("?"):
		return 0, 1, true
	case s.text[s.at] != '{':
		return 0, 0, false
	}
	inside, _, found := strings.Cut(s.text[s.at+1:], "}")
	from, to, ranged := strings.Cut(inside, ",")
	if !found || !allDigits(from) || ranged && to != "" && !allDigits(to) {
		return 0, 0, false // a brace that stands for itself
	}
	s.at += len(inside) + 2
	least, most = number(from), number(from)
	if ranged {
		if most = unlimited; to != "" {
			most = number(to)
		}
	}
	return least, most, true
}

func allDigits(s string) bool {
	return s != "" && strings.TrimLeft(s, "0123456789") == ""
}

// number reads digits; what is too large is larger than any limit.
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 1 << 30
	}
	return n
}

// atom reads what a repetition applies to.
func (s *parser) atom() matcher {
	start := s.at
	switch c := s.rune(); c {
	case '(':
		return s.group()
	case '[':
		return character(s.class())
	case '.':
		if s.flags.dotAll {
			return character(func(rune) bool { return true })
		}
		return character(func(c rune) bool { return c != '\n' })
	case '^':
		if s.flags.lines {
			return place(atLineStart)
		}
		return place(atStart)
	case '$':
		if s.flags.lines {
			return place(atLineEnd)
		}
		return place(atLastLineEnd)
	case '*', '+', '?':
		s.fail("nothing to repeat", start)
		return nil
	case '\\':
		return s.escape(start)
	default:
		return s.literal(c)
	}
}

func (s *parser) literal(c rune) matcher { return s.one(func(r rune) bool { return r == c }) }

// one matches a character that is, with regard to the mode i.
func (s *parser) one(is func(rune) bool) matcher {
	if s.flags.fold {
		is = folded(is)
	}
	return character(is)
}

func (s *parser) group() matcher {
	if !s.accept("?") {
		if s.accept("*") {
			s.fail("(*VERB) not recognized or malformed", s.at)
		}
		return s.captured("")
	}
	switch {
	case s.accept(":"):
		return s.close(s.alternatives())
	case s.accept("="):
		return s.close(ahead(s.alternatives()))
	case s.accept("!"):
		return s.close(not(ahead(s.alternatives())))
	case s.accept("<="):
		return s.close(behind(s.alternatives()))
	case s.accept("<!"):
		return s.close(not(behind(s.alternatives())))
	case s.accept(">"):
		return s.close(atomic(s.alternatives()))
	case s.accept("P="):
		return s.named(s.upTo(")", "missing )"))
	case s.accept("P<"), s.accept("<"):
		return s.captured(s.upTo(">", "syntax error in subpattern name (missing terminator)"))
	case s.accept("'"):
		return s.captured(s.upTo("'", "syntax error in subpattern name (missing terminator)"))
	}
	return s.modes()
}

func (s *parser) close(m matcher) matcher {
	if !s.accept(")") {
		s.fail("missing )", len(s.text))
	}
	return m
}

func (s *parser) captured(name string) matcher {
	s.groups++
	group := s.groups
	if name != "" {
		s.names[name] = group
	}
	return s.close(capture(s.alternatives(), group))
}

// modes reads (?i) and (?i:...).
func (s *parser) modes() matcher {
	before, on := s.flags, true
	for s.at < len(s.text) {
		switch c := s.rune(); c {
		case '-':
			on = false
		case 'i':
			s.flags.fold = on
		case 's':
			s.flags.dotAll = on
		case 'm':
			s.flags.lines = on
		case 'x':
			s.flags.free = on
		case ')':
			return nothing
		case ':':
			m := s.close(s.alternatives())
			s.flags = before
			return m
		default:
			s.fail("unrecognized character after (? or (?-", s.at-1)
		}
	}
	s.fail("missing )", len(s.text))
	return nil
}

// escape reads what follows a backslash outside a class.
func (s *parser) escape(start int) matcher {
	if s.at == len(s.text) {
		s.fail(`\ at end of pattern`, s.at)
	}
	switch c := s.text[s.at]; {
	case s.accept("b"):
		return place(atWordBoundary)
	case s.accept("B"):
		return place(func(r *run, at int) bool { return !atWordBoundary(r, at) })
	case s.accept("A"):
		return place(atStart)
	case s.accept("z"):
		return place(atEnd)
	case s.accept("Z"):
		return place(atLastLineEnd)
	case s.accept("R"):
		crlf := sequence(character(func(c rune) bool { return c == '\r' }), character(func(c rune) bool { return c == '\n' }))
		return atomic(either(crlf, character(isVertical)))
	case s.accept("N"):
		return character(func(c rune) bool { return c != '\n' })
	case s.accept("Q"):
		return s.quoted()
	case s.accept("k<"), s.accept("g{"), s.accept("k{"), s.accept("k'"):
		return s.named(s.upTo(map[byte]string{'<': ">", '{': "}", '\'': "'"}[s.text[s.at-1]],
			"syntax error in subpattern name (missing terminator)"))
	case '1' <= c && c <= '9':
		if m := s.back(); m != nil {
			return m
		}
	case strings.IndexByte("KGXCgk", c) >= 0:
		s.fail(`\`+string(c)+" is not supported", s.at)
	}
	if is := s.kind(); is != nil {
		return s.one(is)
	}
	return s.literal(s.escaped(start))
}

// quoted reads \Q...\E.
func (s *parser) quoted() matcher {
	text, _, found := strings.Cut(s.text[s.at:], `\E`)
	if s.at += len(text); found {
		s.at += len(`\E`)
	}
	m := matcher(nothing)
	for _, c := range text {
		m = sequence(m, s.literal(c))
	}
	return m
}

// back reads a reference by number, as long as there is such a group; nil if the
// digits are a character's in octal.
func (s *parser) back() matcher {
	digits := s.text[s.at:]
	digits = digits[:len(digits)-len(strings.TrimLeft(digits, "0123456789"))]
	group := number(digits)
	if group > 9 && group > s.groups {
		return nil
	}
	s.at += len(digits)
	return s.numbered(group)
}

// named reads a reference by name or number; -1 is the group before.
func (s *parser) named(name string) matcher {
	if group, there := s.names[name]; there {
		return s.numbered(group)
	}
	n, err := strconv.Atoi(name)
	if n < 0 {
		n += s.groups + 1
	}
	if err != nil || n <= 0 {
		s.fail("reference to non-existent subpattern", s.at)
	}
	return s.numbered(n)
}

func (s *parser) numbered(group int) matcher {
	s.references = append(s.references, reference{group, s.at})
	return again(group, s.flags.fold)
}

// escaped reads the escapes for one character; the backslash is at start.
func (s *parser) escaped(start int) rune {
	if s.at == len(s.text) {
		s.fail(`\ at end of pattern`, s.at)
	}
	c := s.rune()
	if i := strings.IndexRune("nrtfae", c); i >= 0 {
		return rune("\n\r\t\f\a\x1b"[i])
	}
	switch {
	case c == 'x' && s.accept("{"):
		n, err := strconv.ParseUint(s.upTo("}", "missing }"), 16, 21)
		if err != nil {
			s.fail(`character value in \x{} or \o{} is too large`, s.at)
		}
		return rune(n)
	case c == 'x':
		return rune(s.digits(16, 2))
	case '0' <= c && c <= '7':
		s.at = start + 1
		return rune(s.digits(8, 3))
	case c == 'c' && s.at < len(s.text):
		return unicode.ToUpper(s.rune()) ^ 64
	}
	return c
}

// digits reads a number of at most n digits.
func (s *parser) digits(base, n int) (value int) {
	for ; n > 0 && s.at < len(s.text); n-- {
		digit, err := strconv.ParseUint(s.text[s.at:s.at+1], base, 8)
		if err != nil {
			break
		}
		value, s.at = value*base+int(digit), s.at+1
	}
	return value
}
