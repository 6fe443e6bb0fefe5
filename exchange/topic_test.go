package exchange

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestTopicObserved holds what RabbitMQ 4.0 was seen to do.
func TestTopicObserved(t *testing.T) {
	patterns := []string{"#", "*", "a.#", "#.z", "a.*.c", "*.*", "a..c", "", "#.#", "a.#.z", "*.#", "A"}
	x := newExchange(t, "topic")
	for _, p := range patterns {
		bind(t, x, newQueue(p), p)
	}
	for _, tt := range []struct {
		key  string
		want []string
	}{
		{"", []string{"#", "", "#.#"}},
		{"a", []string{"#", "*", "a.#", "#.#", "*.#"}},
		{"a.b", []string{"#", "a.#", "*.*", "#.#", "*.#"}},
		{"a.b.c", []string{"#", "a.#", "a.*.c", "#.#", "*.#"}},
		{"a..c", []string{"#", "a.#", "a.*.c", "a..c", "#.#", "*.#"}},
		{"z", []string{"#", "*", "#.z", "#.#", "*.#"}},
		{"a.z", []string{"#", "a.#", "#.z", "*.*", "#.#", "a.#.z", "*.#"}},
		{"a.b.y.z", []string{"#", "a.#", "#.z", "#.#", "a.#.z", "*.#"}},
		{".", []string{"#", "*.*", "#.#", "*.#"}},
		{"a.", []string{"#", "a.#", "*.*", "#.#", "*.#"}},
		{"A", []string{"#", "*", "#.#", "*.#", "A"}},
		{"#", []string{"#", "*", "#.#", "*.#"}},
		{"*", []string{"#", "*", "#.#", "*.#"}},
	} {
		slices.Sort(tt.want)
		wantRouted(t, x, keyed(tt.key), tt.want...)
	}
}

// matchTopic is the stupid way to match, to test the trie against.
func matchTopic(pattern, key []string) bool {
	switch {
	case len(pattern) == 0:
		return len(key) == 0
	case pattern[0] == "#":
		return matchTopic(pattern[1:], key) || len(key) > 0 && matchTopic(pattern, key[1:])
	case len(key) == 0:
		return false
	}
	return (pattern[0] == "*" || pattern[0] == key[0]) && matchTopic(pattern[1:], key[1:])
}

func words(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ".")
}

func TestMatchTopic(t *testing.T) {
	for _, tt := range []struct {
		pattern, key string
		want         bool
	}{
		{"stock.*.nyse", "stock.ibm.nyse", true},
		{"stock.#", "stock", true},
		{"a.*", "a.", true},
		{"*", "", false},
		{"#.a.#.a", "a.b.a", true},
		{"#.a.#.a", "b.a.b", false},
		{"*.#.*", "a", false},
	} {
		if got := matchTopic(words(tt.pattern), words(tt.key)); got != tt.want {
			t.Errorf("matchTopic(%q, %q) = %v, want %v", tt.pattern, tt.key, got, tt.want)
		}
	}
}

func TestTopicAgainstStupidMatch(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	random := func(n int, from ...string) string {
		list := make([]string, rnd.IntN(n+1))
		for i := range list {
			list[i] = from[rnd.IntN(len(from))]
		}
		return strings.Join(list, ".")
	}
	for round := range 300 {
		x := newExchange(t, "topic")
		bound := map[string]*fakeQueue{}
		for range 40 {
			p := random(6, "#", "#", "*", "a", "b", "")
			if bound[p] != nil { // bound already: away with it, to leave holes
				x.Unbind(bound[p], nil, p, nil)
				delete(bound, p)
				continue
			}
			bound[p] = newQueue(p)
			bind(t, x, bound[p], p)
		}
		for range 40 {
			key := random(7, "a", "b", "", "*", "#")
			want := []string{}
			for p := range bound {
				if matchTopic(words(p), words(key)) {
					want = append(want, p)
				}
			}
			slices.Sort(want)
			if got := routed(x, keyed(key)); !slices.Equal(got, want) {
				t.Fatalf("round %d: key %q matches %q, want %q", round, key, got, want)
			}
		}
		for p, q := range bound {
			x.Unbind(q, nil, p, nil)
		}
		if !x.router.(*topic).root.empty() {
			t.Fatalf("round %d: nodes are left after the last unbind", round)
		}
	}
}

func TestTopicManyWordsAtOneNode(t *testing.T) {
	x := newExchange(t, "topic")
	for i := range 1000 {
		bind(t, x, newQueue(fmt.Sprint("q", i)), fmt.Sprintf("dev.%d.*.temp", i))
	}
	wantRouted(t, x, keyed("dev.7.a.temp"), "q7")
	wantRouted(t, x, keyed("dev.1000.a.temp"))
	for _, b := range x.Bindings() {
		x.Unbind(b.Queue, nil, b.Key, nil)
	}
	if !x.router.(*topic).root.empty() {
		t.Error("nodes are left after the last unbind")
	}
}

// TestTopicHashesTakePolynomialTime would not end if every '#' tried all words.
func TestTopicHashesTakePolynomialTime(t *testing.T) {
	x := newExchange(t, "topic")
	bind(t, x, newQueue("no"), strings.Repeat("#.a.", 30)+"b")
	bind(t, x, newQueue("yes"), strings.Repeat("#.a.", 30)+"#")
	wantRouted(t, x, keyed(strings.Repeat("a.", 100)+"a"), "yes")
}

func FuzzTopic(f *testing.F) {
	f.Add("#.a.*", "*.#", "a.b.a.c")
	f.Add("", ".", "..")
	f.Add("#.#", "a*.b#", "a.")
	f.Fuzz(func(t *testing.T, p1, p2, key string) {
		if len(words(p1)) > 12 || len(words(p2)) > 12 || len(words(key)) > 12 {
			return // the stupid match takes exponential time
		}
		x := newExchange(t, "topic")
		q1, q2 := newQueue("1"), newQueue("2")
		bind(t, x, q1, p1)
		bind(t, x, q2, p2)
		want := []string{}
		if matchTopic(words(p1), words(key)) {
			want = append(want, "1")
		}
		if matchTopic(words(p2), words(key)) {
			want = append(want, "2")
		}
		wantRouted(t, x, keyed(key), want...)
		x.UnbindQueue(q1)
		x.UnbindQueue(q2)
		if !x.router.(*topic).root.empty() {
			t.Error("nodes are left after the last unbind")
		}
	})
}
