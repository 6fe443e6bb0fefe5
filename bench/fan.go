package bench

import "strings"

// A fan says how many deliveries a message with some routing key leads to.
type fan struct {
	sc    *Scenario
	bound []binding
	known bool             // false for types of exchange whose rules are not ours
	exact map[string][]int // queues by binding key, where it has no wildcards
	wild  []wildcard
	per   []int // deliveries of a message in each queue
}

// A wildcard is a binding of a topic exchange whose key has wildcards.
type wildcard struct {
	queue int
	words []string
}

func newFan(sc *Scenario, bound []binding) *fan {
	f := &fan{sc: sc, bound: bound, exact: map[string][]int{}, per: make([]int, sc.Queues)}
	for i := range f.per {
		f.per[i] = sc.deliveriesOf(i)
	}
	switch {
	case sc.exchangeName() == "":
		f.known = len(sc.RoutingKeys) == 0
	case sc.Predeclared:
	default:
		f.known = sc.ExchangeType == "direct" || sc.ExchangeType == "fanout" || sc.ExchangeType == "topic" || sc.ExchangeType == "headers"
	}
	for _, b := range bound {
		if sc.ExchangeType == "topic" && strings.ContainsAny(b.key, "*#") {
			f.wild = append(f.wild, wildcard{b.queue, strings.Split(b.key, ".")})
			continue
		}
		f.exact[b.key] = append(f.exact[b.key], b.queue)
	}
	return f
}

// deliveriesOf is how often a message of the i-th queue is delivered: to each
// consumer of a stream, to one of any other queue.
func (sc *Scenario) deliveriesOf(i int) int {
	n := 0
	for c := range sc.Consumers {
		if c%sc.Queues == i {
			n++
		}
	}
	if sc.QueueType != "stream" {
		return min(n, 1)
	}
	return n
}

// of is the number of deliveries of the message i with this key; one, if that is
// not known.
func (f *fan) of(i int, key string) int {
	switch {
	case !f.known:
		return 1
	case f.sc.exchangeName() == "":
		return f.per[i%f.sc.keyCount()%f.sc.Queues]
	}
	queues := map[int]bool{}
	if f.sc.ExchangeType == "fanout" {
		for _, b := range f.bound {
			queues[b.queue] = true
		}
	}
	for _, q := range f.exact[key] {
		queues[q] = true
	}
	words := strings.Split(key, ".")
	for _, w := range f.wild {
		if matchTopic(w.words, words) {
			queues[w.queue] = true
		}
	}
	n := 0
	for q := range queues {
		n += f.per[q]
	}
	return n
}

// matchTopic says whether the words of a topic pattern match those of a key:
// "*" is one word, "#" any number (spec §3.1.3.3).
func matchTopic(pattern, key []string) bool {
	if len(pattern) == 0 {
		return len(key) == 0
	}
	if pattern[0] == "#" {
		return matchTopic(pattern[1:], key) || len(key) > 0 && matchTopic(pattern, key[1:])
	}
	return len(key) > 0 && (pattern[0] == "*" || pattern[0] == key[0]) && matchTopic(pattern[1:], key[1:])
}
