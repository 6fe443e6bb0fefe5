package auth

import (
	"regexp/syntax"
	"strings"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/pattern"
)

// An expression is a compiled permission: an unanchored regular expression. The
// shapes that nearly all permissions have are matched without one. The zero
// value matches nothing. It is immutable.
type expression struct {
	shape   shape
	literal string           // of matchExact and matchPrefix
	re      *pattern.Pattern // of matchRegexp
}

type shape byte

const (
	matchNothing shape = iota
	matchAll           // .*
	matchExact         // ^literal$
	matchPrefix        // ^literal and ^literal.*
	matchRegexp
)

// compile reads a permission. The empty one stands for ^$, which matches only
// the empty name (RabbitMQ 4.0).
func compile(expr string) (expression, error) {
	if expr == "" {
		expr = "^$"
	}
	re, err := pattern.Compile(expr)
	if err != nil {
		return expression{}, frames.Errorf(frames.PreconditionFailed, "invalid regular expression '%s': %s", expr, err)
	}
	if p, ok := simple(expr); ok {
		return p, nil
	}
	return expression{shape: matchRegexp, re: re}, nil
}

// simple recognises the expressions that need no regular expression.
func simple(expr string) (expression, bool) {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return expression{}, false
	}
	parts := []*syntax.Regexp{tree}
	if tree.Op == syntax.OpConcat {
		parts = tree.Sub
	}
	anchored := parts[0].Op == syntax.OpBeginText
	if anchored {
		parts = parts[1:]
	}
	if len(parts) == 1 && isDotStar(parts[0]) {
		return expression{shape: matchAll}, true
	}
	if !anchored {
		return expression{}, false
	}
	var literal string
	if len(parts) > 0 && parts[0].Op == syntax.OpLiteral && parts[0].Flags&syntax.FoldCase == 0 {
		literal = string(parts[0].Rune)
		parts = parts[1:]
	}
	switch {
	case len(parts) == 0, len(parts) == 1 && isDotStar(parts[0]):
		return expression{shape: matchPrefix, literal: literal}, true
	case len(parts) == 1 && parts[0].Op == syntax.OpEndText:
		return expression{shape: matchExact, literal: literal}, true
	}
	return expression{}, false
}

func isDotStar(re *syntax.Regexp) bool {
	return re.Op == syntax.OpStar &&
		(re.Sub[0].Op == syntax.OpAnyCharNotNL || re.Sub[0].Op == syntax.OpAnyChar)
}

func (p *expression) match(name string) bool {
	switch p.shape {
	case matchAll:
		return true
	case matchExact:
		return name == p.literal
	case matchPrefix:
		return strings.HasPrefix(name, p.literal)
	case matchRegexp:
		return p.re.MatchString(name)
	}
	return false
}
