package pattern

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A matcher matches at a place of the text and says whether what comes behind,
// then, matches from where it has ended. It tries the next way if then does not.
type matcher func(r *run, at int, then func(at int) bool) bool

// A run is one attempt to match. It belongs to one goroutine.
type run struct {
	text   string
	groups []span // what the groups have captured; a zero span captured nothing
	steps  int
}

type span struct{ from, to int } // to is one more than the end; 0 if there is none

// maxSteps is how much is tried before a text counts as not matching, as RabbitMQ
// does when PCRE reaches its limit: (a+)+$ takes exponential time.
const maxSteps = 1 << 18

func (p *Pattern) backtrack(s string) bool {
	r := &run{text: s, groups: make([]span, p.groups)}
	for at := 0; at <= len(s); at++ {
		if p.match(r, at, func(int) bool { return true }) && !r.tired() {
			return true
		}
		if r.tired() {
			return false
		}
		clear(r.groups)
	}
	return false
}

func (r *run) tired() bool { return r.steps > maxSteps }

// next is the character at a place, and its length; 0 at the end.
func (r *run) next(at int) (rune, int) {
	if at == len(r.text) {
		return 0, 0
	}
	return utf8.DecodeRuneInString(r.text[at:])
}

func nothing(_ *run, at int, then func(int) bool) bool { return then(at) }

// character matches one character.
func character(is func(rune) bool) matcher {
	return func(r *run, at int, then func(int) bool) bool {
		r.steps++
		c, n := r.next(at)
		return n > 0 && !r.tired() && is(c) && then(at+n)
	}
}

// place matches the empty text where it may be.
func place(is func(r *run, at int) bool) matcher {
	return func(r *run, at int, then func(int) bool) bool { return is(r, at) && then(at) }
}

func sequence(a, b matcher) matcher {
	return func(r *run, at int, then func(int) bool) bool {
		return a(r, at, func(at int) bool { return b(r, at, then) })
	}
}

func either(a, b matcher) matcher {
	return func(r *run, at int, then func(int) bool) bool { return a(r, at, then) || b(r, at, then) }
}

// unlimited is the most that {n,} repeats.
const unlimited = -1

func repeat(x matcher, least, most int, lazy bool) matcher {
	return func(r *run, at int, then func(int) bool) bool {
		var from func(at, n int) bool
		from = func(at, n int) bool {
			r.steps++
			more := func() bool {
				return (most == unlimited || n < most) && x(r, at, func(end int) bool {
					return (end > at || n < least) && from(end, n+1) // no empty match for ever
				})
			}
			enough := func() bool { return n >= least && then(at) }
			switch {
			case r.tired():
				return false
			case lazy:
				return enough() || more()
			}
			return more() || enough()
		}
		return from(at, 0)
	}
}

// capture notes what x matches as the group's.
func capture(x matcher, group int) matcher {
	return func(r *run, from int, then func(int) bool) bool {
		return x(r, from, func(to int) bool {
			before := r.groups[group]
			r.groups[group] = span{from, to + 1}
			if then(to) {
				return true
			}
			r.groups[group] = before
			return false
		})
	}
}

// again matches what the group has captured, and fails if that is nothing.
func again(group int, fold bool) matcher {
	return func(r *run, at int, then func(int) bool) bool {
		r.steps++
		g := r.groups[group]
		if g.to == 0 || r.tired() {
			return false
		}
		want, rest := r.text[g.from:g.to-1], r.text[at:]
		if len(rest) < len(want) {
			return false
		}
		if got := rest[:len(want)]; got != want && !(fold && strings.EqualFold(got, want)) {
			return false
		}
		return then(at + len(want))
	}
}

// atomic takes the first way x matches, and no other.
func atomic(x matcher) matcher {
	return func(r *run, at int, then func(int) bool) bool {
		before := slices.Clone(r.groups)
		end := -1
		if x(r, at, func(to int) bool { end = to; return true }) && then(end) {
			return true
		}
		copy(r.groups, before)
		return false
	}
}

func ahead(x matcher) matcher {
	return func(r *run, at int, then func(int) bool) bool {
		return atomic(x)(r, at, func(int) bool { return then(at) })
	}
}

// behind matches where x ends. PCRE knows how long x is; here it is tried from
// everywhere, the shortest first.
func behind(x matcher) matcher {
	return func(r *run, at int, then func(int) bool) bool {
		for from := at; from >= 0; from-- {
			if x(r, from, func(to int) bool { return to == at }) {
				return then(at)
			}
		}
		return false
	}
}

// not matches the empty text where the look-around does not.
func not(look matcher) matcher {
	return func(r *run, at int, then func(int) bool) bool {
		before := slices.Clone(r.groups)
		found := look(r, at, func(int) bool { return true })
		copy(r.groups, before)
		return !found && then(at)
	}
}

func atStart(_ *run, at int) bool { return at == 0 }

func atEnd(r *run, at int) bool { return at == len(r.text) }

// atLastLineEnd is $: a line feed may follow if it is the last character.
func atLastLineEnd(r *run, at int) bool { return atEnd(r, at) || r.text[at:] == "\n" }

func atLineStart(r *run, at int) bool { return at == 0 || r.text[at-1] == '\n' }

func atLineEnd(r *run, at int) bool { return atEnd(r, at) || r.text[at] == '\n' }

func atWordBoundary(r *run, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(r.text[:at])
	after, n := r.next(at)
	return (at > 0 && isWord(before)) != (n > 0 && isWord(after))
}

func isDigit(c rune) bool { return '0' <= c && c <= '9' }

func isWord(c rune) bool {
	return isDigit(c) || c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isSpace(c rune) bool { return strings.ContainsRune(" \t\n\v\f\r", c) }

func isHorizontal(c rune) bool { return c == '\t' || unicode.Is(unicode.Zs, c) }

func isVertical(c rune) bool {
	return '\n' <= c && c <= '\r' || c == 0x85 || c == 0x2028 || c == 0x2029
}

// folded is is without regard to case.
func folded(is func(rune) bool) func(rune) bool {
	return func(c rune) bool {
		for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
			if is(f) {
				return true
			}
		}
		return is(c)
	}
}
