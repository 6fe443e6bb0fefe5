package stream

import (
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
)

// A reader is what the stream knows of a subscription; guarded by Queue.mu.
type reader struct {
	sub      *queue.Subscription // immutable
	filter   *filter             // immutable; nil for all
	next     uint64              // the offset that it gets next; beyond the end if it waits for one there
	cur      *chunk              // the chunk that next is in, or nil
	seek     int64               // it begins with the first chunk of this time, Unix milliseconds; -1 if next is known
	inflight int                 // deliveries that it has to settle
	wait     waiting
	busy     bool  // a goroutine reads for it
	names    names // of what was read for it last; owned by that goroutine
	// fruitless is how often it read since the last delivery; see patience.
	fruitless int

	progress *progress // of a tracked one, else nil

	place, tail int // index in Queue.readers, and in Queue.tailing or -1
}

// waiting is a set of reasons why a reader gets nothing.
type waiting uint8

const (
	waitCredit waiting = 1 << iota // its prefetch is used up: ends with Settle
	waitRoom                       // outbox or window were full: ends with Resume
	waitMore                       // it has had everything that is on disk: ends with a commit
	waitRetry                      // the log could not be read: ends with a timer
	departed                       // it was cancelled
)

// Subscribe adds a reader and starts delivering to it. Where it begins and what
// it wants is in its arguments: x-stream-offset, x-stream-filter,
// x-stream-match-unfiltered. Exclusive and the priority mean nothing (RabbitMQ
// 4.0).
func (q *Queue) Subscribe(s *queue.Subscription) error {
	if err := q.check(s); err != nil {
		return err
	}
	from, err := parseStart(s.Arguments, time.Now().UnixMilli(), q.text)
	if err != nil {
		return err
	}
	r := &reader{sub: s, filter: parseFilter(s.Arguments), seek: -1, tail: -1}
	q.mu.Lock()
	if q.state != running {
		q.mu.Unlock()
		return queue.ErrGone
	}
	q.ledger.await(true)
	q.lookLocked()
	if tracked(s) {
		from = q.trackLocked(r, from)
	}
	q.startLocked(r, from)
	s.State = r
	r.place = len(q.readers)
	q.readers = append(q.readers, r)
	q.drive(r)
	return nil
}

// check refuses what streams cannot do for a consumer (RabbitMQ 4.0).
func (q *Queue) check(s *queue.Subscription) error {
	switch {
	case s.Prefetch <= 0:
		return frames.Errorf(frames.PreconditionFailed, "consumer prefetch count is not set for stream %s", q.text)
	case s.NoAck:
		return frames.Errorf(frames.NotImplemented, "automatic acknowledgement not supported by stream %s", q.text)
	case s.Window.Limited():
		return frames.Errorf(frames.NotImplemented, "%s does not support global qos", q.text)
	}
	return nil
}

// startLocked puts a reader in its place. The end is that of what is on disk. An
// offset beyond it is waited for, and what is forgotten is the oldest there is
// (RabbitMQ 4.0).
func (q *Queue) startLocked(r *reader, from start) {
	r.next = q.durable.next
	switch from.kind {
	case atFirst:
		r.next = q.first
	case atLast:
		r.next = q.durable.last
	case atOffset:
		r.next = max(from.offset, q.first)
	case atTime:
		switch {
		case q.first >= q.durable.next || from.time > q.lastTime:
		case from.time <= q.firstTime:
			r.next = q.first
		default:
			r.seek = from.time
		}
	}
}

// Cancel removes the reader.
func (q *Queue) Cancel(s *queue.Subscription) {
	q.mu.Lock()
	r := readerOf(s)
	if r == nil || r.wait&departed != 0 {
		q.mu.Unlock()
		return
	}
	q.saveLocked(r)
	r.wait |= departed
	r.cur = nil
	q.leaveTailLocked(r)
	n := len(q.readers) - 1
	last := q.readers[n]
	q.readers[r.place], last.place = last, r.place
	q.readers[n] = nil
	q.readers = q.readers[:n]
	if n == 0 {
		q.ledger.await(false)
	}
	q.unlock()
}

// Settle takes the deliveries back as credit, whatever becomes of them: nothing
// leaves the stream, and nothing returns to it (RabbitMQ 4.0).
func (q *Queue) Settle(s *queue.Subscription, ds []queue.Delivery, how queue.Outcome) {
	r := readerOf(s)
	if r == nil || len(ds) == 0 {
		return
	}
	q.mu.Lock()
	if how == queue.Accepted {
		q.count.acked += uint64(len(ds))
	}
	r.inflight -= len(ds)
	if r.progress != nil {
		q.settleTrackedLocked(r, ds, how)
	}
	if r.inflight < r.sub.Prefetch {
		r.wait &^= waitCredit
	}
	q.drive(r)
}

// Resume says that the reader has room again.
func (q *Queue) Resume(s *queue.Subscription) {
	r := readerOf(s)
	if r == nil {
		return
	}
	q.mu.Lock()
	r.wait &^= waitRoom
	q.drive(r)
}

// readerOf is the stream's record of a subscription, or nil. State is written
// before the subscription is known to others.
func readerOf(s *queue.Subscription) *reader {
	if s == nil {
		return nil
	}
	r, _ := s.State.(*reader)
	return r
}

// joinTailLocked makes the reader wait for what is committed next.
func (q *Queue) joinTailLocked(r *reader) {
	r.wait |= waitMore
	r.cur = nil
	if r.tail < 0 {
		r.tail = len(q.tailing)
		q.tailing = append(q.tailing, r)
	}
}

func (q *Queue) leaveTailLocked(r *reader) {
	if r.tail < 0 {
		return
	}
	n := len(q.tailing) - 1
	last := q.tailing[n]
	q.tailing[r.tail], last.tail = last, r.tail
	q.tailing[n] = nil
	q.tailing = q.tailing[:n]
	r.tail = -1
}

// feedLocked hands what was found to be on disk in this turn to the readers that wait
// for it. It returns those for which it has to be read, which are none but for a
// fault.
func (q *Queue) feedLocked() (starving []*reader) {
	for i := len(q.tailing) - 1; i >= 0; i-- { // one that leaves is replaced by the last
		r := q.tailing[i]
		r.wait &^= waitMore
		if r.busy {
			continue // the one that reads for it serves it
		}
		if q.serveLocked(r) {
			starving = append(starving, r)
		}
		if r.wait&waitMore == 0 {
			q.leaveTailLocked(r)
		}
	}
	return starving
}

// retryAfter is how long a reader waits after a read that failed.
const retryAfter = time.Second

// failLocked makes the reader wait after a read that failed.
func (q *Queue) failLocked(r *reader, err error) {
	q.env.Log.Error("messages of a stream cannot be read from the store; it is tried again every second: look at the disk",
		zap.String("queue", q.text), zap.Uint64("offset", r.next), zap.Error(err))
	r.wait |= waitRetry
	if q.retry == nil {
		q.retry = time.AfterFunc(retryAfter, q.readAgain)
		return
	}
	q.retry.Reset(retryAfter)
}

// readAgain serves the readers for which the log could not be read.
func (q *Queue) readAgain() {
	q.mu.Lock()
	var again []*reader
	for _, r := range q.readers {
		if r.wait&waitRetry != 0 {
			again = append(again, r)
		}
	}
	q.mu.Unlock()
	for _, r := range again {
		q.mu.Lock()
		r.wait &^= waitRetry
		q.drive(r)
	}
}
