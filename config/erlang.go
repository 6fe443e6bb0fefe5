package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An erlKind says what a term is.
type erlKind int

const (
	erlAtom   erlKind = iota
	erlText           // "..." or <<"...">>
	erlNumber         // as it was written
	erlList
	erlTuple
)

// An erlTerm is a term of Erlang, as advanced.config has them.
type erlTerm struct {
	kind  erlKind
	text  string    // of an atom, text or number
	items []erlTerm // of a list or tuple
	line  int       // where it begins, from 1
}

// erlDepth is how deep lists and tuples may be in one another.
const erlDepth = 50

// An erlReader reads one text. It belongs to its goroutine.
type erlReader struct {
	rest string
	line int
}

// parseErlang reads one term with a full stop at its end, and comments.
func parseErlang(text string) (erlTerm, error) {
	r := &erlReader{rest: text, line: 1}
	t, err := r.term(0)
	if err == nil {
		r.blanks()
		if r.rest = strings.TrimPrefix(r.rest, "."); strings.TrimSpace(erlComment.ReplaceAllString(r.rest, "")) != "" {
			err = errors.New("there is something after the end")
		}
	}
	if err != nil {
		return t, fmt.Errorf("line %d: %w", r.line, err)
	}
	return t, nil
}

// blanks skips what means nothing.
func (r *erlReader) blanks() {
	for r.rest != "" {
		switch c := r.rest[0]; {
		case c == '\n':
			r.line++
			r.rest = r.rest[1:]
		case c == ' ' || c == '\t' || c == '\r':
			r.rest = r.rest[1:]
		case c == '%':
			end := strings.IndexByte(r.rest, '\n')
			if end < 0 {
				end = len(r.rest)
			}
			r.rest = r.rest[end:]
		default:
			return
		}
	}
}

func (r *erlReader) term(depth int) (erlTerm, error) {
	r.blanks()
	if r.rest == "" || depth > erlDepth {
		return erlTerm{}, errors.New("a term is missing, or too deep in others")
	}
	t := erlTerm{line: r.line}
	var err error
	switch c := r.rest[0]; {
	case c == '[':
		t.kind = erlList
		t.items, err = r.items("]", depth)
	case c == '{':
		t.kind = erlTuple
		t.items, err = r.items("}", depth)
	case c == '"':
		t.kind = erlText
		t.text, err = r.quoted('"')
	case c == '\'':
		t.text, err = r.quoted('\'')
	case strings.HasPrefix(r.rest, "<<"):
		t.kind = erlText
		t.text, err = r.binary()
	case c == '-' || c >= '0' && c <= '9':
		t.kind = erlNumber
		t.text, err = r.number()
	case c >= 'a' && c <= 'z':
		t.text = r.word()
	default:
		err = errors.New("want an Erlang term such as [{rabbit, [{heartbeat, 30}]}]. with atoms, numbers, texts, lists and tuples")
	}
	return t, err
}

// items are those of a list or tuple, to its end.
func (r *erlReader) items(end string, depth int) ([]erlTerm, error) {
	r.rest = r.rest[1:]
	items := []erlTerm{}
	for {
		r.blanks()
		if len(items) == 0 && strings.HasPrefix(r.rest, end) {
			r.rest = r.rest[1:]
			return items, nil
		}
		t, err := r.term(depth + 1)
		if err != nil {
			return nil, err
		}
		items = append(items, t)
		r.blanks()
		switch {
		case strings.HasPrefix(r.rest, end):
			r.rest = r.rest[1:]
			return items, nil
		case strings.HasPrefix(r.rest, ","):
			r.rest = r.rest[1:]
		default:
			return nil, fmt.Errorf("want a comma or %s", end)
		}
	}
}

// quoted is a text in quotes, with the escapes of a backslash.
func (r *erlReader) quoted(quote byte) (string, error) {
	var b strings.Builder
	for i := 1; i < len(r.rest); i++ {
		switch c := r.rest[i]; {
		case c == quote:
			r.line += strings.Count(r.rest[:i], "\n")
			r.rest = r.rest[i+1:]
			return b.String(), nil
		case c == '\\' && i+1 < len(r.rest):
			i++
			b.WriteByte(unescaped(r.rest[i]))
		default:
			b.WriteByte(c)
		}
	}
	return "", fmt.Errorf("the quote %c is not closed", quote)
}

// unescaped is what a letter after a backslash stands for.
func unescaped(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'e':
		return 0x1b
	case 's':
		return ' '
	}
	return c
}

// binary is <<"...">>.
func (r *erlReader) binary() (string, error) {
	r.rest = r.rest[2:]
	r.blanks()
	text := ""
	if strings.HasPrefix(r.rest, `"`) {
		var err error
		if text, err = r.quoted('"'); err != nil {
			return "", err
		}
		r.rest = strings.TrimPrefix(r.rest, "/utf8")
	}
	r.blanks()
	after, closed := strings.CutPrefix(r.rest, ">>")
	if !closed || !utf8.ValidString(text) {
		return "", errors.New(`want a binary such as <<"text">>`)
	}
	r.rest = after
	return text, nil
}

func (r *erlReader) number() (string, error) {
	end := 1
	for end < len(r.rest) && strings.IndexByte("0123456789.eE_+-", r.rest[end]) >= 0 {
		end++
	}
	// The full stop at the end is no part of the number.
	text := strings.TrimSuffix(r.rest[:end], ".")
	number := strings.ReplaceAll(text, "_", "")
	if _, err := strconv.ParseFloat(number, 64); err != nil {
		return "", fmt.Errorf("%s is no number", text)
	}
	r.rest = r.rest[len(text):]
	return number, nil
}

// word is an atom without quotes.
func (r *erlReader) word() string {
	end := strings.IndexFunc(r.rest, func(c rune) bool {
		return c != '_' && c != '@' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
	if end < 0 {
		end = len(r.rest)
	}
	word := r.rest[:end]
	r.rest = r.rest[end:]
	return word
}
