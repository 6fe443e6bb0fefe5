package vhost

import (
	"slices"
	"time"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// A sighting is a new id that a filter took note of. It lasts if the queues take
// the message.
type sighting struct {
	f      *filter
	number uint64 // in the filter
	seq    uint64 // the message's confirm number within its watch's receipt
}

// A watch is the messages of one batch that have one receipt and whose ids filters
// took note of: it stands between that and the queues, to forget the ids of what
// they refuse.
//
// A duplicate's receipt waits for the first message's watch: the receipt that it
// had before its own watch of the same kind, exchanges' or queues', so that no watch
// waits for itself. It never waits for a transaction of others that is open.
type watch struct {
	user     *message.Receipt // nil if nobody waits
	r        *message.Receipt // what the queues get; its confirm numbers are 1 to len(confirms)
	confirms []uint64         // those of user
	seen     []sighting
}

var _ message.Owner = (*watch)(nil)

// duplicate says whether the filter of an exchange drops the message of an entry.
func (p *Publisher) duplicate(f *filter, headers []byte, now int64, by waiter) bool {
	number, duplicate := f.see(headers, now, by)
	if number != 0 {
		p.noted = append(p.noted, sighting{f: f, number: number})
	}
	return duplicate
}

// waiterOf is the publisher of an entry that is being routed.
func (p *Publisher) waiterOf(e *queue.Entry) waiter {
	w := waiter{r: e.Receipt, seq: e.Seq}
	if p.Transactional {
		w.tx = p
	}
	return w
}

// commit has others wait for what filters and producers took note of.
func (p *Publisher) commit() {
	for _, w := range p.watches {
		for _, s := range w.seen {
			s.f.commit(s.number)
		}
	}
	t := p.v.producers
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range p.flights {
		for _, c := range f.claims {
			c.tx = nil
		}
	}
}

// watched puts a watch between an entry and its receipt, if filters took note of
// its message.
func (p *Publisher) watched(e queue.Entry) queue.Entry {
	if len(p.noted) == 0 {
		return e
	}
	w := p.watchOf(e.Receipt)
	w.confirms = append(w.confirms, e.Seq)
	e.Receipt, e.Seq = w.r, uint64(len(w.confirms))
	for _, s := range p.noted {
		s.seq = e.Seq
		w.seen = append(w.seen, s)
	}
	p.noted = p.noted[:0]
	return e
}

// watchOf returns the batch's watch for a receipt: an exchanges' one before Flush, a
// queues' one from then on.
func (p *Publisher) watchOf(user *message.Receipt) *watch {
	if n := len(p.watches); n > p.outer && p.watches[n-1].user == user {
		return p.watches[n-1]
	}
	w := &watch{user: user}
	w.r = message.NewReceipt(w, 1, 0)
	w.r.Hold(1)
	if user != nil {
		user.Hold(1)
	}
	p.watches = append(p.watches, w)
	return w
}

// unsee forgets the ids of the message that was added last: it has reached no
// queue.
func (p *Publisher) unsee() {
	for _, s := range p.noted {
		s.f.end(s.number, true, false)
	}
	p.noted = p.noted[:0]
}

// sift removes the duplicates from a queue's batch, and says whether there is
// anything left.
func (p *Publisher) sift(s *batchSlot) bool {
	now := time.Now().UnixMilli()
	rest := s.batch[:0]
	for _, e := range s.batch {
		if hasHeaders(e.Msg) {
			if p.duplicate(s.filter, headerFields(e.Msg), now, waiter{r: e.Receipt, seq: e.Seq}) {
				continue
			}
			e = p.watched(e)
		}
		rest = append(rest, e)
	}
	clear(s.batch[len(rest):])
	s.batch, s.runs = rest, 2 // at most: see hold
	return len(rest) > 0
}

// releaseWatches notes that the queues have the batch. A later watch may be in
// front of an earlier one's receipt.
func (p *Publisher) releaseWatches() {
	for i, w := range slices.Backward(p.watches) {
		p.watches[i] = nil
		w.flushed()
		w.r.Release()
	}
	p.watches, p.outer = p.watches[:0], 0
}

// flushed passes on what the queues have refused at once, and stores the ids of the
// rest: each with or after its message.
func (w *watch) flushed() {
	refused, failed := w.r.Outcome()
	if failed {
		return
	}
	w.refuse(refused)
	for _, s := range w.seen {
		if !slices.Contains(refused, s.seq) {
			s.f.store(s.number)
		}
	}
}

func (w *watch) refuse(refused []uint64) {
	if w.user == nil {
		return
	}
	for _, seq := range refused {
		w.user.Refuse(w.confirms[seq-1])
	}
}

// Settled implements message.Owner: the messages are safe, or were refused.
func (w *watch) Settled(r *message.Receipt) {
	refused, failed := r.Outcome()
	for _, s := range w.seen {
		s.f.end(s.number, slices.Contains(refused, s.seq), failed)
	}
	if w.user == nil {
		return
	}
	if failed {
		w.user.Fail()
	}
	w.refuse(refused) // some perhaps again
	w.user.Release()
}

// discardWatches forgets the ids of a batch that is dropped. Duplicates that wait
// for it are refused, so that they are published again.
func (p *Publisher) discardWatches() {
	for i, w := range p.watches {
		p.watches[i] = nil
		for _, s := range w.seen {
			s.f.end(s.number, true, false)
		}
	}
	p.watches = p.watches[:0]
}
