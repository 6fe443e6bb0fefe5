package exchange

import (
	"strings"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// topic routes to the bindings whose key, a pattern, matches the routing key
// (spec §3.1.3.3). Keys and patterns are words with dots between them; the
// empty key has no words, "a." has two. In a pattern '*' is any one word, an
// empty one too, and '#' any number of words, or none.
type topic struct{ root topicNode }

func newTopic(frames.Table) (Router, error) { return &topic{}, nil }

func (t *topic) Check(string, frames.Table, queue.Queue) error { return nil }

func (t *topic) Bind(b *Binding) {
	n := &t.root
	for at := firstWord(b.Key); at <= len(b.Key); {
		var word string
		word, at = nextWord(b.Key, at)
		n = n.grow(word)
	}
	n.ends.add(b)
}

func (t *topic) Unbind(b *Binding) { t.root.unbind(b, firstWord(b.Key)) }

func (t *topic) Route(m *message.Message, to *Matches) {
	for i := range keyCount(m) {
		key := keyAt(m, i)
		to.hashes.reset()
		t.root.match(key, firstWord(key), to)
	}
}

func (t *topic) ByKey() bool { return true }

// firstWord is the place of a key's first word. A place is an offset into the
// key; a place behind the key's end is where no word is left.
func firstWord(key string) int {
	if key == "" {
		return 1
	}
	return 0
}

// nextWord returns the word at this place and the place of the one after it.
func nextWord(key string, at int) (word string, next int) {
	if i := strings.IndexByte(key[at:], '.'); i >= 0 {
		return key[at : at+i], at + i + 1
	}
	return key[at:], len(key) + 1
}

// A topicNode stands for the beginning of patterns: the words on the way from
// the root. "#.#" is kept as "#", which matches the same keys.
type topicNode struct {
	ends  routerList // bindings whose pattern ends here
	words topicEdges // patterns that go on with a literal word
	star  *topicNode // ... with '*'
	hash  *topicNode // ... with '#'; nil if this node is one
	// isHash: the last word of this node is '#'; below: one before it is.
	isHash, below bool
}

// grow returns the node one word on; it makes it if there is none.
func (n *topicNode) grow(word string) *topicNode {
	below := n.below || n.isHash
	switch word {
	case "#":
		if n.isHash {
			return n
		}
		if n.hash == nil {
			n.hash = &topicNode{isHash: true, below: below}
		}
		return n.hash
	case "*":
		if n.star == nil {
			n.star = &topicNode{below: below}
		}
		return n.star
	}
	if c := n.words.find(word); c != nil {
		return c
	}
	c := &topicNode{below: below}
	n.words.add(word, c)
	return c
}

// unbind removes the binding, whose pattern from this place on is below this
// node, and the nodes that nothing needs any more. It returns whether this one
// is such a node.
func (n *topicNode) unbind(b *Binding, at int) (empty bool) {
	if at > len(b.Key) {
		n.ends.remove(b)
		return n.empty()
	}
	word, next := nextWord(b.Key, at)
	switch {
	case word == "#" && n.isHash:
		return n.unbind(b, next)
	case word == "#":
		if n.hash.unbind(b, next) {
			n.hash = nil
		}
	case word == "*":
		if n.star.unbind(b, next) {
			n.star = nil
		}
	default:
		if n.words.find(word).unbind(b, next) {
			n.words.remove(word)
		}
	}
	return n.empty()
}

func (n *topicNode) empty() bool { return len(n.ends) == 0 && n.leaf() }

// leaf says that no pattern goes on from here.
func (n *topicNode) leaf() bool { return n.star == nil && n.hash == nil && n.words.empty() }

// match adds the bindings below this node whose patterns match the key from
// this place on.
func (n *topicNode) match(key string, at int, to *Matches) {
	if n.hash != nil {
		n.hash.matchHash(key, at, to)
	}
	if at > len(key) {
		to.addAll(n.ends)
		return
	}
	n.matchWord(key, at, to)
}

// matchWord is match for the patterns that go on with a word.
func (n *topicNode) matchWord(key string, at int, to *Matches) {
	word, next := nextWord(key, at)
	if n.star != nil {
		n.star.match(key, next, to)
	}
	if c := n.words.find(word); c != nil {
		c.match(key, next, to)
	}
}

// matchHash is match for a node that is a '#': any number of words may go by
// before its patterns go on.
//
// A '#' below another is reached again from every place that the upper one
// tries, in rising order. The first time covers all later ones, so those are
// skipped; "#.a.#.a.#.a" would take exponential time otherwise.
func (n *topicNode) matchHash(key string, at int, to *Matches) {
	if n.below && !to.hashes.add(n) {
		return
	}
	to.addAll(n.ends)
	if n.leaf() {
		return
	}
	for at <= len(key) {
		n.matchWord(key, at, to)
		_, at = nextWord(key, at)
	}
}

// maxEdges is how many edges a node searches one by one; beyond it keeps a map.
const maxEdges = 8

// topicEdges are the literal words that lead on from a node: most nodes have
// one or two, a few have thousands.
type topicEdges struct {
	few  []topicEdge
	many map[string]*topicNode // in place of few, if not nil
}

type topicEdge struct {
	word string
	to   *topicNode
}

func (e *topicEdges) empty() bool { return len(e.few) == 0 && e.many == nil }

func (e *topicEdges) find(word string) *topicNode {
	if e.many != nil {
		return e.many[word]
	}
	for i := range e.few {
		if e.few[i].word == word {
			return e.few[i].to
		}
	}
	return nil
}

func (e *topicEdges) add(word string, to *topicNode) {
	word = strings.Clone(word) // it may outlive the binding whose key it is part of
	switch {
	case e.many != nil:
		e.many[word] = to
	case len(e.few) < maxEdges:
		e.few = append(e.few, topicEdge{word, to})
	default:
		e.many = make(map[string]*topicNode, 2*maxEdges)
		for _, f := range e.few {
			e.many[f.word] = f.to
		}
		e.many[word] = to
		e.few = nil
	}
}

func (e *topicEdges) remove(word string) {
	if e.many != nil {
		delete(e.many, word)
		if len(e.many) == 0 {
			e.many = nil
		}
		return
	}
	for i := range e.few {
		if e.few[i].word == word {
			last := len(e.few) - 1
			e.few[i] = e.few[last]
			e.few[last] = topicEdge{}
			e.few = e.few[:last]
			return
		}
	}
}
