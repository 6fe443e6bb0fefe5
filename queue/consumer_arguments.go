package queue

import (
	"github.com/leveretmq/leveret/frames"
)

// ParseConsumerArguments checks the arguments of basic.consume against the type
// of the queue and returns the consumer's priority. The error is for the
// client. Unknown arguments are accepted and mean nothing.
func ParseConsumerArguments(t frames.Table, vhost, queueName, queueType string) (priority int, err error) {
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
	v, ok := t.Lookup("x-priority")
	if !ok {
		return 0, nil
	}
	n, ok := frames.Integer(v)
	if !ok {
		return 0, frames.Errorf(frames.PreconditionFailed, `invalid arg 'x-priority' for %s: "expected integer, got %s"`,
			ResourceText(vhost, queueName), frames.TypeName(v))
	}
	return int(n), nil
}

func foreignArgument(arg, vhost, queueName, queueType string) error {
	return frames.Errorf(frames.PreconditionFailed, "invalid arg '%s' for %s of queue type rabbit_%s_queue",
		arg, ResourceText(vhost, queueName), queueType)
}
