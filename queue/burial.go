package queue

import (
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
)

// Bury publishes dead letters of which a log has these records. They are settled
// there once the targets have the messages on disk: a broker that dies between
// has them twice rather than not at all, also those whose publisher has just been
// told that they are safe. It is called without the queue's lock.
func (e *Env) Bury(from Queue, to Target, why Reason, dead []*message.Message, log persistence.Log, records []uint64) {
	r := message.NewReceipt(&burial{log, records}, 1, uint64(len(dead)))
	r.Hold(1)
	e.DeadLetter(from, to, why, dead, r)
	r.Release()
}

// A burial settles dead letters in the log of the queue that they died in.
type burial struct {
	log     persistence.Log
	records []uint64
}

// Settled implements message.Owner. What was refused has no target that wants
// it; what failed to be stored is kept.
func (b *burial) Settled(r *message.Receipt) {
	if _, failed := r.Outcome(); !failed {
		b.log.Settle(b.records)
	}
}
