package amqp

import (
	"slices"
	"sync"
	"time"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
)

// confirms is the one producer of acks and nacks of a channel, for transient
// and durable messages alike, so that numbers cannot overtake each other. It
// owns the receipts of the channel's batches.
type confirms struct {
	ch        *channel
	published uint64 // the last number given; the reader's

	// mu guards the fields below. Order: a queue's lock or none, then mu, then
	// the outbox's.
	mu      sync.Mutex
	next    uint64             // the lowest number that is not confirmed
	early   []*message.Receipt // settled before one below them, in order of First
	dropped bool               // the channel has ended: say nothing more
}

var _ message.Owner = (*confirms)(nil)

// confirmSelect handles confirm.select, an extension of RabbitMQ's.
func (ch *channel) confirmSelect(m *frames.ConfirmSelect) error {
	if ch.tx != nil {
		return frames.Errorf(frames.PreconditionFailed, "cannot switch from tx to confirm mode")
	}
	if ch.acks == nil {
		ch.acks = &confirms{ch: ch, next: 1}
		ch.confirming.Store(true)
	}
	ch.replyUnless(m.NoWait, &frames.ConfirmSelectOk{})
	return nil
}

// Settled takes a batch that is safe, or refused. When it is the lowest one
// that is outstanding, it and those that waited for it are confirmed at once.
func (f *confirms) Settled(r *message.Receipt) {
	if r.Began > 0 {
		f.ch.conn.srv.users.confirms.Add(time.Duration(time.Now().UnixNano() - r.Began))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dropped {
		return
	}
	if r.First != f.next {
		i, _ := slices.BinarySearchFunc(f.early, r.First, func(e *message.Receipt, first uint64) int {
			return int(int64(e.First - first))
		})
		f.early = slices.Insert(f.early, i, r)
		return
	}
	f.confirmLocked(r)
}

// confirmLocked confirms r and all that follows it without a gap. f.mu must be
// held.
func (f *confirms) confirmLocked(r *message.Receipt) {
	from := f.next // acks from here on are still to be sent
	last := r.Last
	from = f.refusedLocked(from, r)
	n := 0
	for n < len(f.early) && f.early[n].First == last+1 {
		last = f.early[n].Last
		from = f.refusedLocked(from, f.early[n])
		n++
	}
	f.early = slices.Delete(f.early, 0, n)
	if from <= last {
		f.ch.conn.out.ack(f.ch.id, last, last > from)
	}
	f.next = last + 1
	f.ch.counts.confirmed.Store(last - f.ch.counts.nacked.Load()) // numbers begin with 1
}

// refusedLocked sends the nacks of a batch, one for each run of numbers, after an
// ack of what comes before it, and returns the first number that is still to be
// acked. As nothing before it is outstanding, a nack is one of multiple numbers
// even if it is of one (RabbitMQ 4.0). f.mu must be held.
func (f *confirms) refusedLocked(from uint64, r *message.Receipt) uint64 {
	refused, failed := r.Outcome()
	out := f.ch.conn.out
	if failed {
		if from < r.First {
			out.ack(f.ch.id, r.First-1, r.First-1 > from)
		}
		out.nack(f.ch.id, r.Last, true)
		f.ch.counts.nacked.Add(r.Last - r.First + 1)
		return r.Last + 1
	}
	if len(refused) == 0 {
		return from
	}
	slices.Sort(refused)
	refused = slices.Compact(refused)
	f.ch.counts.nacked.Add(uint64(len(refused)))
	for i, seq := range refused {
		if from < seq {
			out.ack(f.ch.id, seq-1, seq-1 > from)
		}
		if from = seq + 1; i+1 == len(refused) || refused[i+1] != from {
			out.nack(f.ch.id, seq, true)
		}
	}
	return from
}

// drop ends the confirms of a channel that has ended.
func (f *confirms) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropped = true
	f.early = nil
}
