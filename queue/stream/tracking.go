package stream

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// A tracker remembers in a log of its own where named consumers are, so that one
// that comes back goes on there. A consumer asks for it with the argument
// x-stream-automatic-offset-tracking, and is known by its tag (LavinMQ 2).
//
// Each place is a record: version(1), the offset as a uvarint, the tag. A newer
// one of the same tag settles the older. The log's id is in every chunk, so that
// the youngest chunk leads to it; while there is none, the queue's definition does.
// The place that has no tag is where the stream begins, see begin.
type tracker struct {
	log    persistence.Log
	last   uint64 // the id of the youngest record
	places map[string]place
	begins place
	timer  *time.Timer // calls saveLate; nil if it never had to
	late   bool        // the timer runs
}

// A place is the offset that a consumer gets next.
type place struct{ offset, record uint64 }

const (
	trackingArgument = "x-stream-automatic-offset-tracking"
	placeVersion     = 1

	// saveAfter and saveEvery are how far the place in the log may be behind: in
	// messages, and for how long. A consumer that comes back after a crash gets
	// those again.
	saveAfter = 4096
	saveEvery = time.Second

	// manyPlaces is from how many on the places of consumers are dropped that
	// have been forgotten by the stream anyway.
	manyPlaces = 1000
	// maxPlaces is how many places a stream keeps.
	maxPlaces = 10_000
)

// openTracker opens the log with an id, or makes one if that is 0.
func openTracker(store persistence.Store, id persistence.LogID) (t tracker, err error) {
	t.places = make(map[string]place)
	if id == 0 {
		t.log, err = store.NewLog()
		return t, err
	}
	if t.log, err = store.OpenLog(id); err != nil {
		return t, err
	}
	t.last = t.log.LastID()
	for rec, err := range persistence.Records(t.log, lane, 0) {
		if err != nil {
			return t, err
		}
		if err := t.take(rec); err != nil {
			return t, err
		}
	}
	return t, nil
}

// take takes a recovered place over.
func (t *tracker) take(rec *persistence.Record) error {
	r := reading{b: rec.Body}
	version, offset := r.byte(), r.uvarint()
	if r.bad || version != placeVersion {
		return fmt.Errorf("place %d of a consumer: %w", rec.ID, errChunk)
	}
	if len(r.b) == 0 {
		t.begins = place{max(offset, t.begins.offset), rec.ID}
		return nil
	}
	t.places[string(r.b)] = place{offset, rec.ID}
	return nil
}

// begin notes that what is before an offset is about to be forgotten. After a crash the
// store may have some of that again, and not all. As it commits no settle before what
// was appended ahead of it, this place is there then, too, and tells up to where.
func (t *tracker) begin(offset uint64) {
	old := t.begins
	t.begins = t.append("", offset)
	if old.record > 0 {
		t.log.Settle([]uint64{old.record})
	}
}

// append adds the record of a place to the log.
func (t *tracker) append(tag string, offset uint64) place {
	t.last++
	body := append(binary.AppendUvarint([]byte{placeVersion}, offset), tag...)
	t.log.Append([]persistence.Record{{ID: t.last, Time: time.Now().UnixMilli(), Body: body}}, nil)
	return place{offset, t.last}
}

// save notes a place, unless it is known. It does not wait for disk.
func (t *tracker) save(tag string, offset uint64) {
	old, known := t.places[tag]
	if known && old.offset == offset {
		return
	}
	t.places[tag] = t.append(tag, offset)
	if known {
		t.log.Settle([]uint64{old.record})
	}
	if len(t.places) > maxPlaces {
		t.evict()
	}
}

// evict drops a tenth of the places: those saved longest ago.
func (t *tracker) evict() {
	records := make([]uint64, 0, len(t.places))
	for _, p := range t.places {
		records = append(records, p.record)
	}
	slices.Sort(records)
	old := records[:len(records)/10]
	for tag, p := range t.places {
		if p.record <= old[len(old)-1] {
			delete(t.places, tag)
		}
	}
	t.log.Settle(old)
}

// forget drops places before an offset, if there are many.
func (t *tracker) forget(first uint64) {
	if len(t.places) < manyPlaces {
		return
	}
	for tag, p := range t.places {
		if p.offset < first {
			t.log.Settle([]uint64{p.record})
			delete(t.places, tag)
		}
	}
}

// Places are the offsets that tracked consumers get next, by consumer tag.
func (q *Queue) Places() map[string]uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	places := make(map[string]uint64, len(q.tracker.places))
	for tag, p := range q.tracker.places {
		places[tag] = p.offset
	}
	return places
}

