package exchange

import (
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// consistentHash routes to one destination, each in proportion to its weight,
// the binding key, such that a change of bindings moves few messages to other
// destinations (RabbitMQ 4.0: the consistent hash exchange plugin).
//
// A destination has as many buckets as its weight. When one goes, the last
// buckets take the places of its own.
type consistentHash struct {
	header   string // hash this header's value, if not ""
	property uint16 // hash this property, if not 0; a flag of frames

	buckets []bucket
	members map[destination]*hashMember
}

// A bucket is one place of a member.
type bucket struct {
	member *hashMember
	i      int // member.at[i] is this bucket's place
}

// A hashMember is a destination with its buckets. The first binding's weight
// counts; further ones wait for it to go.
type hashMember struct {
	bindings []*Binding
	at       []int
}

// maxWeight is the most buckets of one destination. RabbitMQ has no limit, but
// its memory has.
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
		return frames.Errorf(frames.PreconditionFailed, "The binding key must be an integer: %s", frames.ErlangBinary([]byte(key)))
	case n < 1:
		return frames.Errorf(frames.PreconditionFailed, "The binding key must be greater than 0")
	case n > maxWeight:
		return frames.Errorf(frames.PreconditionFailed, "The binding key must be at most %d: it is a number of buckets", maxWeight)
	}
	return nil
}

func (h *consistentHash) Bind(b *Binding) {
	m := h.members[b.destination()]
	if m == nil {
		m = &hashMember{}
		h.members[b.destination()] = m
	}
	m.bindings = append(m.bindings, b)
	if len(m.bindings) == 1 {
		h.addBuckets(m)
	}
}

func (h *consistentHash) Unbind(b *Binding) {
	m := h.members[b.destination()]
	i := 0
	for m.bindings[i] != b {
		i++
	}
	m.bindings = append(m.bindings[:i], m.bindings[i+1:]...)
	if i > 0 {
		return
	}
	h.removeBuckets(m)
	if len(m.bindings) == 0 {
		delete(h.members, b.destination())
		return
	}
	h.addBuckets(m)
}

func (h *consistentHash) addBuckets(m *hashMember) {
	weight, _ := strconv.Atoi(m.bindings[0].Key) // Check has seen it
	for i := range weight {
		m.at = append(m.at, len(h.buckets))
		h.buckets = append(h.buckets, bucket{m, i})
	}
}

func (h *consistentHash) removeBuckets(m *hashMember) {
	for i := len(m.at) - 1; i >= 0; i-- {
		last := len(h.buckets) - 1
		moved := h.buckets[last]
		moved.member.at[moved.i] = m.at[i]
		h.buckets[m.at[i]] = moved
		h.buckets[last] = bucket{}
		h.buckets = h.buckets[:last]
	}
	m.at = nil
}

func (h *consistentHash) Route(m *message.Message, to *Matches) {
	if len(h.buckets) == 0 {
		return
	}
	i := jump(h.hash(m).sum(), len(h.buckets))
	to.add(h.buckets[i].member.bindings[0])
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
