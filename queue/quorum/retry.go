package quorum

import (
	"fmt"
	"math"
	"math/rand/v2"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/record"
	"github.com/leveretmq/leveret/queue/retry"
)

// noteLane is the lane of the log in which a queue keeps notes: how often a
// message was handed out, if that was more than once, until when it waits, and of
// what it died, if it is dead and still there. (That it was handed out at all is
// what the log keeps as its mark, see persistence.Log.Delivered.)
const noteLane persistence.Lane = lanes

// noteLocked notes how often a message was handed out, and of what it died.
func (q *Queue) noteLocked(id queue.ID, count uint32, why reason) {
	q.notes.Write(retry.Note{ID: id, Count: count, Reason: uint8(why)})
}

// flushNotesLocked writes the notes of a turn. A message that has left the queue
// meanwhile needs none.
func (q *Queue) flushNotesLocked() {
	if !q.notes.Fresh() {
		return
	}
	recs := q.notes.Flush(nil, noteLane, q.lastID, q.nowLocked(), func(id queue.ID) bool { return q.m.table.get(id) != nil })
	q.now = 0
	if len(recs) > 0 {
		q.lastID += queue.ID(len(recs))
		q.log.Append(recs, nil)
	}
	q.fx.gone = q.notes.TakeStale(q.fx.gone)
}

// duesLocked decides until when messages wait that clients give back; nil if the
// queue makes none wait.
func (q *Queue) duesLocked(ds []queue.Delivery) []int64 {
	b := &q.settings.Backoff
	if !b.On() {
		return nil
	}
	dues := make([]int64, len(ds)) // the command keeps them
	for i := range ds {
		dues[i] = q.nowLocked() + b.Wait(ds[i].Count+1, rand.Float64())
	}
	return dues
}

// dueLocked makes ready what has waited long enough, and sets the alarm for what
// is due next. One that is away is read first.
func (q *Queue) dueLocked() {
	d := &q.m.delay
	if d.n == 0 || q.quiet {
		return
	}
	if at, _ := d.order.First(); at <= q.nowLocked() {
		before := q.m.ready
		q.cmd = command{op: opWake, time: q.nowLocked(), count: math.MaxInt}
		q.doLocked()
		q.count.expired += uint64(q.cmd.count - (q.m.ready - before))
		q.timed = true // for all that is known
	}
	if d.n == 0 {
		return
	}
	if at, _ := d.order.First(); at > q.nowLocked() {
		q.wakes.set(at, q.nowLocked())
	} else {
		q.after.wantDue = true
	}
}

// setApart takes the messages of a reopened queue that still have to wait out of
// their lanes, unread.
func (q *Queue) setApart() {
	now := q.nowLocked()
	q.now = 0
	q.notes.All(func(v retry.Note) {
		if v.Due > now && v.Reason == 0 && v.Lane < lanes && q.m.setApart(v) {
			q.passOver(v.ID)
		}
	})
}

// passOver says that a message of a reopened queue has left its lane, whatever
// becomes of it: its record is not to be read with those of the lane.
func (q *Queue) passOver(id queue.ID) {
	if q.apart == nil {
		q.apart = make(map[queue.ID]bool)
	}
	q.apart[id] = true
}

// recallDue says whether messages that are due should be read now.
func (a *after) recallDue() bool { return a.wantDue && !a.recalling && !a.broken }

// recallMessages is how many messages are read at once because they are due, as
// far as they are not larger than a block.
const recallMessages = 256

// recallLocked reads the messages that are due next, and unlocks.
func (q *Queue) recallLocked() (more bool) {
	a := &q.after
	a.wantDue, a.recalling = false, true
	epoch := a.epoch
	ids := q.m.awayDelayed(recallMessages)
	wanted := make(map[persistence.Lane][]queue.ID)
	size := int64(0)
	for i, id := range ids {
		v := q.notes.Of(id)
		wanted[v.Lane] = append(wanted[v.Lane], id)
		if size += v.Size; size > blockSize {
			ids = ids[:i+1]
			break
		}
	}
	q.mu.Unlock()
	items, err := q.recall(wanted)
	q.mu.Lock()
	a.recalling = false
	if q.state == running && epoch == a.epoch {
		q.recalledLocked(ids, items, err)
		q.proceedLocked()
	}
	more = q.finishLocked()
	q.mu.Unlock()
	return more
}

// recall reads messages. The lock is not held.
func (q *Queue) recall(wanted map[persistence.Lane][]queue.ID) (items []arrival, err error) {
	for lane, ids := range wanted {
		err := retry.Fetch(q.log, lane, ids, func(rec *persistence.Record) error {
			m, err := record.Revive(rec)
			items = append(items, arrival{id: queue.ID(rec.ID), msg: m, expires: rec.Expires})
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read messages of %s that are due: %w", q.text, err)
		}
	}
	return items, nil
}

// recalledLocked takes over what was read.
func (q *Queue) recalledLocked(ids []queue.ID, items []arrival, err error) {
	if err != nil {
		q.after.broken = true
		q.wakes.set(q.nowLocked()+retryAfter.Milliseconds(), q.nowLocked())
		q.env.Log.Error("messages that are due again cannot be read from the store and stay there; it is tried again every second: look at the disk", zap.String("queue", q.text), zap.Error(err))
		return
	}
	missing := make(map[queue.ID]bool, len(ids))
	for _, id := range ids {
		missing[id] = true
	}
	for i := range items {
		items[i].count = q.notes.Of(items[i].id).Count
		delete(missing, items[i].id)
	}
	q.m.admitDelayed(items)
	if len(missing) > 0 {
		bytes := int64(0)
		for id := range missing {
			bytes += q.notes.Of(id).Size
			q.notes.Forget(id)
		}
		q.m.missDelayed(missing, bytes)
		q.missedLocked(len(missing))
	}
	q.dueLocked()
}
