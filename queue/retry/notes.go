package retry

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// A Note is what a queue keeps in its log of a message that came back or died.
type Note struct {
	ID     queue.ID
	Count  uint32           // how often it was handed out
	Reason uint8            // why it died, by the numbers of its queue; 0 while it lives
	Due    int64            // until when it waits, Unix milliseconds; 0 if it does not
	Lane   persistence.Lane // of the message
	Size   int64            // of its body in bytes, if it waits
}

// Notes are the notes of one queue. Each is a record in a lane of the log that the
// queue has for them, with an id of its own, and is written with the next commit
// like any other record. The latest note about a message counts. It is settled
// together with the message, so that no note outlives its message.
//
// They have no lock: the queue's lock guards them. The zero value is empty.
type Notes struct {
	latest map[queue.ID]noted // by message
	fresh  []Note             // to be written at the end of the turn
	stale  []uint64           // records to be settled
	// joint counts the messages whose latest note shares a record, by that: an
	// earlier version wrote those of a turn as one.
	joint map[queue.ID]int

	marks  map[persistence.Lane]mark
	marked bool // some of them are to be written
}

// noted is a Note and the id of its record.
type noted struct {
	record queue.ID
	due    int64
	size   int64
	count  uint32
	lane   persistence.Lane
	reason uint8
}

// Any says whether there is anything to forget or to settle.
func (n *Notes) Any() bool { return len(n.latest) > 0 || len(n.stale) > 0 || len(n.marks) > 0 }

// Of is the latest written note about a message, or the zero value.
func (n *Notes) Of(id queue.ID) Note {
	v, ok := n.latest[id]
	if !ok {
		return Note{}
	}
	return v.note(id)
}

func (v noted) note(id queue.ID) Note {
	return Note{ID: id, Count: v.count, Reason: v.reason, Due: v.due, Lane: v.lane, Size: v.size}
}

// Write notes something at the end of the turn.
func (n *Notes) Write(v Note) { n.fresh = append(n.fresh, v) }

// Fresh says whether something is to be written.
func (n *Notes) Fresh() bool { return len(n.fresh) > 0 || n.marked }

// Flush makes the records of what was to be written, with the ids after last, but
// for what keep is false for: the message has left the queue meanwhile. It appends
// them to dst; the caller appends them to the log. now is in Unix milliseconds.
func (n *Notes) Flush(dst []persistence.Record, lane persistence.Lane, last queue.ID, now int64, keep func(id queue.ID) bool) []persistence.Record {
	var extra []byte
	if len(n.fresh) > 0 {
		extra = make([]byte, 0, len(n.fresh)*usualNote)
	}
	for i := range n.fresh {
		v := &n.fresh[i]
		if !keep(v.ID) {
			continue
		}
		last++
		n.set(v, last)
		from := len(extra)
		extra = appendNotes(extra, n.fresh[i:i+1])
		dst = append(dst, persistence.Record{ID: uint64(last), Lane: lane, Time: now, Extra: extra[from:len(extra):len(extra)]})
	}
	n.fresh = n.fresh[:0]
	if cap(n.fresh) > keptFresh {
		n.fresh = nil
	}
	return n.flushMarks(dst, lane, last, now)
}

// usualNote is what a note mostly takes at most, in bytes.
const usualNote = 24

// keptFresh is for how many notes of a turn memory is kept.
const keptFresh = 1024

// set makes a note the latest one about a message.
func (n *Notes) set(v *Note, record queue.ID) {
	n.Forget(v.ID)
	if n.latest == nil {
		n.latest = make(map[queue.ID]noted)
	}
	n.latest[v.ID] = noted{record, v.Due, v.Size, v.Count, v.Lane, v.Reason}
}

// Forget drops what is noted about a message.
func (n *Notes) Forget(id queue.ID) {
	old, ok := n.latest[id]
	if !ok {
		return
	}
	delete(n.latest, id)
	if left := n.joint[old.record]; left > 1 {
		n.joint[old.record] = left - 1
		return
	}
	delete(n.joint, old.record)
	n.stale = append(n.stale, uint64(old.record))
}

