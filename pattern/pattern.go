// Package pattern holds regular expressions as people write them for RabbitMQ,
// which uses PCRE. Go's take time in proportion to the text, and are used where they
// can be; looking around, back references and atomic groups are left to a library
// that tries one way after another. What that one reads in another way than PCRE is
// refused, as permissions are such expressions.
package pattern

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dlclark/regexp2"
	syntax2 "github.com/dlclark/regexp2/syntax"
)

const (
	// maxLength is the longest expression that the library gets, in bytes.
	maxLength = 4 << 10
	// patience is how long one match of the library may take, and maxLate how many
	// may take longer before the expression matches nothing any more: (a+)+$ takes
	// exponential time. RabbitMQ's do not match either when PCRE reaches its limit.
	patience = time.Second
	maxLate  = 8
)

// A Pattern is a compiled expression. It may be used by several goroutines.
type Pattern struct {
	re   *regexp.Regexp // nil if Go cannot do it
	more *regexp2.Regexp
	late atomic.Int32 // matches that took too long
}

// An Error says what is wrong with an expression, in the words of PCRE where they
// are known.
type Error struct {
	Reason string
	At     int // in bytes
}

func (e *Error) Error() string { return e.Reason + " at " + strconv.Itoa(e.At) }

// Compile reads an expression. Its error is an *Error.
func Compile(expr string) (*Pattern, error) {
	re, err := regexp.Compile(expr)
	if err == nil {
		return &Pattern{re: re}, nil
	}
	e, ok := errors.AsType[*syntax.Error](err)
	if !ok {
		return nil, &Error{Reason: err.Error(), At: len(expr)}
	}
	switch e.Code {
	case syntax.ErrInvalidPerlOp, syntax.ErrInvalidNamedCapture, syntax.ErrInvalidEscape: // what Go may just not have
	default:
		return nil, explain(expr, e)
	}
	if len(expr) > maxLength {
		return nil, &Error{Reason: "regular expression is too large", At: len(expr)}
	}
	if err := foreign(expr); err != nil {
		return nil, err
	}
	more, err := regexp2.Compile(expr, regexp2.RE2)
	if err != nil {
		return nil, explainMore(expr, err)
	}
	more.MatchTimeout = patience
	return &Pattern{more: more}, nil
}

// MatchString says whether s contains a match.
func (p *Pattern) MatchString(s string) bool {
	if p.re != nil {
		return p.re.MatchString(s)
	}
	if p.late.Load() >= maxLate {
		return false
	}
	found, err := p.more.MatchString(s)
	if err != nil {
		p.late.Add(1)
	}
	return found && err == nil
}

// foreign finds what the library takes for something else than PCRE does: escapes
// that it does not know are letters to it, and it takes classes off one another.
func foreign(expr string) error {
	for i := 0; i+1 < len(expr); i++ {
		switch {
		case expr[i] == '-' && expr[i+1] == '[':
			return &Error{Reason: "-[ is not supported beside what looks around or refers back", At: i}
		case expr[i] != '\\':
			continue
		}
		i++
		c := expr[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if letter && !strings.ContainsRune("dDwWsSbBAzZkpPxnrtfae", rune(c)) || strings.HasPrefix(expr[i:], "x{") {
			return &Error{Reason: `\` + string(c) + " is not supported beside what looks around or refers back", At: i - 1}
		}
	}
	return nil
}

// explain is a mistake that Go's expressions know, too.
func explain(expr string, e *syntax.Error) *Error {
	at := strings.Index(expr, e.Expr)
	last := at + len(e.Expr) - 1
	switch e.Code {
	case syntax.ErrMissingParen:
		return &Error{Reason: "missing )", At: len(expr)}
	case syntax.ErrMissingBracket:
		return &Error{Reason: "missing terminating ] for character class", At: len(expr)}
	case syntax.ErrUnexpectedParen:
		return &Error{Reason: "unmatched parentheses", At: unmatched(expr)}
	case syntax.ErrMissingRepeatArgument:
		return &Error{Reason: "nothing to repeat", At: at}
	case syntax.ErrInvalidRepeatOp:
		if expr[last] == '+' {
			return &Error{Reason: "possessive repetition is not supported: write (?>...)", At: last}
		}
		return &Error{Reason: "nothing to repeat", At: last}
	case syntax.ErrTrailingBackslash:
		return &Error{Reason: `\ at end of pattern`, At: len(expr)}
	case syntax.ErrInvalidCharRange:
		return &Error{Reason: "range out of order in character class", At: last}
	}
	return &Error{Reason: e.Code.String(), At: max(at, 0)}
}

// unmatched is the first parenthesis that closes nothing; those of classes count, too.
func unmatched(expr string) int {
	depth := 0
	for i := range len(expr) {
		switch expr[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				return i
			}
		}
	}
	return len(expr)
}

// explainMore is what the library says. It does not know the place.
func explainMore(expr string, err error) *Error {
	e, ok := errors.AsType[*syntax2.Error](err)
	switch {
	case !ok:
		return &Error{Reason: err.Error(), At: len(expr)}
	case e.Code == syntax2.ErrUndefinedBackRef, e.Code == syntax2.ErrUndefinedNameRef:
		return &Error{Reason: "reference to non-existent subpattern", At: len(expr)}
	case e.Code == syntax2.ErrMissingParen:
		return &Error{Reason: "missing )", At: len(expr)}
	}
	reason := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
	reason, _, _ = strings.Cut(reason, " in `"+expr)
	return &Error{Reason: reason, At: len(expr)}
}
