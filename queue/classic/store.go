package classic

import (
	"fmt"

	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/record"
)

// laneID is the lane of the log for messages of a priority.
func laneID(priority int) persistence.Lane { return persistence.Lane(priority) }

// open makes the log of a new durable queue, or takes over what the log of a
// reopened one holds. Nothing is read: all of it counts as paged out.
func (q *Queue) open() error {
	defer func() { q.env.Store = nil }() // it is not needed any more
	if q.env.LogID == 0 {
		log, err := q.env.Store.NewLog()
		if err != nil {
			return err
		}
		q.log = log
		return nil
	}
	log, err := q.env.Store.OpenLog(q.env.LogID)
	if err != nil {
		return err
	}
	q.log = log
	q.quiet = true
	q.lastID = queue.ID(log.LastID())
	lanes := log.Lanes()
	if len(lanes) == 0 {
		return nil // one of a hundred thousand, perhaps: there is nothing to look for
	}
	for _, info := range lanes {
		if lane, ok := q.noteLane(); ok && info.Lane == lane {
			continue
		}
		if int(info.Lane) >= len(q.lanes) {
			return fmt.Errorf("it has messages of priority %d, but the queue's highest is %d", info.Lane, len(q.lanes)-1)
		}
		q.takeOver(info)
	}
	if err := q.readNotes(); err != nil {
		return err
	}
	return q.readUnique()
}

// takeOver makes a recovered lane of the log ready.
func (q *Queue) takeOver(info persistence.LaneInfo) {
	q.lanes[info.Lane].paged = pages{
		from: queue.ID(info.First), to: queue.ID(info.Last), stored: info.Count, bytes: info.Bytes, earliest: info.Earliest,
	}
	if info.Count == 0 {
		return
	}
	q.nonEmpty.add(int(info.Lane))
	q.ready += info.Count
	q.readyStored += info.Count
	q.readyBytes += info.Bytes
	q.paged += info.Count
	q.timed = q.timed || info.Earliest != 0
}

// fill makes the record of a message.
func fill(rec *persistence.Record, it *item, lane int, shared *persistence.SharedBody) {
	rec.ID, rec.Lane, rec.Expires, rec.Shared = uint64(it.id), laneID(lane), it.expires, shared
	record.Fill(rec, it.msg)
}
