package queue

import (
	"fmt"

	"github.com/leveretmq/leveret/frames"
)

// Equivalent says whether a redeclaration means the queue s: the flags, then
// the arguments. Exclusivity and its owner come before and are not looked at.
// The error is for the client, with RabbitMQ 4.0's text.
func (s Spec) Equivalent(received Spec) error {
	if s.Durable != received.Durable {
		return inequivalentFlag("durable", s, received.Durable)
	}
	if s.AutoDelete != received.AutoDelete {
		return inequivalentFlag("auto_delete", s, received.AutoDelete)
	}
	return s.Arguments.Equivalent(*received.Arguments, s.VHost, s.Name)
}

// inequivalentFlag is the error for a flag that differs, so is !received now.
func inequivalentFlag(name string, s Spec, received bool) error {
	return inequivalent(name, s.VHost, s.Name, fmt.Sprintf("'%t'", received), fmt.Sprintf("'%t'", !received))
}

// Equivalent says whether b, received with a redeclaration, means the same as
// the present arguments a. Of RabbitMQ's arguments those that the type of queue
// knows are compared, and all of our own; integers by value whatever their width.
func (a Arguments) Equivalent(b Arguments, vhost, name string) error {
	for _, keys := range [2][]string{compared(a.Type), ownCompared()} {
		for _, key := range keys {
			if key == deliveryLimitArgument && a.Type == Classic && !hasOwnRetries(a.Table) && !hasOwnRetries(b.Table) {
				continue // it is no argument of this queue's, so RabbitMQ 4.0 does not look at it
			}
			if err := a.equivalentIn(key, b, vhost, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// equivalentIn compares one argument.
func (a Arguments) equivalentIn(key string, b Arguments, vhost, name string) error {
	current, isSet := a.Table.Lookup(key)
	received, sent := b.Table.Lookup(key)
	switch {
	case !isSet && !sent:
	case isSet && sent:
		if !frames.SameValue(current, received) {
			return inequivalent(key, vhost, name, frames.QuotedTerm(received), frames.QuotedTerm(current))
		}
	case isSet:
		return inequivalent(key, vhost, name, "none", typed(current))
	default:
		return inequivalent(key, vhost, name, typed(received), "none")
	}
	return nil
}

// compared are RabbitMQ's arguments that make queues of a type differ, in the order
// in which RabbitMQ 4.0 compares them.
func compared(queueType string) []string {
	switch queueType {
	case Quorum:
		return []string{"x-dead-letter-exchange", "x-dead-letter-routing-key", "x-dead-letter-strategy", "x-expires", "x-max-length",
			"x-max-length-bytes", "x-max-in-memory-length", "x-max-in-memory-bytes", "x-overflow", "x-single-active-consumer", "x-queue-type",
			"x-quorum-initial-group-size", deliveryLimitArgument, "x-message-ttl", "x-queue-leader-locator"}
	case Stream:
		return []string{"x-max-length-bytes", "x-queue-type", "x-max-age", "x-stream-max-segment-size-bytes",
			"x-initial-cluster-size", "x-queue-leader-locator"}
	}
	return []string{"x-expires", "x-message-ttl", "x-dead-letter-exchange", "x-dead-letter-routing-key", "x-max-length", "x-max-length-bytes",
		"x-max-priority", "x-overflow", "x-queue-mode", "x-queue-version", "x-single-active-consumer", "x-queue-type",
		"x-queue-master-locator", "x-queue-leader-locator", deliveryLimitArgument}
}

// ownCompared are the arguments that RabbitMQ does not have and that make queues
// differ, whatever their type: one with which nothing happens is not to be taken.
func ownCompared() []string {
	return []string{"x-consumer-timeout-action",
		"x-redelivery-delay", "x-redelivery-delay-multiplier", "x-redelivery-delay-max", "x-redelivery-jitter",
		"x-message-deduplication", "x-deduplication-header", "x-cache-size", "x-cache-ttl"}
}

func inequivalent(arg, vhost, name, received, current string) error {
	return frames.Errorf(frames.PreconditionFailed, "inequivalent arg '%s' for %s: received %s but current is %s",
		arg, ResourceText(vhost, name), received, current)
}

// typed describes a value with its type.
func typed(v any) string {
	return "the value '" + frames.PlainTerm(v) + "' of type '" + frames.TypeName(v) + "'"
}
