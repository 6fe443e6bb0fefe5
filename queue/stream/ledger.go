package stream

import (
	"sync"

	"github.com/leveretmq/leveret/message"
)

// A ledger knows how much of a stream is on disk. Readers get only that: a client
// keeps the offsets that it has seen, and comes back with them, so that after a crash
// none of them may be another message's (RabbitMQ 4.0).
//
// Every Append has a pledge as its receipt, which tells the ledger. As a log commits
// in order, what was appended before is on disk then, too, or forgotten.
type ledger struct {
	mu      sync.Mutex // guards the fields below; a leaf
	durable end
	awaited bool // the stream has readers
	seen    bool // somebody is about to look at durable
	free    []*pledge
}

// An end is where the stream, or what is on disk of it, ends.
type end struct {
	last, next uint64 // the first offset of the youngest chunk, and the one after it
}

// keptPledges is how many pledges a ledger keeps for their next use.
const keptPledges = 64

// A pledge is the receipt of what one Append brings. It passes the outcome on to the
// publisher's.
type pledge struct {
	q         *Queue           // immutable
	receipt   *message.Receipt // immutable; First and Last are the stream's end
	publisher *message.Receipt // nil if nobody waits
}

// pledgeLocked returns the receipt for records that reach up to the end of the stream,
// in the place of the publisher's. The caller looks at the ledger in the same turn.
func (q *Queue) pledgeLocked(publisher *message.Receipt) *message.Receipt {
	l := &q.ledger
	var p *pledge
	l.mu.Lock()
	l.seen = true
	if n := len(l.free); n > 0 {
		p, l.free = l.free[n-1], l.free[:n-1]
	}
	l.mu.Unlock()
	if p == nil {
		p = &pledge{q: q}
		p.receipt = message.NewReceipt(p, 0, 0)
	}
	p.publisher = publisher
	p.receipt.First, p.receipt.Last = q.last, q.next
	p.receipt.Hold(1)
	return p.receipt
}

// Settled implements message.Owner: the records are on disk, or the store has failed.
func (p *pledge) Settled(r *message.Receipt) {
	publisher, q := p.publisher, p.q
	p.publisher = nil
	_, failed := r.Outcome()
	if !failed {
		q.ledger.commit(p)
	}
	if publisher == nil {
		return
	}
	if failed {
		publisher.Fail()
	}
	publisher.Release()
}

// commit notes that what p is for is on disk, and has the readers told.
func (l *ledger) commit(p *pledge) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.receipt.Last > l.durable.next {
		l.durable = end{p.receipt.First, p.receipt.Last}
		if l.awaited && !l.seen {
			l.seen = true
			go p.q.announce() // ends when readers have what there is in memory
		}
	}
	if len(l.free) < keptPledges {
		l.free = append(l.free, p)
	}
}

// end is how much is on disk.
func (l *ledger) end() end {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.durable
}

// await says whether there are readers to be told of commits.
func (l *ledger) await(readers bool) {
	l.mu.Lock()
	l.awaited = readers
	l.mu.Unlock()
}

// lookLocked finds out how much is on disk, and says whether that is more than at the
// last time.
func (q *Queue) lookLocked() (more bool) {
	l := &q.ledger
	l.mu.Lock()
	now := l.durable
	l.seen = false
	l.mu.Unlock()
	more = now != q.durable
	q.durable = now
	return more
}

// announce hands what was committed to the readers that wait for it, whoever has
// looked meanwhile. Those for which it has to be read get goroutines, which Stop and
// Delete wait for.
func (q *Queue) announce() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lookLocked()
	if q.state != running {
		return
	}
	for _, r := range q.feedLocked() {
		q.scans.Go(func() {
			q.mu.Lock()
			q.drive(r)
		})
	}
	q.tidyLocked()
}
