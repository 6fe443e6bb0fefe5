package queue

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/leveretmq/leveret/frames"
)

// binaryTerm prints a string as an Erlang binary.
func binaryTerm(s string) string {
	if !utf8.ValidString(s) || isASCII(s) {
		return frames.ErlangBinary([]byte(s))
	}
	return `<<"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"/utf8>>`
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// floatTerm prints a float so that it cannot be taken for an integer.
func floatTerm(f float64) string {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if strings.ContainsAny(s, ".eIN") {
		return s
	}
	return s + ".0"
}

// listTerm prints a list of n items.
func listTerm(n int, item func(i int) string) string {
	var s strings.Builder
	s.WriteByte('[')
	for i := range n {
		if i > 0 {
			s.WriteByte(',')
		}
		s.WriteString(item(i))
	}
	s.WriteByte(']')
	return s.String()
}
