package vhost

// A Permission is one of the three regular expressions of a user in a vhost.
type Permission uint8

// The permissions.
const (
	Configure Permission = iota
	Write
	Read
)

// String is the permission's name in error texts.
func (p Permission) String() string {
	switch p {
	case Configure:
		return "configure"
	case Write:
		return "write"
	}
	return "read"
}

// An Actor is on whose behalf an operation is done: a channel, the HTTP API,
// the broker itself. Every operation asks it at the place that the check has in
// the operation's order of checks, with no lock held.
type Actor interface {
	User() string
	// Owner is the connection that owns exclusive queues; it must be
	// comparable. Nil owns nothing.
	Owner() any
	// MayExchange checks the permission on an exchange; "" is the default
	// exchange. A refusal is an Error for the client.
	MayExchange(p Permission, name string) error
	MayQueue(p Permission, name string) error
	// MayTopic is asked for exchanges of type topic only.
	MayTopic(p Permission, exchange, key string) error
}

// System is the broker itself: it may do all and owns nothing.
var System Actor = system{}

type system struct{}

func (system) User() string                              { return "rmq-internal" }
func (system) Owner() any                                { return nil }
func (system) MayExchange(Permission, string) error      { return nil }
func (system) MayQueue(Permission, string) error         { return nil }
func (system) MayTopic(Permission, string, string) error { return nil }
