package classic

import (
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/record"
	"github.com/leveretmq/leveret/queue/retry"
)

// readNotes takes over what is noted of the messages of a reopened queue: those
// that still have to wait are taken out of their lanes, unread.
func (q *Queue) readNotes() error {
	lane, ok := q.noteLane()
	if !ok {
		return nil
	}
	q.notes = &retry.Notes{}
	if err := q.notes.Read(q.log, lane); err != nil {
		return fmt.Errorf("read its notes: %w", err)
	}
	now := q.nowLocked()
	q.now = 0
	q.notes.All(func(v retry.Note) {
		if v.Due > now && int(v.Lane) < len(q.lanes) && q.lanes[v.Lane].paged.stored > 0 {
			q.setApart(v)
		}
	})
	if !q.notes.Any() {
		q.notes = nil
	}
	for i := range q.lanes {
		if q.lanes[i].len() == 0 {
			q.nonEmpty.remove(i)
		}
	}
	if q.delayed.n > 0 {
		at, _ := q.delayed.order.First()
		q.wakeAtLocked(at)
		q.now = 0
	}
	return nil
}

// setApart makes a recovered message wait.
func (q *Queue) setApart(v retry.Note) {
	d, p := &q.delayed, &q.lanes[v.Lane].paged
	if d.items == nil {
		d.items, d.apart = make(map[queue.ID]item), make(map[queue.ID]persistence.Lane)
	}
	d.items[v.ID] = item{id: v.ID, count: v.Count, redelivered: true, stored: true}
	d.apart[v.ID] = v.Lane
	d.apartTo = max(d.apartTo, v.ID)
	d.n++
	d.stored++
	d.absent++
	d.bytes += v.Size
	d.order.Push(v.Due, v.ID)
	p.stored--
	p.bytes -= v.Size
	q.ready--
	q.readyStored--
	q.readyBytes -= v.Size
	q.paged--
	if p.count() == 0 {
		q.readyBytes -= p.bytes // the error of an estimate
		p.bytes = 0
	}
}

// forgetApartLocked forgets which messages were set apart if all of their lanes
// that were never handed out are younger.
func (q *Queue) forgetApartLocked() {
	for i := range q.lanes {
		if first := q.lanes[i].first(); first != 0 && first <= q.delayed.apartTo {
			return
		}
	}
	q.delayed.apart, q.delayed.apartTo = nil, 0
}

// skips says whether a record is not to be read with its lane, and marks one that
// was handed out before a restart. Nobody changes the map while it is in use.
func (ld *load) skips(rec *persistence.Record) bool {
	if rec.ID <= uint64(ld.handed) {
		rec.Redelivered = true
	}
	if ld.apart == nil {
		return false
	}
	_, apart := ld.apart[queue.ID(rec.ID)]
	return apart
}

// settleFromLocked settles in the log what waits in a lane from an id on. What was
// set apart was handed out, or is settled by itself.
func (q *Queue) settleFromLocked(lane int, from queue.ID) {
	var apart []queue.ID
	for id, l := range q.delayed.apart {
		if l == laneID(lane) && id >= from {
			apart = append(apart, id)
		}
	}
	slices.Sort(apart)
	for _, id := range apart {
		if id > from {
			q.log.SettleRange(laneID(lane), uint64(from), uint64(id-1))
		}
		from = id + 1
	}
	q.log.SettleRange(laneID(lane), uint64(from), uint64(q.lastID))
}

// pageDelayedLocked drops messages from memory that wait and are in the log, those
// that are due last first, until they weigh need, and returns what they weighed.
func (q *Queue) pageDelayedLocked(durable queue.ID, need int64) (freed int64) {
	d := &q.delayed
	if q.notes == nil || d.n == d.absent {
		return 0
	}
	for _, id := range d.order.All() {
		if freed >= need {
			break
		}
		it := d.items[id]
		if it.msg == nil || !it.stored || id > durable || q.notes.Of(id).Due == 0 {
			continue
		}
		freed += int64(it.msg.Size())
		it.msg = nil
		d.items[id] = it
		d.absent++
	}
	q.memory -= freed
	return freed
}

// The limits of what is read at once of messages that are due: in messages, and
// in bytes of bodies.
const (
	dueMessages = 256
	dueBytes    = 512 << 10
)

// recallDue says whether messages that are due should be read now.
func (a *after) recallDue() bool { return a.wantDue && !a.recalling && !a.broken }

// A recall is messages that are read because they are due.
type recall struct {
	epoch int
	lanes map[persistence.Lane][]queue.ID // their ids
	due   map[queue.ID]int64              // when
	items []item
}

// recallDueLocked reads the messages that are due next, and unlocks.
func (q *Queue) recallDueLocked() (more bool) {
	q.after.wantDue, q.after.recalling = false, true
	rc := q.beginRecallLocked()
	q.mu.Unlock()
	err := q.recall(rc)
	q.mu.Lock()
	q.after.recalling = false
	if q.state == running && rc.epoch == q.after.epoch {
		q.endRecallLocked(rc, err)
		q.proceedLocked()
	}
	more = q.finishLocked()
	q.mu.Unlock()
	return more
}

// beginRecallLocked takes the first ones that are not in memory out of the order.
func (q *Queue) beginRecallLocked() *recall {
	d := &q.delayed
	rc := &recall{epoch: q.after.epoch, lanes: map[persistence.Lane][]queue.ID{}, due: map[queue.ID]int64{}}
	for size := int64(0); d.order.Len() > 0 && len(rc.due) < dueMessages && size < dueBytes; {
		at, id := d.order.First()
		if d.items[id].msg != nil {
			break
		}
		d.order.Pop()
		v := q.notes.Of(id)
		size += v.Size
		rc.due[id] = at
		rc.lanes[v.Lane] = append(rc.lanes[v.Lane], id)
	}
	return rc
}

// recall reads messages. The lock is not held.
func (q *Queue) recall(rc *recall) error {
	for lane, ids := range rc.lanes {
		err := retry.Fetch(q.log, lane, ids, func(rec *persistence.Record) error {
			m, err := record.Revive(rec)
			rc.items = append(rc.items, item{msg: m, id: queue.ID(rec.ID), expires: rec.Expires, redelivered: true, stored: true})
			return err
		})
		if err != nil {
			rc.items = nil
			return err
		}
	}
	return nil
}

// endRecallLocked puts what was read back into the order, now in memory.
func (q *Queue) endRecallLocked(rc *recall, err error) {
	d := &q.delayed
	for i := range rc.items {
		it := &rc.items[i]
		it.count = d.items[it.id].count
		d.items[it.id] = *it
		d.absent--
		q.memory += int64(it.msg.Size())
		d.order.Push(rc.due[it.id], it.id)
		delete(rc.due, it.id)
	}
	if err != nil {
		for id, at := range rc.due {
			d.order.Push(at, id)
		}
		q.after.broken = true
		q.wakeAtLocked(q.nowLocked() + retryAfter.Milliseconds())
		q.env.Log.Error("messages that are due again cannot be read from the store and stay there; it is tried again every second: look at the disk", zap.String("queue", q.text()), zap.Error(err))
		return
	}
	if n := len(rc.due); n > 0 {
		q.env.Log.Error("messages of a queue are missing in the store and are lost: check the disk, and restore a backup if they are needed", zap.String("queue", q.text()), zap.Int("messages", n))
	}
	for id := range rc.due {
		d.bytes -= q.notes.Of(id).Size
		delete(d.items, id)
		d.n--
		d.stored--
		d.absent--
		q.notes.Forget(id)
	}
	q.dueLocked()
}
