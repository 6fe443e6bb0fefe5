package exchange

import (
	"strings"

	"github.com/leveretmq/leveret/frames"
)

// A constructor makes an empty router; it validates the exchange's arguments
// that are of its type.
type constructor func(args frames.Table) (Router, error)

// constructorOf is the table of exchange types; it returns nil for an unknown
// name.
func constructorOf(name string) constructor {
	switch name {
	case "direct":
		return newDirect
	case "fanout":
		return newFanout
	case "topic":
		return newTopic
	case "headers":
		return newHeaders
	case "x-consistent-hash":
		return newConsistentHash
	case "x-modulus-hash":
		return newModulusHash
	case "x-random":
		return newRandom
	case "x-local-random":
		return newLocalRandom
	case "x-recent-history":
		return newRecentHistory
	case delayedType:
		return newDelayed
	}
	return nil
}

// KnownType says whether there is an exchange type of this name.
func KnownType(name string) bool { return constructorOf(name) != nil }

// typeTerm prints the name of a type as the Erlang atom that it is in RabbitMQ
// 4.0: one with a dash is quoted.
func typeTerm(name string) string {
	if strings.Contains(name, "-") {
		return "'" + name + "'"
	}
	return name
}

// ErrUnknownType is the error for the client that wants a type which there is not.
func ErrUnknownType(name string) error {
	if name == "" { // RabbitMQ 4.0 has a word for it, though no type
		return frames.Errorf(frames.PreconditionFailed, "invalid exchange type ''")
	}
	return frames.Errorf(frames.PreconditionFailed, "unknown exchange type '%s'", name)
}