// A progress is what a tracked reader has not done yet.
type progress struct {
	open    []uint64 // offsets delivered, ascending; of those that are done half at most
	done    []bool   // parallel to open
	first   int      // index in open of the first that is not done
	settled int      // how many of open are done
	saved   uint64
	late    bool // something was settled and the place not saved
}

// tracked says whether the consumer is to be tracked. One whose tag the server
// has made has no name to come back with.
func tracked(s *queue.Subscription) bool {
	v, _ := s.Arguments.Lookup(trackingArgument)
	on, _ := v.(bool)
	return on && s.Tag != "" && !strings.HasPrefix(s.Tag, "amq.ctag-")
}

// trackLocked makes the reader a tracked one. x-stream-offset is for the first
// time only: a consumer that is known begins where it was, or at the end if a crash
// has cost what it had got.
func (q *Queue) trackLocked(r *reader, from start) start {
	if p, ok := q.tracker.places[r.sub.Tag]; ok {
		from = start{kind: atOffset, offset: min(p.offset, q.durable.next)}
	}
	r.progress = new(progress)
	return from
}

// deliver notes deliveries.
func (p *progress) deliver(ds []queue.Delivery) {
	for i := range ds {
		p.open = append(p.open, uint64(ds[i].ID)-1)
		p.done = append(p.done, false)
	}
}

// settle notes that deliveries are done.
func (p *progress) settle(ds []queue.Delivery) {
	open, done := p.open[p.first:], p.done[p.first:]
	for i := range ds {
		if k, ok := slices.BinarySearch(open, uint64(ds[i].ID)-1); ok && !done[k] {
			done[k] = true
			p.settled++
		}
	}
	for p.first < len(p.done) && p.done[p.first] {
		p.first++
	}
	if p.settled > len(p.open)/2 { // no more are moved than were done
		p.forget()
	}
}

// forget drops what is done.
func (p *progress) forget() {
	left := p.open[:0]
	for k := p.first; k < len(p.open); k++ {
		if !p.done[k] {
			left = append(left, p.open[k])
		}
	}
	p.open, p.done = left, p.done[:len(left)]
	clear(p.done)
	p.first, p.settled = 0, 0
}

// settleTrackedLocked moves a tracked reader's place on. A delivery that was
// returned is not done: the consumer gets it again when it comes back.
func (q *Queue) settleTrackedLocked(r *reader, ds []queue.Delivery, how queue.Outcome) {
	p := r.progress
	if how == queue.Requeued || how == queue.Returned {
		return
	}
	p.settle(ds)
	if r.wait&departed != 0 || r.at()-p.saved >= saveAfter {
		q.saveLocked(r)
		return
	}
	q.saveLaterLocked(p)
}

// saveLaterLocked sees to it that a place is in the log in a while, whether
// anything is settled until then or not.
func (q *Queue) saveLaterLocked(p *progress) {
	p.late = true
	t := &q.tracker
	switch {
	case t.late || q.state != running:
		return
	case t.timer == nil:
		t.timer = time.AfterFunc(saveEvery, q.saveLate)
	default:
		t.timer.Reset(saveEvery)
	}
	t.late = true
}

// saveLate puts the places that are late in the log.
func (q *Queue) saveLate() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tracker.late = false
	for _, r := range q.readers {
		if r.progress != nil && r.progress.late {
			q.saveLocked(r)
		}
	}
}

// at is the offset of the first message that is not done.
func (r *reader) at() uint64 {
	if p := r.progress; p.first < len(p.open) {
		return p.open[p.first]
	}
	return r.next
}

// saveLocked puts a tracked reader's place in the log.
func (q *Queue) saveLocked(r *reader) {
	p := r.progress
	if p == nil || r.seek >= 0 || q.state == gone || r.at() > q.durable.next {
		return // beyond the end it waits for its x-stream-offset, which will count again
	}
	p.saved, p.late = r.at(), false
	q.tracker.save(r.sub.Tag, p.saved)
}

// openTrackerLocked opens the tracker that the youngest chunk or the definition names.
// If that cannot be, consumers begin anew: a stream is worth more than their places.
func (q *Queue) openTrackerLocked(id persistence.LogID) (err error) {
	q.tracker, err = openTracker(q.env.Store, id)
	if err != nil && id != 0 {
		q.env.Log.Error("the places of consumers cannot be read and are given up, so that they begin as if they were new: check the disk", zap.String("queue", q.text), zap.Error(err))
		if q.tracker.log != nil {
			q.tracker.log.Drop()
		}
		q.tracker, err = openTracker(q.env.Store, 0)
	}
	return err
}
