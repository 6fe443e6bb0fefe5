package amqp

import (
	"maps"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
)

// ackCheckInterval is how often at least the timeouts of a channel's queues are
// looked up; RabbitMQ 4.0's channel_tick_interval.
const ackCheckInterval = 60 * time.Second

// An ackWatch looks for deliveries of a channel that are not acknowledged in time.
// Its timer is set to when the first one may be late, and no earlier. It is the
// reader's, but for what is atomic or the timer's.
type ackWatch struct {
	timer   *time.Timer              // nil before the first delivery may come
	rest    atomic.Int64             // its period while nothing is out, a time.Duration
	stopped atomic.Bool              // the channel has ended
	limits  map[queue.Queue]ackLimit // of the queues whose deliveries may be out
	many    int                      // limits: those in vain are forgotten before there are more
	late    lateTags
}

// An ackLimit is how long a delivery of a queue may stay unacknowledged, and
// whether it alone goes back if it does.
type ackLimit struct {
	timeout  time.Duration
	requeues bool
}

// watchAcks makes sure that the channel's deliveries are watched, now that one
// of this queue may come. The timer ends with the channel.
func (ch *channel) watchAcks(q queue.Queue) {
	w := &ch.timeouts
	if _, ok := w.limits[q]; ok {
		return
	}
	if w.limits == nil {
		w.limits = make(map[queue.Queue]ackLimit)
	}
	if len(w.limits) >= w.many {
		ch.pruneLimits()
		w.many = 2 * max(fewLimits, len(w.limits))
	}
	w.limits[q] = ch.conn.ackLimit(q)
	late, wait := ch.lateAcks()
	if len(late) > 0 {
		wait = 0
	}
	ch.armAcks(wait)
}

// armAcks sets the timer: to after wait, or to when one that is delivered now could
// be late.
func (ch *channel) armAcks(wait time.Duration) {
	w := &ch.timeouts
	rest := min(w.shortest(), ackCheckInterval)
	wait = max(min(wait, rest), time.Millisecond)
	w.rest.Store(int64(rest))
	if w.timer == nil {
		w.timer = time.AfterFunc(ackCheckInterval, ch.ringAcks)
	}
	w.timer.Reset(wait)
}

// shortest is the shortest timeout of the queues.
func (w *ackWatch) shortest() time.Duration {
	d := ackCheckInterval
	for _, l := range w.limits {
		d = min(d, l.timeout)
	}
	return d
}

// ringAcks is the timer. While nothing is out it does not wake the reader.
func (ch *channel) ringAcks() {
	w := &ch.timeouts
	ch.conn.out.mu.Lock()
	idle := ch.unacked.count() == 0
	ch.conn.out.mu.Unlock()
	switch {
	case w.stopped.Load():
	case idle:
		w.timer.Reset(time.Duration(w.rest.Load()))
	default:
		ch.conn.post(ch.checkAcks)
	}
}

// ackLimit is what holds for the queue. A queue's own timeout is not validated
// when it is declared (RabbitMQ 4.0); one that is not positive is none.
func (c *conn) ackLimit(q queue.Queue) ackLimit {
	s := q.Status()
	l := ackLimit{timeout: c.srv.cfg.ConsumerTimeout, requeues: s.TimeoutAction == queue.RequeueDelivery}
	if s.ConsumerTimeout > 0 {
		l.timeout = time.Duration(s.ConsumerTimeout) * time.Millisecond
	}
	return l
}

// TimeoutChanged implements queue.Watcher.
func (c *consumer) TimeoutChanged(*queue.Subscription) {
	c.ch.conn.post(func() error {
		if c.ch.closing || c.ch.timeouts.stopped.Load() {
			return nil
		}
		return c.ch.checkAcks()
	})
}

// checkAcks sees to deliveries that have been out for too long: they go back, or
// the channel ends, as their queue says.
func (ch *channel) checkAcks() error {
	w := &ch.timeouts
	if ch.closing || w.timer == nil || w.stopped.Load() {
		return nil
	}
	ch.renewLimits()
	late, wait := ch.lateAcks()
	for _, o := range late {
		if l := w.limits[o.c.queue]; !l.requeues {
			return ch.fail(0, frames.Unboundf(frames.PreconditionFailed, "delivery acknowledgement on channel %d timed out. "+
				"Timeout value used: %d ms. This timeout value can be configured, see consumers doc guide to learn more", ch.id, l.timeout.Milliseconds()))
		}
	}
	ch.requeueLate(late)
	ch.armAcks(wait)
	return nil
}

// fewLimits is how many queues a channel may watch in vain.
const fewLimits = 16

// renewLimits looks up what holds for the queues now.
func (ch *channel) renewLimits() {
	w := &ch.timeouts
	if len(w.limits) > fewLimits {
		ch.pruneLimits()
	}
	for q := range w.limits {
		w.limits[q] = ch.conn.ackLimit(q)
	}
}

