package classic

import (
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/retry"
)

// A queue with priorities notes of each which messages were handed out, so that
// these are redelivered ones after a restart. Others have the log's own mark.

// markLocked notes deliveries of a queue with priorities.
func (q *Queue) markLocked(ds []queue.Delivery) {
	if _, ok := q.noteLane(); !ok {
		return
	}
	if q.notes == nil {
		q.notes = &retry.Notes{}
	}
	for i := range ds {
		if d := &ds[i]; d.Stored {
			q.notes.Mark(laneID(q.laneOf(d.Msg.Priority)), d.ID)
		}
	}
}

// handedOf is up to which message a lane was handed out, if notes say.
func (q *Queue) handedOf(lane int) queue.ID {
	if !q.multi || q.notes == nil {
		return 0
	}
	return q.notes.Marked(laneID(lane))
}
