package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
)

// A chunk is some messages in a row: what is written, read and filtered as one.
//
// Its record has the offset after the last message as id, and the time of the
// chunk. Extra describes it; all numbers are uvarints unless said:
//
//	version(1), flags(1)
//	messages in the chunk
//	bytes of their property blocks in deliveries
//	position in the stream, in bytes
//	segment: its number, how many messages and bytes of it are before
//	the log of the stream's tracker
//	[filter: its length(1) and the Bloom filter of the filter values]
//	[if it is apart: the message, without its body]
//
// The record's body is the messages one after another, see encoder; or, if the
// chunk is apart, the body of its only message, which others may share.
type chunk struct {
	first, next  uint64 // offsets; next is the one after the last
	time         int64  // Unix milliseconds; never falls from chunk to chunk
	pos          int64  // position of the chunk in the stream, in bytes
	segment      uint64
	segmentFirst uint64 // the first offset of the segment
	segmentPos   int64  // where the segment begins
	tracker      persistence.LogID
	headers      int // bytes of the property blocks in deliveries
	flags        byte
	bloom        []byte // nil if no message has a filter value
	extra, body  []byte // of the record
	data         []byte // the messages; a part of extra if the chunk is apart

	msgs []message.Single // nil until the chunk is decoded; then immutable

	// The fields below belong to the cache.
	newer, older *chunk
	weight       int64 // 0 if it is not in the cache
}

const (
	chunkVersion = 1

	// chunkSize is how much goes into a chunk at most, in bytes, but a message
	// that is larger. A reader keeps one chunk in memory. It is above what the
	// store makes share memory when it is read.
	chunkSize = 20 << 10
	// chunkMessages is how many messages go into a chunk at most.
	chunkMessages = 1024
	// apartSize is the body size from which a message is a chunk of its own
	// and is not copied into that, in bytes.
	apartSize = 16 << 10
)

// flags of a chunk.
const (
	apart      = 1 << iota
	filtered   // some message has a filter value
	unfiltered // some message has none
	chunkFlags = 1<<iota - 1
)

// extraSize is the most that Extra takes besides filter and message, in bytes.
const extraSize = 3 + 8*binary.MaxVarintLen64

var errChunk = errors.New("a chunk of the stream is damaged, or has a format that this version does not know")

// size is what the chunk takes in the stream, in bytes.
func (c *chunk) size() int64 { return int64(len(c.extra) + len(c.body)) }

// appendExtra appends the description, without the message of a chunk apart.
func (c *chunk) appendExtra(b []byte) []byte {
	b = append(b, chunkVersion, c.flags)
	b = binary.AppendUvarint(b, c.next-c.first)
	b = binary.AppendUvarint(b, uint64(c.headers))
	b = binary.AppendUvarint(b, uint64(c.pos))
	b = binary.AppendUvarint(b, c.segment)
	b = binary.AppendUvarint(b, c.first-c.segmentFirst)
	b = binary.AppendUvarint(b, uint64(c.pos-c.segmentPos))
	b = binary.AppendUvarint(b, uint64(c.tracker))
	if c.flags&filtered != 0 {
		b = append(b, byte(len(c.bloom)))
		b = append(b, c.bloom...)
	}
	return b
}

// open makes c the chunk of a record, whose memory it refers to.
func (c *chunk) open(rec *persistence.Record) error {
	r := reading{b: rec.Extra}
	version, flags := r.byte(), r.byte()
	count, headers := r.number(math.MaxInt32), r.number(math.MaxInt32)
	pos, segment := r.number(math.MaxInt64), r.uvarint()
	before, bytesBefore := r.uvarint(), r.number(math.MaxInt64)
	tracker := r.number(math.MaxUint32)
	var bloom []byte
	if flags&filtered != 0 {
		bloom = r.take(uint64(r.byte()))
	}
	if r.bad || version != chunkVersion || flags&^chunkFlags != 0 || count == 0 || count > rec.ID ||
		before > rec.ID-count || bytesBefore > pos || flags&apart != 0 && count != 1 {
		return fmt.Errorf("record %d: %w", rec.ID, errChunk)
	}
	*c = chunk{
		first: rec.ID - count, next: rec.ID, time: rec.Time, pos: int64(pos), segment: segment,
		segmentFirst: rec.ID - count - before, segmentPos: int64(pos - bytesBefore),
		tracker: persistence.LogID(tracker), headers: int(headers), flags: flags, bloom: bloom, extra: rec.Extra, body: rec.Body, data: rec.Body,
	}
	if flags&apart != 0 {
		c.data = r.b
	}
	return nil
}

// holds says whether an offset is in the chunk.
func (c *chunk) holds(offset uint64) bool { return c.first <= offset && offset < c.next }

// names are strings that the messages decoded last have, so that those after
// them need none of their own.
type names struct{ exchange, key string }

