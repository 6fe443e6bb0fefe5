package quorum

import (
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/record"
)

// openLog makes the log of a new queue, or takes over what the log of a reopened
// one holds. Of the messages nothing is read: all of them are away.
func (q *Queue) openLog() error {
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
	q.m.last = q.lastID
	for _, info := range log.Lanes() {
		switch {
		case info.Lane < lanes:
			q.m.take(int(info.Lane), info)
			q.timed = q.timed || info.Earliest != 0
		case info.Lane > noteLane:
			return fmt.Errorf("lane %d is not one of a quorum queue", info.Lane)
		}
	}
	if err := q.readNotes(); err != nil {
		return err
	}
	return q.exhume()
}

// readNotes reads what is noted about messages.
func (q *Queue) readNotes() error {
	from := uint64(0)
	for {
		recs, err := q.log.Load(noteLane, from, nil, blockSize)
		if err != nil {
			return err
		}
		if len(recs) == 0 {
			return nil
		}
		for i := range recs {
			list, err := parseNote(recs[i].Extra)
			if err != nil {
				return fmt.Errorf("record %d: %w", recs[i].ID, err)
			}
			for _, w := range list {
				q.notes.set(w, queue.ID(recs[i].ID))
			}
		}
		from = recs[len(recs)-1].ID + 1
	}
}

// exhume finds the messages that were dead and waited for their targets, and
// sees to it that they are sent again when the queue is used.
func (q *Queue) exhume() error {
	a := &q.after
	for _, id := range slices.Sorted(maps.Keys(q.notes.latest)) {
		why := q.notes.latest[id].reason
		if why == 0 {
			continue
		}
		found, err := q.exhumeOne(id, why)
		if err != nil {
			return err
		}
		if !found {
			q.notes.forget(id)
			continue
		}
		if n := len(a.late); n == 0 || a.late[n-1].reason != why {
			a.late = append(a.late, grave{reason: why, held: true})
		}
		a.late[len(a.late)-1].add(id, q.m.table.get(id).msg)
	}
	return nil
}

func (q *Queue) exhumeOne(id queue.ID, why reason) (found bool, err error) {
	for number := range lanes {
		recs, err := q.log.Load(persistence.Lane(number), uint64(id), nil, 0)
		if err != nil {
			return false, err
		}
		if len(recs) == 0 || recs[0].ID != uint64(id) {
			continue
		}
		m := new(message.Message)
		if err := record.Revive(m, &recs[0]); err != nil {
			return false, err
		}
		q.m.exhume(number, arrival{id, m, recs[0].Expires, q.notes.count(id)}, why)
		return true, nil
	}
	return false, nil
}

// missedLocked tells of messages that the log turned out not to have.
func (q *Queue) missedLocked(n int) {
	if n > 0 {
		q.env.Log.Error("messages of a queue are missing in the store", zap.String("queue", q.text), zap.Int("messages", n))
	}
}
