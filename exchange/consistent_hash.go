package exchange

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// consistentHash routes to one destination, each in proportion to its weight,
// the binding key, such that a change of bindings moves few messages to other
// destinations (RabbitMQ 4.0: the consistent hash exchange plugin).
//
// Which one that is depends on the bindings alone, and not on what was bound before
// or in which order, so that a restart moves nothing: every destination draws a
// number for each hash, from its name, and the best one wins (Thaler and
// Ravishankar, "Using name-based mappings to increase hit rates", 1998). One that
// comes takes its share from all; what one had that goes is shared by all.
type consistentHash struct {
	header   string // hash this header's value, if not ""
	property uint16 // hash this property, if not 0; a flag of frames

	classes []hashClass // by weight, ascending
	members map[destination]*hashMember
}

// A hashClass is the destinations of one weight: the highest number wins there.
type hashClass struct {
	weight  int
	seeds   []hash        // of the members
	members []*hashMember // in the order of compareBindings
}

// A hashMember is a destination with its bindings, the oldest first. That one's
// weight counts; further ones wait for it to go (RabbitMQ 4.0).
type hashMember struct {
	bindings []*Binding
	weight   int // that counts now
}

// maxWeight is the largest weight. In RabbitMQ it is a number of buckets, which has
// no limit, but its memory has.
const maxWeight = 1_000_000

func newConsistentHash(args frames.Table) (Router, error) {
	h := &consistentHash{members: make(map[destination]*hashMember)}
	header, hasHeader := args.Lookup("hash-header")
	property, hasProperty := args.Lookup("hash-property")
	switch {
	case hasHeader && hasProperty:
		return nil, frames.Errorf(frames.PreconditionFailed, "hash-header and hash-property are mutually exclusive")
	case hasHeader:
		name, ok := header.(string)
		if !ok || name == "" {
			return nil, frames.Errorf(frames.PreconditionFailed, "Unsupported header: %s; expected the name of a header, a longstr", frames.Term(header))
		}
		h.header = name
	case hasProperty:
		switch property {
		case "correlation_id":
			h.property = frames.FlagCorrelationID
		case "message_id":
			h.property = frames.FlagMessageID
		case "timestamp":
			h.property = frames.FlagTimestamp
		default:
			return nil, frames.Errorf(frames.PreconditionFailed, "Unsupported property: %s", propertyName(property))
		}
	}
	return h, nil
}

// propertyName prints a hash-property that is none.
func propertyName(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return frames.Term(v)
}

func (h *consistentHash) Check(key string, _ frames.Table, _ queue.Queue) error {
	n, err := strconv.Atoi(key) // out of range, n is the nearest there is
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return frames.Errorf(frames.PreconditionFailed, "The binding key must be an integer: %s", frames.BinaryTerm(key))
	case n < 1:
		return frames.Errorf(frames.PreconditionFailed, "The binding key must be greater than 0")
	case n > maxWeight:
		return frames.Errorf(frames.PreconditionFailed, "The binding key must be at most %d: it is a weight", maxWeight)
	}
	return nil
}

func (h *consistentHash) Bind(b *Binding) {
	m := h.members[b.destination()]
	if m == nil {
		m = &hashMember{}
		h.members[b.destination()] = m
	}
	i := len(m.bindings)
	for i > 0 && older(b, m.bindings[i-1]) {
		i--
	}
	m.bindings = slices.Insert(m.bindings, i, b)
	h.place(m)
}

// older says whether a was bound before b, as far as that is known.
func older(a, b *Binding) bool {
	if a.Since != b.Since {
		return a.Since < b.Since
	}
	return weightOf(a) < weightOf(b)
}

func weightOf(b *Binding) int {
	weight, _ := strconv.Atoi(b.Key) // Check has seen it
	return weight
}

func (h *consistentHash) Unbind(b *Binding) {
	m := h.members[b.destination()]
	if len(m.bindings) == 1 {
		h.leave(m)
		delete(h.members, b.destination())
		return
	}
	i := slices.Index(m.bindings, b)
	m.bindings = slices.Delete(m.bindings, i, i+1)
	h.place(m)
}

