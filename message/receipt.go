package message

import (
	"sync"
	"sync/atomic"
)

// A Receipt is the promise to the publisher of one batch: once every queue that
// got a part of the batch has taken responsibility, or has refused, its owner
// is told. A batch of publishes shares one receipt, so keeping the promise
// costs one atomic operation per queue and batch, not per message.
//
// The publisher calls Hold once for itself before it hands the batch out and
// once for each queue; each of them calls Release once.
type Receipt struct {
	// First and Last are the publisher's confirm numbers of the batch, both
	// included. They belong to the owner; queues do not look at them.
	First, Last uint64
	// Began is when the batch began, Unix nanoseconds; 0 is not known. It belongs to
	// the owner, too.
	Began int64

	owner   Owner
	pending atomic.Int32

	mu      sync.Mutex // guards the fields below; a leaf lock
	refused []uint64
	failed  bool
}

// An Owner is told when a batch is settled. It is called once per receipt, by
// whichever goroutine released it last (a queue's caller, the committer), maybe
// with a queue's lock held: it must not block and not call a queue.
type Owner interface{ Settled(r *Receipt) }

// NewReceipt returns a receipt for the confirm numbers first to last.
func NewReceipt(owner Owner, first, last uint64) *Receipt {
	return &Receipt{First: first, Last: last, owner: owner}
}

// Hold adds n parties that have yet to call Release.
func (r *Receipt) Hold(n int) { r.pending.Add(int32(n)) }

// Release says that one party has done its part. The last one settles the batch.
func (r *Receipt) Release() {
	if r.pending.Add(-1) == 0 && r.owner != nil {
		r.owner.Settled(r)
	}
}

// Refuse says that a queue does not take the message with this confirm number,
// for instance because it is full and its overflow is reject-publish. The
// party still calls Release for the batch.
func (r *Receipt) Refuse(seq uint64) {
	r.mu.Lock()
	r.refused = append(r.refused, seq)
	r.mu.Unlock()
}

// Fail says that the store could not keep the batch: none of it is confirmed.
// The party still calls Release.
func (r *Receipt) Fail() {
	r.mu.Lock()
	r.failed = true
	r.mu.Unlock()
}

// Outcome returns what was refused, in no order and perhaps with repetitions,
// and whether the whole batch failed. Call it after the batch is settled.
func (r *Receipt) Outcome() (refused []uint64, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused, r.failed
}
