package quorum

import (
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/record"
	"github.com/leveretmq/leveret/queue/retry"
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
	if err := q.notes.Read(log, noteLane); err != nil {
		return err
	}
	q.setApart()
	if err := q.exhume(); err != nil || q.unique == nil {
		return err
	}
	return q.unique.Restore(log, lanes, func(id queue.ID) bool { return q.m.table.get(id) != nil }) // only the dead are there yet
}

// exhume finds the messages that were dead and waited for their targets, and
// sees to it that they are sent again when the queue is used.
func (q *Queue) exhume() error {
	a := &q.after
	died := make(map[queue.ID]reason)
	q.notes.All(func(v retry.Note) {
		if v.Reason != 0 {
			died[v.ID] = reason(v.Reason)
		}
	})
	for _, id := range slices.Sorted(maps.Keys(died)) {
		why := died[id]
		if why > deliveryLimit {
			return fmt.Errorf("message %d died of a reason that is not known: %d", id, why)
		}
		found, err := q.exhumeOne(id, why)
		if err != nil {
			return err
		}
		if !found {
			q.notes.Forget(id)
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
		m, err := record.Revive(&recs[0])
		if err != nil {
			return false, err
		}
		q.m.exhume(number, arrival{id, m, recs[0].Expires, q.notes.Of(id).Count}, why)
		q.passOver(id)
		return true, nil
	}
	return false, nil
}

// missedLocked tells of messages that the log turned out not to have.
func (q *Queue) missedLocked(n int) {
	if n > 0 {
		q.env.Log.Error("messages of a queue are missing in the store and are lost: check the disk, and restore a backup if they are needed", zap.String("queue", q.text), zap.Int("messages", n))
	}
}
