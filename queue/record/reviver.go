package record

import (
	"fmt"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
)

const (
	// slabSize is how many messages that are read share an allocation, and so are
	// freed together only: 16 KB of them. With 4 KB draining 10 million messages of
	// 100 B takes 4 % more processor time, as the runtime sets up a span for two.
	slabSize = 341
	// slabBodies is about how much they have in bodies together, in bytes, as one that
	// somebody keeps keeps all of it.
	slabBodies = 32 << 10
	// mostEnvelopes is how many envelopes share an allocation, at most: as many as there
	// have been in the block already, as most blocks have few.
	mostEnvelopes = 113
)

// A Reviver makes the messages of a block of records, which refer to the records'
// memory. A store gives records that repeat a property block the same one: it is
// looked into once, and their messages share an envelope. Only one goroutine uses it.
type Reviver struct {
	left      int // records to come, at most
	messages  []message.Message
	envelopes []message.Envelope
	made      int               // envelopes
	last      *message.Envelope // of the record before
}

// NewReviver returns a Reviver for at most n records.
func NewReviver(n int) Reviver { return Reviver{left: n} }

// Revive is the function Revive for one of many records.
func (rv *Reviver) Revive(rec *persistence.Record) (*message.Message, error) {
	if len(rv.messages) == 0 {
		rv.messages = make([]message.Message, rv.together(rec, slabSize))
	}
	m := &rv.messages[0]
	rv.messages = rv.messages[1:]
	if rv.last == nil || !sameBlock(rv.last.Header, rec.Header) || rv.last.Exchange != rec.Exchange || rv.last.RoutingKey != rec.Key {
		e := rv.envelope(rec)
		if err := open(e, rec); err != nil {
			return nil, err
		}
		rv.last = e
	}
	rv.left--
	m.Envelope, m.Body, m.Time = rv.last, rec.Body, rec.Time
	if len(rec.Extra) > 0 {
		return m, reviveMore(m, rec)
	}
	return m, nil
}

// together is how many of what a record and those behind it need are allocated at
// once; they are taken to be of a size.
func (rv *Reviver) together(rec *persistence.Record, most int) int {
	return max(1, min(rv.left, most, slabBodies/(len(rec.Body)+1)))
}

func (rv *Reviver) envelope(rec *persistence.Record) *message.Envelope {
	if len(rv.envelopes) == 0 {
		rv.envelopes = make([]message.Envelope, rv.together(rec, max(1, min(rv.made, mostEnvelopes))))
	}
	e := &rv.envelopes[0]
	rv.envelopes = rv.envelopes[1:]
	rv.made++
	return e
}

// sameBlock says that a and b are the same memory.
func sameBlock(a, b []byte) bool {
	return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0]
}

// Revive is the message of a record, with an envelope of its own; both refer to the
// record's memory. The publish flag mandatory is not kept. Of a damaged record it
// is what could be read.
func Revive(rec *persistence.Record) (*message.Message, error) {
	m := &message.Message{Envelope: new(message.Envelope), Body: rec.Body, Time: rec.Time}
	err := open(m.Envelope, rec)
	if len(rec.Extra) > 0 {
		if bad := reviveMore(m, rec); bad != nil {
			err = bad
		}
	}
	return m, err
}

func reviveMore(m *message.Message, rec *persistence.Record) (err error) {
	if m.More, err = ParseMore(rec.Extra); err != nil {
		return fmt.Errorf("record %d: %w", rec.ID, err)
	}
	return nil
}