// place puts a member into the class of its first binding.
func (h *consistentHash) place(m *hashMember) {
	b := m.bindings[0]
	weight := weightOf(b)
	if weight == m.weight {
		return
	}
	if m.weight > 0 {
		h.leave(m)
	}
	m.weight = weight
	i, found := h.class(weight)
	if !found {
		h.classes = slices.Insert(h.classes, i, hashClass{weight: weight})
	}
	c := &h.classes[i]
	at := c.index(b)
	c.members = slices.Insert(c.members, at, m)
	c.seeds = slices.Insert(c.seeds, at, hash(emptyHash.octet(byte(rank(b))).string(b.destinationName()).sum()))
}

// leave takes a member out of its class.
func (h *consistentHash) leave(m *hashMember) {
	i, _ := h.class(m.weight)
	c := &h.classes[i]
	at := c.index(m.bindings[0])
	for c.members[at] != m { // another queue of the name, which is about to go
		at++
	}
	c.members = slices.Delete(c.members, at, at+1)
	c.seeds = slices.Delete(c.seeds, at, at+1)
	if len(c.members) == 0 {
		h.classes = slices.Delete(h.classes, i, i+1)
	}
}

func (h *consistentHash) class(weight int) (i int, found bool) {
	return slices.BinarySearchFunc(h.classes, weight, func(c hashClass, weight int) int { return cmp.Compare(c.weight, weight) })
}

// index is the place of a binding's destination.
func (c *hashClass) index(b *Binding) int {
	i, _ := slices.BinarySearchFunc(c.members, b, func(m *hashMember, b *Binding) int {
		return compareDestinations(m.bindings[0], b)
	})
	return i
}

// Route takes about 2 ns for each destination (BenchmarkRouteConsistentHash1000), and
// 10 for each weight if there are different ones.
func (h *consistentHash) Route(m *message.Message, to *Matches) {
	if len(h.classes) == 0 {
		return
	}
	sum := h.hash(m).sum()
	best, i := h.classes[0].highest(sum)
	first := h.classes[0].members[i]
	if len(h.classes) > 1 {
		least := lot(best, h.classes[0].weight)
		for j := 1; j < len(h.classes); j++ {
			c := &h.classes[j]
			high, i := c.highest(sum)
			if l := lot(high, c.weight); l < least {
				least, first = l, c.members[i]
			}
		}
	}
	to.add(first.bindings[0])
}

// highest is the highest number of the class for a hash, and whose it is.
func (c *hashClass) highest(sum uint64) (number uint64, i int) {
	for j, seed := range c.seeds {
		if n := (hash(sum) ^ seed).sum(); n > number {
			number, i = n, j
		}
	}
	return number, i
}

// lot makes a number comparable with those of other weights: of exponentially
// distributed values, each with the weight as its rate, the least is one's own as
// often as the weight's share is.
func lot(number uint64, weight int) float64 {
	uniform := (float64(number>>11) + 0.5) / (1 << 53)
	return -math.Log(uniform) / float64(weight)
}

func (h *consistentHash) ByKey() bool { return h.header == "" && h.property == 0 }

// hash is the hash of what the exchange's arguments name. All messages that
// lack it have the same.
func (h *consistentHash) hash(m *message.Message) hash {
	if h.ByKey() {
		return keysHash(m)
	}
	var p frames.Properties
	if p.Parse(m.Header) != nil {
		return emptyHash
	}
	switch {
	case h.header != "":
		tag, value, ok := frames.FindField(p.Headers, h.header)
		if !ok {
			return emptyHash
		}
		if kindOf(tag) == integer { // of whatever width
			return emptyHash.bytes(binary.BigEndian.AppendUint64(make([]byte, 0, 8), uint64(decodeInteger(tag, value))))
		}
		return emptyHash.bytes(value)
	case !p.Has(h.property):
		return emptyHash
	case h.property == frames.FlagCorrelationID:
		return emptyHash.bytes(p.CorrelationID)
	case h.property == frames.FlagMessageID:
		return emptyHash.bytes(p.MessageID)
	}
	return emptyHash.bytes(binary.BigEndian.AppendUint64(make([]byte, 0, 8), p.Timestamp))
}
