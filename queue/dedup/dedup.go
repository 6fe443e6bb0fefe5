// Package dedup tells messages apart of which a queue is to hold one only: by an
// id in one of their headers, as the community plug-in for RabbitMQ does. An id
// counts from when its message comes until that leaves the queue, whatever way.
package dedup

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// An ID stands for the id of a message, of any length.
type ID [16]byte

// Digest is the ID of a header value; tag is its type letter. Integers of all
// types are the same if their value is.
func Digest(tag byte, value []byte) (id ID) {
	var room [128]byte
	b := append(room[:0], tag)
	if v, err := frames.DecodeField(tag, value); err == nil && tag != 'S' {
		if n, ok := frames.Integer(v); ok {
			b[0] = 'l'
			value = binary.BigEndian.AppendUint64(b[:1:1], uint64(n))[1:]
		}
	}
	sum := sha256.Sum256(append(b, value...))
	return ID(sum[:16])
}

// A Set is the ids of the messages that a queue holds, about 40 bytes for each.
// It has no lock: the queue's lock guards it.
type Set struct {
	header string      // immutable
	ids    map[ID]bool // whether a consumer has the message
}

// NewSet returns an empty set for ids in a header of this name.
func NewSet(header string) *Set { return &Set{header: header, ids: make(map[ID]bool)} }

// of is the id of a message with these properties, if it has one.
func (s *Set) of(properties []byte) (id ID, ok bool) {
	var p frames.Properties
	if err := p.Parse(properties); err != nil {
		return id, false // it was checked when it came in
	}
	tag, value, ok := frames.FindField(p.Headers, s.header)
	if !ok {
		return id, false
	}
	return Digest(tag, value), true
}

// Sift takes the duplicates of what is in the queue, and of one another, out of a
// batch that is about to be enqueued, and takes note of the rest. The result is
// the batch itself if there are none. For each run of entries with the same
// receipt that is there no more, that is in lost: the caller releases it.
func (s *Set) Sift(batch []queue.Entry) (rest []queue.Entry, lost []*message.Receipt) {
	for i := range batch {
		if s.Add(batch[i].Msg) {
			continue
		}
		rest = append(make([]queue.Entry, 0, len(batch)), batch[:i]...)
		for j := i + 1; j < len(batch); j++ {
			if s.Add(batch[j].Msg) {
				rest = append(rest, batch[j])
			}
		}
		return rest, lostReceipts(batch, rest)
	}
	return batch, nil
}

// Add takes note of a message; it returns false if it is a duplicate.
func (s *Set) Add(m *message.Message) bool {
	id, ok := s.of(m.Header)
	if !ok {
		return true
	}
	if _, duplicate := s.ids[id]; duplicate {
		return false
	}
	s.ids[id] = false
	return true
}

// lostReceipts are the receipts of the runs of batch that are missing in rest: one
// of two runs that have become one is, too.
func lostReceipts(batch, rest []queue.Entry) (lost []*message.Receipt) {
	before, after := runs(batch), runs(rest)
	for _, r := range before {
		if len(after) > 0 && after[0] == r {
			after = after[1:]
		} else if r != nil {
			lost = append(lost, r)
		}
	}
	return lost
}

// runs are the receipts of the runs of a batch, in order.
func runs(batch []queue.Entry) (list []*message.Receipt) {
	for i := range batch {
		if r := batch[i].Receipt; i == 0 || r != batch[i-1].Receipt {
			list = append(list, r)
		}
	}
	return list
}

// Hand notes that a consumer has these messages, or that they have come back.
func (s *Set) Hand(ds []queue.Delivery, out bool) {
	for i := range ds {
		if id, ok := s.of(ds[i].Msg.Header); ok {
			s.ids[id] = out
		}
	}
}

// Settled forgets messages that a consumer had.
func (s *Set) Settled(ds []queue.Delivery) {
	for i := range ds {
		s.Forget(ds[i].Msg)
	}
}

// Forget forgets a message that leaves the queue.
func (s *Set) Forget(m *message.Message) {
	if id, ok := s.of(m.Header); ok {
		delete(s.ids, id)
	}
}

// Purge forgets the messages that no consumer has.
func (s *Set) Purge() {
	for id, out := range s.ids {
		if !out {
			delete(s.ids, id)
		}
	}
}

// Restore takes note of what so many lanes of a log hold, but for messages that have
// left the queue: gone is true for those. It may be nil.
func (s *Set) Restore(log persistence.Log, lanes int, gone func(id queue.ID) bool) error {
	for _, info := range log.Lanes() {
		if int(info.Lane) >= lanes {
			continue
		}
		for rec, err := range persistence.Records(log, info.Lane, info.First) {
			if err != nil {
				return err
			}
			if gone != nil && gone(queue.ID(rec.ID)) {
				continue
			}
			if id, ok := s.of(rec.Header); ok {
				s.ids[id] = false
			}
		}
	}
	return nil
}
