package stream

import (
	"fmt"

	"github.com/leveretmq/leveret/persistence"
)

// open makes the log of a new stream, or takes over that of a reopened one. Of
// that two chunks are read, whatever it holds: the last and the first. Nobody
// else has the queue yet.
func (q *Queue) open() (err error) {
	if q.env.LogID == 0 {
		if q.log, err = q.env.Store.NewLog(); err != nil {
			return err
		}
		return q.openTrackerLocked(0)
	}
	if q.log, err = q.env.Store.OpenLog(q.env.LogID); err != nil {
		return err
	}
	q.quiet = true
	q.next = q.log.LastID()
	q.first, q.last, q.activeFirst = q.next, q.next, q.next
	for _, info := range q.log.Lanes() {
		if info.Lane == lane && info.Count > 0 {
			return q.takeOver(info)
		}
	}
	return q.openTrackerLocked(q.env.PlacesID)
}

// lane is where the chunks are in the log.
const lane persistence.Lane = 0

// takeOver makes what was recovered the extent of the stream, but for what was forgotten
// and has come back.
func (q *Queue) takeOver(info persistence.LaneInfo) error {
	youngest, found, err := q.chunkAt(info.Last - 1)
	if err != nil {
		return err
	}
	missing := fmt.Errorf("the log has chunks %d to %d but does not give them", info.First, info.Last)
	if !found {
		return missing
	}
	if err := q.openTrackerLocked(youngest.tracker); err != nil {
		return err
	}
	begin := min(q.tracker.begins.offset, youngest.segmentFirst)
	q.log.SettleRange(lane, 0, begin)
	oldest, ok, err := q.chunkAt(max(begin, info.First-1))
	if err != nil {
		return err
	}
	if !ok {
		return missing
	}
	q.first, q.firstTime, q.firstPos, q.firstSegment = oldest.first, oldest.time, oldest.pos, oldest.segment
	q.last, q.lastTime, q.pos = youngest.first, youngest.time, youngest.pos+youngest.size()
	q.active, q.activeFirst, q.activePos = youngest.segment, youngest.segmentFirst, youngest.segmentPos
	if q.activeFirst > q.first {
		q.unknown = q.activeFirst
	}
	return nil
}

// chunkAt reads the chunk that holds an offset, or the first one after it; ok is
// false if there is none. It reads from disk.
func (q *Queue) chunkAt(offset uint64) (c chunk, ok bool, err error) {
	recs, err := q.log.Load(lane, offset+1, nil, 1)
	if err != nil || len(recs) == 0 {
		return chunk{}, false, err
	}
	err = c.open(&recs[0])
	return c, err == nil, err
}
