package quorum

import (
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// An op is what a command does. The values are part of the format of commands.
type op uint8

const (
	opEnqueue  op = iota + 1 // messages are published
	opCheckout               // up to count messages go to a consumer
	opSettle                 // messages are acknowledged
	opRequeue                // messages come back, and the client has seen them
	opReturn                 // messages come back, and the client has not seen them
	opDiscard                // messages are rejected
	opExpire                 // up to count messages at the head have expired
	opTrim                   // up to count messages at the head are too many
	opPurge                  // all that wait are dropped
	opForget                 // dead messages have arrived elsewhere
	opRules                  // the settings change
	opDown                   // a consumer is lost: all it has comes back
	opWake                   // up to count messages have waited long enough
)

// A command is one change of a machine. Which fields count depends on op.
type command struct {
	op       op
	time     int64              // when it was given, Unix milliseconds
	consumer uint32             // opCheckout, opDown; 0 is a basic.get
	count    int                // how many messages, see machine.apply
	fresh    queue.ID           // opCheckout, opExpire: from this id on nothing expires
	first    queue.ID           // opEnqueue: the id of the first message, others follow; above all before
	messages []*message.Message // opEnqueue
	ids      []queue.ID         // of messages
	dues     []int64            // opRequeue: until when they wait, Unix milliseconds; nil is not at all
	rules    rules              // opRules
}
