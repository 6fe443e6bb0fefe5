package queue

import (
	"github.com/leveretmq/leveret/frames"
)

// ParseConsumerArguments checks the arguments of basic.consume against the type
// of the queue, the values of its own before those that are not its own, and
// returns the consumer's priority. The error is for the client. Unknown arguments
// are accepted and mean nothing.
func ParseConsumerArguments(t frames.Table, vhost, queueName, queueType string) (priority int, err error) {
	if v, ok := t.Lookup("x-stream-offset"); ok && queueType == Stream && !validOffset(v) {
		return 0, frames.Errorf(frames.PreconditionFailed, "invalid arg 'x-stream-offset' for %s: {invalid_stream_offset_arg,{%s,%s}}",
			ResourceText(vhost, queueName), frames.TypeName(v), frames.Term(v))
	}
	if v, ok := t.Lookup("x-priority"); ok && queueType != Stream {
		n, ok := frames.Integer(v)
		if !ok {
			return 0, frames.Errorf(frames.PreconditionFailed, `invalid arg 'x-priority' for %s: "expected integer, got %s"`,
				ResourceText(vhost, queueName), frames.TypeName(v))
		}
		priority = int(n)
	}
	for _, f := range t {
		switch f.Name {
		case "x-priority":
			if queueType == Stream {
				return 0, foreignArgument(f.Name, vhost, queueName, queueType)
			}
		case "x-stream-offset", "x-stream-filter", "x-stream-match-unfiltered":
			if queueType != Stream {
				return 0, foreignArgument(f.Name, vhost, queueName, queueType)
			}
		}
	}
	return priority, nil
}

// validOffset says whether v is a place in a stream: first, last, next, an
// offset, a timestamp or an age like 5m.
func validOffset(v any) bool {
	switch v := v.(type) {
	case string:
		return v == "first" || v == "last" || v == "next" || validMaxAge(v)
	case frames.Timestamp:
		return true
	}
	_, ok := frames.Integer(v)
	return ok
}

func foreignArgument(arg, vhost, queueName, queueType string) error {
	return frames.Errorf(frames.PreconditionFailed, "invalid arg '%s' for %s of queue type rabbit_%s_queue",
		arg, ResourceText(vhost, queueName), queueType)
}