// pruneLimits forgets the queues of which nothing is out and nothing will come.
func (ch *channel) pruneLimits() {
	used := make(map[queue.Queue]bool)
	ch.conn.out.mu.Lock()
	for _, c := range ch.consumers {
		used[c.queue] = true
	}
	ch.unacked.each(func(o *outstanding) bool {
		used[o.c.queue] = true
		return true
	})
	ch.conn.out.mu.Unlock()
	maps.DeleteFunc(ch.timeouts.limits, func(q queue.Queue, _ ackLimit) bool { return !used[q] })
}

// lateAcks are the deliveries that are late, and in how long another one of those
// that are out may be.
func (ch *channel) lateAcks() (late []outstanding, wait time.Duration) {
	shortest, now := ch.timeouts.shortest(), time.Now()
	wait = shortest
	out := ch.conn.out
	out.mu.Lock()
	defer out.mu.Unlock()
	ch.unacked.each(func(o *outstanding) (more bool) {
		at := time.UnixMilli(o.at)
		if left := at.Add(shortest).Sub(now); left > 0 {
			wait = min(wait, left)
			return false // those behind it are younger
		}
		if left := at.Add(ch.timeouts.timeoutOf(o)).Sub(now); left > 0 {
			wait = min(wait, left)
		} else {
			late = append(late, *o)
		}
		return true
	})
	return late, wait
}

func (w *ackWatch) timeoutOf(o *outstanding) time.Duration {
	if l, ok := w.limits[o.c.queue]; ok {
		return l.timeout
	}
	return math.MaxInt64 // of a queue that is not watched: there is none
}

// each calls f with the outstanding deliveries in the order of their tags until it
// returns false: those left behind in old, and then those in the ring.
func (u *unacked) each(f func(o *outstanding) (more bool)) {
	for _, tag := range slices.Sorted(maps.Keys(u.old)) {
		if o := u.old[tag]; !f(&o) {
			break // of the ring all are younger, but f says so itself
		}
	}
	if u.live == 0 {
		return
	}
	mask := uint64(len(u.ring) - 1)
	for t := u.low; t < u.next; t++ {
		if o := &u.ring[t&mask]; o.Msg != nil && !f(o) {
			return
		}
	}
}

// requeueLate returns late deliveries to their queues. Their tags are remembered:
// the client may still settle them, to no effect.
func (ch *channel) requeueLate(late []outstanding) {
	if len(late) == 0 {
		return
	}
	out := ch.conn.out
	out.mu.Lock()
	for i := range late {
		ch.unacked.take(late[i].tag)
	}
	out.mu.Unlock()
	for i := range late {
		ch.timeouts.late.add(late[i].tag)
	}
	ch.settle(late, queue.Requeued)
}

// takeLate settles a tag whose delivery was late and has gone back: that has no
// effect but on those before it, if multiple is set. ok is false for other tags.
func (ch *channel) takeLate(tag uint64, multiple bool) (list []outstanding, ok bool) {
	if !ch.timeouts.late.take(tag) {
		return nil, false
	}
	list = ch.conn.scratch[:0]
	if multiple {
		out := ch.conn.out
		out.mu.Lock()
		list = ch.unacked.takeThrough(tag, list)
		out.mu.Unlock()
	}
	ch.conn.scratch = list
	return list, true
}

// maxLateTags is how many tags of late deliveries a channel remembers one by one.
const maxLateTags = 1 << 14

// lateTags are the tags of late deliveries that the client may still settle. When
// there are too many, all up to the highest of them count as such.
type lateTags struct {
	tags map[uint64]struct{}
	upTo uint64
}

func (l *lateTags) add(tag uint64) {
	if l.tags == nil {
		l.tags = make(map[uint64]struct{})
	}
	if len(l.tags) == maxLateTags {
		for t := range l.tags {
			l.upTo = max(l.upTo, t)
		}
		clear(l.tags)
	}
	l.tags[tag] = struct{}{}
}

// take says whether the tag is one of them, and forgets it.
func (l *lateTags) take(tag uint64) bool {
	if _, ok := l.tags[tag]; ok {
		delete(l.tags, tag)
		return true
	}
	return tag != 0 && tag <= l.upTo
}

func (ch *channel) stopAckTimer() {
	w := &ch.timeouts
	w.stopped.Store(true)
	if w.timer != nil {
		w.timer.Stop()
	}
}

// post has the reader run a task of the broker's between two reads. It may be
// called from any goroutine. A connection that is closing runs no more tasks.
func (c *conn) post(task func() error) {
	c.tasksMu.Lock()
	defer c.tasksMu.Unlock()
	c.tasks = append(c.tasks, task)
	c.sock.SetReadDeadline(time.Unix(1, 0))
}

// runTasks runs what was posted.
func (c *conn) runTasks() error {
	c.tasksMu.Lock()
	tasks := c.tasks
	c.tasks = nil
	c.sock.SetReadDeadline(time.Time{})
	c.tasksMu.Unlock()
	for _, task := range tasks {
		if c.state != running {
			return nil
		}
		if err := task(); err != nil {
			return err
		}
	}
	return nil
}
