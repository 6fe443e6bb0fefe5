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
	r := message.NewReceipt(&Settlement{log, records}, 1, uint64(len(dead)))
	r.Hold(1)
	e.DeadLetter(from, to, why, dead, r)
	r.Release()
}

// A Settlement owns the receipt of copies of messages that have left the place where a
// log has records of them, as dead letters and delayed messages do. It settles the
// records once the copies are on disk.
type Settlement struct {
	Log     persistence.Log // it may be nil if there are no records
	Records []uint64        // complete, and ascending, before the receipt may be settled
}

// Settled implements message.Owner. What was refused has no target that wants
// it; what failed to be stored is kept.
func (s *Settlement) Settled(r *message.Receipt) {
	if _, failed := r.Outcome(); !failed && len(s.Records) > 0 {
		s.Log.Settle(s.Records)
	}
}
