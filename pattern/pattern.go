// Package pattern holds regular expressions as people write them for RabbitMQ,
// which uses PCRE. What Go's expressions lack is done by backtracking: looking
// around, back references, atomic groups and possessive repetition.
//
// It is not left to a library, as permissions are such expressions: regexp2 1.12, which
// has the dialect of .NET, takes \h, \R, \g{-1} and \Q...\E for other things without
// an error, and has no possessive repetition.
package pattern

import (
	"regexp"
	"strconv"
)

// A Pattern is a compiled expression. It is immutable.
type Pattern struct {
	re     *regexp.Regexp // nil if Go cannot do it
	match  matcher
	groups int // of match, the whole counted
}

// An Error says what is wrong with an expression, in the words of PCRE.
type Error struct {
	Reason string
	At     int // in bytes
}

func (e *Error) Error() string { return e.Reason + " at " + strconv.Itoa(e.At) }

// Compile reads an expression. Its error is an *Error.
func Compile(expr string) (*Pattern, error) {
	if re, err := regexp.Compile(expr); err == nil {
		return &Pattern{re: re}, nil
	}
	return compileBacktracking(expr)
}

// MatchString says whether s contains a match.
func (p *Pattern) MatchString(s string) bool {
	if p.re != nil {
		return p.re.MatchString(s)
	}
	return p.backtrack(s)
}