// ForgetAll forgets all messages for which gone is true.
func (n *Notes) ForgetAll(gone func(v Note) bool) {
	for id, v := range n.latest {
		if gone(v.note(id)) {
			n.Forget(id)
		}
	}
}

// TakeStale appends the ids of the records to be settled to dst.
func (n *Notes) TakeStale(dst []uint64) []uint64 {
	dst = append(dst, n.stale...)
	n.stale = n.stale[:0]
	return dst
}

// Read reads all notes of a lane. Those whose message is not there any more, as
// a crash came between the two commits, are settled, and so are those that a later
// one replaces.
func (n *Notes) Read(log persistence.Log, lane persistence.Lane) error {
	for rec, err := range persistence.Records(log, lane, 0) {
		if err != nil {
			return err
		}
		if len(rec.Extra) > 0 && rec.Extra[0] == markVersion {
			if err := n.restoreMark(rec.Extra, rec.ID); err != nil {
				return err
			}
			continue
		}
		list, err := parseNotes(rec.Extra)
		if err != nil {
			return err
		}
		n.restore(list, queue.ID(rec.ID))
	}
	n.ForgetAll(func(v Note) bool { return !log.Holds(uint64(v.ID)) })
	log.Settle(n.TakeStale(nil))
	return nil
}

// restore takes over the notes of a record.
func (n *Notes) restore(list []Note, record queue.ID) {
	for j := range list {
		n.set(&list[j], record)
	}
	if len(list) > 1 {
		if n.joint == nil {
			n.joint = make(map[queue.ID]int)
		}
		n.joint[record] = len(list)
	}
}

// All calls f with the latest note about each message, in no order. It must not
// change the notes.
func (n *Notes) All(f func(v Note)) {
	for id, v := range n.latest {
		f(v.note(id))
	}
}

// The Extra of a record of notes is
//
//	version 1 byte, then for each message: id, count as varints, reason 1 byte;
//	since version 2 also lane 1 byte, due as varint, and if that is not 0, size
const (
	firstVersion = 1
	noteVersion  = 2
)

func appendNotes(dst []byte, list []Note) []byte {
	dst = append(dst, noteVersion)
	for i := range list {
		v := &list[i]
		dst = binary.AppendUvarint(dst, uint64(v.ID))
		dst = binary.AppendUvarint(dst, uint64(v.Count))
		dst = append(dst, v.Reason, byte(v.Lane))
		dst = binary.AppendUvarint(dst, uint64(v.Due))
		if v.Due != 0 {
			dst = binary.AppendUvarint(dst, uint64(v.Size))
		}
	}
	return dst
}

var errNotes = errors.New("what is noted of messages that came back is damaged or of a version that is not known")

// parseNotes is the reverse of appendNotes.
func parseNotes(b []byte) ([]Note, error) {
	if len(b) == 0 || b[0] != firstVersion && b[0] != noteVersion {
		return nil, errNotes
	}
	r := noteReader{b: b[1:]}
	var list []Note
	for len(r.b) > 0 {
		v := Note{ID: queue.ID(r.number(math.MaxUint64)), Count: uint32(r.number(math.MaxUint32)), Reason: r.byte()}
		if b[0] != firstVersion {
			v.Lane, v.Due = persistence.Lane(r.byte()), int64(r.number(math.MaxInt64))
		}
		if v.Due != 0 {
			v.Size = int64(r.number(math.MaxInt64))
		}
		list = append(list, v)
	}
	if r.bad {
		return nil, errNotes
	}
	return list, nil
}

// noteReader takes values off the front of b; once bad it returns zeroes.
type noteReader struct {
	b   []byte
	bad bool
}

// number takes an integer in its shortest form, of at most limit.
func (r *noteReader) number(limit uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || n > 1 && r.b[n-1] == 0 || v > limit {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *noteReader) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}
