package quorum

import (
	"encoding/binary"
	"errors"

	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// noteLane is the lane of the log in which a queue keeps notes: how often a
// message was handed out, if that was more than once, and of what it died, if it
// is dead and still there. (That it was handed out at all is what the log keeps
// as its mark, see persistence.Log.Delivered.)
//
// A note is a record with an id of its own, written with the next commit like
// any other. The latest note about a message counts; one that is the latest of
// no message is settled. Its Extra is
//
//	version 1 byte, then for each message: id, count as varints, reason 1 byte
const noteLane persistence.Lane = lanes

const noteVersion = 1

// notes is what the log knows of messages that came back or died.
type notes struct {
	latest map[queue.ID]noted // by message
	alive  map[queue.ID]int   // by note: of how many messages it is the latest
	fresh  []written          // to be written at the end of the turn
	stale  []uint64           // notes to be settled
}

type noted struct {
	note   queue.ID
	count  uint32
	reason reason // 0 while it lives
}

type written struct {
	id     queue.ID
	count  uint32
	reason reason
}

// any says whether there is any note.
func (n *notes) any() bool { return len(n.latest) > 0 || len(n.stale) > 0 }

// write notes how often a message was handed out, and of what it died, at the
// end of the turn.
func (n *notes) write(id queue.ID, count uint32, why reason) {
	n.fresh = append(n.fresh, written{id, count, why})
}

// count is how often the message was handed out as far as notes know, or 0.
func (n *notes) count(id queue.ID) uint32 { return n.latest[id].count }

// set makes a note the latest one about a message.
func (n *notes) set(w written, note queue.ID) {
	n.forget(w.id)
	if n.latest == nil {
		n.latest, n.alive = make(map[queue.ID]noted), make(map[queue.ID]int)
	}
	n.latest[w.id] = noted{note, w.count, w.reason}
	n.alive[note]++
}

// forget drops what is noted about a message.
func (n *notes) forget(id queue.ID) {
	old, ok := n.latest[id]
	if !ok {
		return
	}
	delete(n.latest, id)
	n.alive[old.note]--
	if n.alive[old.note] == 0 {
		delete(n.alive, old.note)
		n.stale = append(n.stale, uint64(old.note))
	}
}

// forgetAll forgets all messages for which gone is true.
func (n *notes) forgetAll(gone func(id queue.ID) bool) {
	for id := range n.latest {
		if gone(id) {
			n.forget(id)
		}
	}
}

// takeStale appends the ids of the notes to be settled to dst.
func (n *notes) takeStale(dst []uint64) []uint64 {
	dst = append(dst, n.stale...)
	n.stale = n.stale[:0]
	return dst
}

// flushNotesLocked writes the notes of a turn as one record. A message that has
// left the queue meanwhile needs none.
func (q *Queue) flushNotesLocked() {
	n := &q.notes
	if len(n.fresh) == 0 {
		return
	}
	fresh := n.fresh[:0]
	for _, w := range n.fresh {
		if q.m.table.get(w.id) != nil {
			fresh = append(fresh, w)
		}
	}
	n.fresh = fresh[:0]
	if len(fresh) == 0 {
		return
	}
	q.lastID++
	q.recs = append(q.recs, persistence.Record{ID: uint64(q.lastID), Lane: noteLane, Time: q.nowLocked(), Extra: appendNote(nil, fresh)})
	q.now = 0
	q.log.Append(q.recs, nil)
	clear(q.recs)
	q.recs = q.recs[:0]
	for _, w := range fresh {
		n.set(w, q.lastID)
	}
	q.fx.gone = n.takeStale(q.fx.gone)
}

func appendNote(dst []byte, list []written) []byte {
	dst = append(dst, noteVersion)
	for _, w := range list {
		dst = binary.AppendUvarint(dst, uint64(w.id))
		dst = binary.AppendUvarint(dst, uint64(w.count))
		dst = append(dst, byte(w.reason))
	}
	return dst
}

var errNote = errors.New("a note on delivery counts is damaged or of a version that is not known")

func parseNote(b []byte) ([]written, error) {
	if len(b) == 0 || b[0] != noteVersion {
		return nil, errNote
	}
	var list []written
	for b = b[1:]; len(b) > 0; {
		id, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, errNote
		}
		count, k := binary.Uvarint(b[n:])
		if k <= 0 || count > 1<<32-1 || len(b) == n+k || b[n+k] > byte(deliveryLimit) {
			return nil, errNote
		}
		list = append(list, written{queue.ID(id), uint32(count), reason(b[n+k])})
		b = b[n+k+1:]
	}
	return list, nil
}
