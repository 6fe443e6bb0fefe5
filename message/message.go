// Package message holds the noun that all layers pass along: one published
// message, and the promise to its publisher. It is a leaf; no layer owns it.
package message

import "time"

// A Message is one published message. It is filled in by the front door that
// received it and never changed afterwards, so any number of queues, consumers
// and the store may share it without a lock. A large body that nobody has any more
// is used again, see Returns.
type Message struct {
	// Envelope is all that the publisher said but for the body. Messages that go
	// the same way share one: who changes it makes one of its own first, see Own.
	*Envelope
	// Body is the content, frame boundaries removed.
	Body []byte
	// More is what few messages have. It is nil for all others.
	More *More
	// Time is when the broker took the message, in milliseconds since the
	// Unix epoch; TTLs count from it.
	Time int64
}

// An Envelope is where a message goes and what its properties are. Most publishers
// say the same of one message after the other.
type Envelope struct {
	// Exchange is the exchange the client named, or after a dead-letter hop
	// the dead-letter exchange. "" is the default exchange.
	Exchange string
	// RoutingKey is what deliveries show; further keys are in More.
	RoutingKey string
	// Header is the property block of the content header as it came: the
	// flag word and the property list (spec §4.2.6.1). It is relayed byte for
	// byte unless the broker itself adds or removes a property.
	Header []byte
	// TTL is the expiration property in milliseconds, or NoTTL.
	TTL int64
	// Priority is the priority property; 0 if there is none.
	Priority uint8
	// Persistent says that delivery-mode is 2.
	Persistent bool
	// Mandatory is the publish flag of that name.
	Mandatory bool
}

// Own gives the message an envelope of its own, like the one that it had, and returns
// it to be changed. The message itself must not be shared yet.
func (m *Message) Own() *Envelope {
	e := *m.Envelope
	m.Envelope = &e
	return &e
}

// NoTTL is the TTL of a message without an expiration property.
const NoTTL = -1

// More holds what the common message does not have.
type More struct {
	// CC and BCC are the additional routing keys of the headers of these
	// names. BCC is no longer in the header.
	CC, BCC []string
	// Deaths is the dead-letter history made by this broker, newest first.
	// A client's own x-death header is not in it.
	Deaths []Death
	// FirstDeath is the oldest event; x-first-death-* are made of it.
	FirstDeath Death
}

// A Death is one entry of the x-death header: all events of one queue and one
// reason (RabbitMQ 4.0: time, exchange, keys and expiration are those of the
// first event).
type Death struct {
	Queue, Reason, Exchange string
	Keys                    []string // routing key and CC keys, no BCC
	Expiration              string   // the expiration property then; "" if none
	Count                   int64
	Time                    int64 // seconds since the Unix epoch
}

// Size is what the message weighs in memory budgets, in bytes.
func (m *Message) Size() int { return len(m.Header) + len(m.Body) + overhead }

// overhead is the struct and the allocator's rounding, in bytes; an estimate.
const overhead = 160

// Age is how long ago the broker took the message, never negative.
func (m *Message) Age(now time.Time) time.Duration {
	return max(0, time.Duration(now.UnixMilli()-m.Time)*time.Millisecond)
}
