package retry

import (
	"encoding/binary"

	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// marks say of each lane up to which message it was handed out. A log has one mark
// for all of its lanes (see persistence.Log.Delivered), which says nothing where
// the lanes of a queue are emptied one before the other. They are records among
// the notes, the latest one of each lane:
//
//	version 1 byte, lane 1 byte, id as varint
const markVersion = 3

// A mark is the latest one of a lane.
type mark struct {
	upTo    queue.ID
	record  uint64 // 0 if it is not written
	pending bool   // it is to be written
}

// Mark notes, at the end of the turn, that a lane was handed out up to a message.
func (n *Notes) Mark(lane persistence.Lane, upTo queue.ID) {
	m := n.marks[lane]
	if upTo <= m.upTo {
		return
	}
	if n.marks == nil {
		n.marks = make(map[persistence.Lane]mark)
	}
	m.upTo, m.pending = upTo, true
	n.marks[lane] = m
	n.marked = true
}

// Marked is up to which message a lane was handed out, as far as is known.
func (n *Notes) Marked(lane persistence.Lane) queue.ID { return n.marks[lane].upTo }

// flushMarks makes the records of new marks.
func (n *Notes) flushMarks(dst []persistence.Record, notes persistence.Lane, last queue.ID, now int64) []persistence.Record {
	if !n.marked {
		return dst
	}
	n.marked = false
	for lane, m := range n.marks {
		if !m.pending {
			continue
		}
		last++
		if m.record != 0 {
			n.stale = append(n.stale, m.record)
		}
		m.record, m.pending = uint64(last), false
		n.marks[lane] = m
		extra := binary.AppendUvarint([]byte{markVersion, byte(lane)}, uint64(m.upTo))
		dst = append(dst, persistence.Record{ID: uint64(last), Lane: notes, Time: now, Extra: extra})
	}
	return dst
}

// restoreMark takes over the mark of a record.
func (n *Notes) restoreMark(b []byte, record uint64) error {
	lane, upTo, err := parseMark(b)
	if err != nil {
		return err
	}
	if n.marks == nil {
		n.marks = make(map[persistence.Lane]mark)
	}
	if old := n.marks[lane].record; old != 0 {
		n.stale = append(n.stale, old)
	}
	n.marks[lane] = mark{upTo: upTo, record: record}
	return nil
}

func parseMark(b []byte) (lane persistence.Lane, upTo queue.ID, err error) {
	if len(b) < 2 || b[0] != markVersion {
		return 0, 0, errNotes
	}
	r := noteReader{b: b[2:]}
	upTo = queue.ID(r.number(1<<64 - 1))
	if r.bad || len(r.b) > 0 {
		return 0, 0, errNotes
	}
	return persistence.Lane(b[1]), upTo, nil
}