// decode makes the messages of the chunk, in msgs and with their property blocks
// in blocks if there is room.
func (c *chunk) decode(n *names, msgs []message.Single, blocks []byte) ([]message.Single, error) {
	count := int(c.next - c.first)
	if count > len(c.data) {
		return nil, fmt.Errorf("chunk at offset %d: %w", c.first, errChunk)
	}
	if cap(msgs) < count {
		msgs = make([]message.Single, count)
	}
	msgs = msgs[:count]
	d := decoder{reading: reading{b: c.data}, names: n, blocks: blocks[:0]}
	if cap(blocks) < c.headers {
		d.blocks = make([]byte, 0, c.headers)
	}
	for i := range msgs {
		m := msgs[i].Init()
		m.Time = c.time
		d.next(m, c.first+uint64(i))
		if c.flags&apart != 0 {
			m.Body = c.body
		} else {
			m.Body = d.bytes()
		}
		if d.bad {
			return nil, fmt.Errorf("message at offset %d: %w", c.first+uint64(i), errChunk)
		}
	}
	if len(d.b) > 0 {
		return nil, fmt.Errorf("chunk at offset %d: %w", c.first, errChunk)
	}
	return msgs, nil
}

// flags of a message in a chunk: what follows because it is not as in the
// message before. The first message of a chunk has all of it.
const (
	newExchange = 1 << iota
	newKey
	newHeader
	// fromProducer: the number of the producer and its sequence number follow.
	// Nothing writes them yet; readers skip them.
	fromProducer
	messageFlags = 1<<iota - 1
)

// An encoder writes the messages of a chunk:
//
//	flags(1), [exchange], [key],
//	[header: length, where its table is, where the offset goes, flags(1),
//	 priority(1), the property block],
//	[producer, sequence], body
//
// Strings and the body have their lengths before them.
type encoder struct {
	b       []byte
	names   names
	started bool
	headers int
}

// add appends a message without its body; h is the header last used, and is made
// that of the message.
func (e *encoder) add(m *message.Message, h *header) {
	flags := byte(0)
	if !e.started || m.Exchange != e.names.exchange {
		flags |= newExchange
	}
	if !e.started || m.RoutingKey != e.names.key {
		flags |= newKey
	}
	same := h.is(m.Header)
	if !same {
		h.parse(m.Header)
	}
	if !e.started || !same {
		flags |= newHeader
	}
	e.b = append(e.b, flags)
	if flags != 0 {
		e.addNew(flags, m, h)
	}
	e.headers += h.size()
}

func (e *encoder) addNew(flags byte, m *message.Message, h *header) {
	e.started = true
	if flags&newExchange != 0 {
		e.b = appendBytes(e.b, m.Exchange)
	}
	if flags&newKey != 0 {
		e.b = appendBytes(e.b, m.RoutingKey)
	}
	e.names = names{m.Exchange, m.RoutingKey}
	if flags&newHeader == 0 {
		return
	}
	e.b = binary.AppendUvarint(e.b, uint64(len(h.block)))
	e.b = binary.AppendUvarint(e.b, uint64(h.table))
	e.b = binary.AppendUvarint(e.b, uint64(h.at))
	e.b = append(e.b, h.flags, h.priority)
	e.b = append(e.b, h.block...)
}

func appendBytes[T string | []byte](b []byte, s T) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// A decoder reads messages.
type decoder struct {
	reading
	names  *names
	header header
	blocks []byte // the property blocks; never grows
}

// next reads one but for its body.
func (d *decoder) next(m *message.Message, offset uint64) {
	flags := d.byte()
	if flags&^messageFlags != 0 {
		d.fail()
	}
	if flags&newExchange != 0 {
		d.string(&d.names.exchange)
	}
	if flags&newKey != 0 {
		d.string(&d.names.key)
	}
	if flags&newHeader != 0 {
		d.takeHeader()
	}
	if flags&fromProducer != 0 {
		d.uvarint()
		d.uvarint()
	}
	h := &d.header
	n := len(d.blocks)
	if n+h.size() > cap(d.blocks) || len(h.block) == 0 {
		d.fail()
		return
	}
	d.blocks = h.appendTo(d.blocks, offset)
	m.Exchange, m.RoutingKey, m.Header = d.names.exchange, d.names.key, d.blocks[n:len(d.blocks):len(d.blocks)]
	m.Persistent, m.Priority = h.flags&persistentHeader != 0, h.priority
}

func (d *decoder) takeHeader() {
	length, table, at := d.uvarint(), d.uvarint(), d.uvarint()
	h := &d.header
	h.flags, h.priority = d.byte(), d.byte()
	h.block = d.take(length)
	if h.flags&^headerFlags != 0 || at > length || table > at || at-table < 4 {
		d.fail()
		h.block = nil
		return
	}
	h.table, h.at = int(table), int(at)
}

// reading takes values off the front of b; once bad it returns zeroes.
type reading struct {
	b   []byte
	bad bool
}

func (r *reading) fail() { r.b, r.bad = nil, true }

func (r *reading) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

func (r *reading) byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reading) uvarint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := r.b[0]
		r.b = r.b[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// number is a uvarint of at most limit.
func (r *reading) number(limit uint64) uint64 {
	v := r.uvarint()
	if v > limit {
		r.fail()
		return 0
	}
	return v
}

func (r *reading) bytes() []byte { return r.take(r.uvarint()) }

// string takes a string into s, and makes a new one only if it is another.
func (r *reading) string(s *string) {
	if b := r.bytes(); string(b) != *s {
		*s = string(b)
	}
}
