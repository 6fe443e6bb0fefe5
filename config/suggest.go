package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxSuggestions is how many keys a message names at most.
const maxSuggestions = 3

// unknown is the error of a key that there is not, with those that may have
// been meant.
func unknown(e entry) error {
	near := nearest(e.key)
	if len(near) == 0 {
		return fmt.Errorf("%s: there is no setting %s: correct or remove the line", e.where(), e.key)
	}
	return fmt.Errorf("%s: there is no setting %s; did you mean %s?", e.where(), e.key, orList(near))
}

// orList joins words as in a, b or c.
func orList(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// A candidate is a key that may have been meant.
type candidate struct {
	key      string
	distance int // changes that make it of the wrong one
	idle     bool
}

// nearest are the keys that differ least, if they are not too different: those
// that act first, and none that differs much more than the best.
func nearest(wrong string) []string {
	acting := len(keys())
	var list []candidate
	for i, p := range patterns() {
		key := named(p, wrong)
		if d := distance(wrong, key); d <= len(wrong)/3 {
			list = append(list, candidate{key, d, i >= acting})
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		if a.idle != b.idle {
			return cmp.Compare(number(a.idle), number(b.idle))
		}
		return cmp.Compare(a.distance, b.distance)
	})
	var near []string
	for _, c := range list {
		if c.distance <= 2*list[0].distance && c.idle == list[0].idle && !slices.Contains(near, c.key) && len(near) < maxSuggestions {
			near = append(near, c.key)
		}
	}
	return near
}

// named puts the part of a wrong key in place of a pattern's *, the last part if
// it has too few.
func named(pattern, wrong string) string {
	before, _, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern
	}
	parts := strings.Split(wrong, ".")
	at := min(strings.Count(before, "."), len(parts)-1)
	return strings.Replace(pattern, "*", parts[at], 1)
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// distance is how many bytes must be put in, taken out or replaced to make b
// of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
