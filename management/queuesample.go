package management

import (
	"math"
	"time"

	"github.com/leveretmq/leveret/queue"
)

// A queueSample is a queue, or several added up, as a scrape has found it. It is
// filled again and again: a scrape of many queues allocates nothing for each.
type queueSample struct {
	st queue.Status // of several queues its numbers only

	// In bytes, estimated: bodies in memory, bodies of stored messages, and all
	// memory.
	inMemory, stored, memory int64
	// keepUp is 1 for a queue whose consumers could take messages.
	keepUp int64
	head   float64 // property timestamp of the oldest ready message, Unix seconds; NaN without
	age    float64 // since that message came, in seconds; 0 if there is none
	// drain is in how many seconds the queue will be empty; NaN if it does not look
	// like that.
	drain float64
}

// noQueues is what the sum of queues begins with.
func noQueues() queueSample { return queueSample{head: math.NaN(), drain: math.NaN()} }

// fill takes a queue's figures as of at.
func (q *queueSample) fill(st *queue.Status, at time.Time, drain float64) {
	q.st, q.drain = *st, drain
	q.inMemory, q.memory = bytesInMemory(st), queueMemory(st)
	q.stored = share(st.Bytes(), st.Persistent, st.Messages())
	q.keepUp = consumerCapacity(st)
	q.head, q.age = math.NaN(), 0
	if st.HeadTimestamp != 0 {
		q.head = float64(st.HeadTimestamp)
	}
	if st.HeadTime != 0 {
		q.age = max(0, at.Sub(time.UnixMilli(st.HeadTime)).Seconds())
	}
}

// plus adds a queue. Of times it keeps the worst.
func (q *queueSample) plus(o *queueSample) {
	s, n := &q.st, &o.st
	s.Ready += n.Ready
	s.Unacked += n.Unacked
	s.Delayed += n.Delayed
	s.ReadyBytes += n.ReadyBytes
	s.UnackedBytes += n.UnackedBytes
	s.DelayedBytes += n.DelayedBytes
	s.Consumers += n.Consumers
	s.Persistent += n.Persistent
	s.InMemory += n.InMemory
	s.AddCounters(n)
	q.inMemory += o.inMemory
	q.stored += o.stored
	q.memory += o.memory
	q.keepUp += o.keepUp
	q.age = max(q.age, o.age)
	if !(q.head <= o.head) && !math.IsNaN(o.head) {
		q.head = o.head
	}
	if !(q.drain >= o.drain) && !math.IsNaN(o.drain) {
		q.drain = o.drain
	}
}

// consumerCapacity is as addUse shows it.
func consumerCapacity(st *queue.Status) int64 {
	if st.Consumers > 0 && st.Ready == 0 {
		return 1
	}
	return 0
}
