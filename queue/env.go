package queue

import (
	"errors"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
)

// ErrGone says that the queue was deleted meanwhile.
var ErrGone = errors.New("queue is gone")

// A Spec is what a queue is declared with.
type Spec struct {
	VHost, Name string
	Durable     bool
	Exclusive   bool
	AutoDelete  bool
	// Arguments are those of all queues declared alike: nobody changes them. Nil
	// is none.
	Arguments *Arguments
}

// A Reason says why a message is dead-lettered; it is the reason of x-death.
type Reason string

// The reasons of RabbitMQ.
const (
	ReasonRejected      Reason = "rejected"
	ReasonExpired       Reason = "expired"
	ReasonMaxlen        Reason = "maxlen"
	ReasonDeliveryLimit Reason = "delivery_limit"
)

// A Target is where a queue's dead letters go.
type Target struct {
	Exchange string
	Key      string // used instead of the message's keys if HasKey
	HasKey   bool
}

// Writes are what dead letters may cause: they go anywhere. The target may be nil.
func (t *Target) Writes() Writes {
	if t == nil {
		return 0
	}
	return Anywhere
}

// An Env is what a queue needs of its surroundings. The functions are called
// without the queue's lock.
type Env struct {
	Log *zap.Logger
	// Store is where durable queues keep their logs.
	Store persistence.Store
	// Spill makes a log for transient messages that do not fit in memory; what
	// is in it does not survive a restart. Each call makes another log, which
	// the queue drops at its end. It is nil if there is none.
	Spill func() (persistence.Log, error)
	// LogID is the log of a queue that is reopened after a restart, else 0.
	LogID persistence.LogID
	// PlacesID is the log of the places of a Placed queue, likewise.
	PlacesID persistence.LogID
	// DeadLetter publishes messages that died in the queue, in order, and
	// returns when the target queues have them; their logs have the records,
	// not yet on disk. With a receipt it promises more: r, which the queue
	// holds, is held once more for every target queue and released by it when
	// the messages are safe there. The confirm numbers of the messages are 1 to
	// len(dead); those that reach no queue, because the exchange is missing or
	// nothing is bound, are refused. What is not sent because it would go round
	// for ever counts as safe.
	DeadLetter func(from Queue, to Target, reason Reason, dead []*message.Message, r *message.Receipt)
	// Ended says that the queue has ended itself: auto-delete or expiry. The
	// owner takes it out of the topology; Delete was done.
	Ended func(q Queue, why string)
	// Memory is the budget that all queues share.
	Memory *Budget
}

// A Factory makes a queue, or reopens it after a restart.
type Factory func(env Env, spec Spec) (Queue, error)

// A Logged queue has a log of its own in the store; its id belongs into the
// queue's definition. The id is 0 for a queue that is not durable.
type Logged interface{ LogID() persistence.LogID }

// A Placed queue keeps in a second log where its consumers are; that one's id belongs
// into the definition, too.
type Placed interface{ PlacesID() persistence.LogID }
