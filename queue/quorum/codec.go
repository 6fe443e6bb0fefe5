package quorum

import (
	"encoding/binary"
	"errors"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/record"
)

// Commands and snapshots are bytes to whoever replicates them; on one node nobody does,
// and only tests encode them: a machine that is told them again, or made of a snapshot,
// has to be in the same state. All integers are varints in their shortest form (signed
// ones zigzag), byte strings and lists have their length before them. A command is
//
//	version 1 byte, op 1 byte, time, then what the op has:
//	  enqueue            first, messages
//	  checkout           consumer, count, fresh
//	  settle, return, discard, forget   ids
//	  requeue            ids, list of dues: empty or one for each
//	  expire             count, fresh
//	  trim, wake         count
//	  purge              nothing
//	  rules              rules
//	  down               consumer
//
// A message is time, exchange, key, header, body, extra (see record.AppendMore).
const codecVersion = 2

var (
	errCodecVersion = errors.New("a command or snapshot has a format that this version does not know")
	errCodec        = errors.New("a command or snapshot is damaged")
)

// appendTo appends the encoding of the command to dst.
func (c *command) appendTo(dst []byte) []byte {
	dst = append(dst, codecVersion, byte(c.op))
	dst = binary.AppendVarint(dst, c.time)
	switch c.op {
	case opEnqueue:
		dst = binary.AppendUvarint(dst, uint64(c.first))
		dst = binary.AppendUvarint(dst, uint64(len(c.messages)))
		for _, m := range c.messages {
			dst = appendMessage(dst, m)
		}
	case opCheckout:
		dst = binary.AppendUvarint(dst, uint64(c.consumer))
		dst = binary.AppendUvarint(dst, uint64(c.count))
		dst = binary.AppendUvarint(dst, uint64(c.fresh))
	case opSettle, opReturn, opDiscard, opForget:
		dst = appendIDs(dst, c.ids)
	case opRequeue:
		dst = appendIDs(dst, c.ids)
		dst = binary.AppendUvarint(dst, uint64(len(c.dues)))
		for _, due := range c.dues {
			dst = binary.AppendUvarint(dst, uint64(due))
		}
	case opExpire:
		dst = binary.AppendUvarint(dst, uint64(c.count))
		dst = binary.AppendUvarint(dst, uint64(c.fresh))
	case opTrim, opWake:
		dst = binary.AppendUvarint(dst, uint64(c.count))
	case opRules:
		dst = appendRules(dst, &c.rules)
	case opDown:
		dst = binary.AppendUvarint(dst, uint64(c.consumer))
	}
	return dst
}

// parseCommand is the reverse of appendTo. Messages refer to the memory of b.
func parseCommand(b []byte) (*command, error) {
	if len(b) < 2 || b[0] != codecVersion {
		return nil, errCodecVersion
	}
	r := reader{b: b[2:]}
	c := &command{op: op(b[1]), time: r.varint()}
	switch c.op {
	case opEnqueue:
		c.first = r.id()
		for range r.length() {
			c.messages = append(c.messages, r.message())
		}
	case opCheckout:
		c.consumer, c.count, c.fresh = r.uint32(), r.int(), r.id()
	case opSettle, opReturn, opDiscard, opForget:
		c.ids = r.ids()
	case opRequeue:
		c.ids, c.dues = r.ids(), r.dues()
		if len(c.dues) != 0 && len(c.dues) != len(c.ids) {
			r.fail()
		}
	case opExpire:
		c.count, c.fresh = r.int(), r.id()
	case opTrim, opWake:
		c.count = r.int()
	case opRules:
		c.rules = r.rules()
	case opDown:
		c.consumer = r.uint32()
	case opPurge:
	default:
		return nil, errCodecVersion
	}
	if r.bad || len(r.b) > 0 {
		return nil, errCodec
	}
	return c, nil
}

func appendIDs(dst []byte, ids []queue.ID) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(ids)))
	for _, id := range ids {
		dst = binary.AppendUvarint(dst, uint64(id))
	}
	return dst
}

func appendRules(dst []byte, r *rules) []byte {
	for _, n := range []int64{r.ttl, r.maxLength, r.maxBytes, r.deliveryLimit} {
		dst = binary.AppendVarint(dst, n)
	}
	return append(dst, bit(r.refuses), byte(r.graves))
}

func bit(on bool) byte {
	if on {
		return 1
	}
	return 0
}

func appendMessage(dst []byte, m *message.Message) []byte {
	var rec persistence.Record
	record.Fill(&rec, m)
	dst = binary.AppendVarint(dst, rec.Time)
	dst = appendString(dst, rec.Exchange)
	dst = appendString(dst, rec.Key)
	dst = appendString(dst, rec.Header)
	dst = appendString(dst, rec.Body)
	return appendString(dst, rec.Extra)
}

func appendString[T string | []byte](dst []byte, s T) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// reader takes values off the front of b; once bad it returns zeroes.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) fail() { r.b, r.bad = nil, true }

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || n > 1 && r.b[n-1] == 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	u := r.uvarint()
	v := int64(u >> 1)
	if u&1 != 0 {
		v = ^v
	}
	return v
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

// number takes an integer of at most limit.
func (r *reader) number(limit uint64) uint64 {
	n := r.uvarint()
	if n > limit {
		r.fail()
		return 0
	}
	return n
}

func (r *reader) uint32() uint32 { return uint32(r.number(1<<32 - 1)) }

func (r *reader) int() int { return int(r.number(1<<63 - 1)) }

func (r *reader) id() queue.ID { return queue.ID(r.uvarint()) }

func (r *reader) flag() bool {
	n := r.byte()
	if n > 1 {
		r.fail()
	}
	return n == 1
}

// length takes the length of a list or string, of which each member takes at
// least a byte.
func (r *reader) length() int {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) bytes() []byte {
	n := r.length()
	s := r.b[:n:n]
	r.b = r.b[n:]
	return s
}

func (r *reader) ids() []queue.ID {
	var ids []queue.ID
	for range r.length() {
		ids = append(ids, r.id())
	}
	return ids
}

func (r *reader) dues() []int64 {
	var dues []int64
	for range r.length() {
		dues = append(dues, int64(r.int()))
	}
	return dues
}

func (r *reader) rules() rules {
	v := rules{ttl: r.varint(), maxLength: r.varint(), maxBytes: r.varint(), deliveryLimit: r.varint(),
		refuses: r.flag(), graves: graves(r.byte())}
	if v.graves > kept {
		r.fail()
	}
	return v
}

func (r *reader) message() *message.Message {
	rec := persistence.Record{Time: r.varint(), Exchange: string(r.bytes()), Key: string(r.bytes()),
		Header: r.bytes(), Body: r.bytes(), Extra: r.bytes()}
	m, err := record.Revive(&rec)
	if r.bad || err != nil {
		r.fail()
	}
	return m
}
