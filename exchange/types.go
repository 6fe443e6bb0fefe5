package exchange

import "github.com/leveretmq/leveret/frames"

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

func errUnknownType(name string) error {
	return frames.Errorf(frames.PreconditionFailed, "unknown exchange type '%s'", name)
}
