package exchange

import (
	"strconv"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
)

// delayed routes as another type does; that it does so later is done by who
// publishes, see Exchange.Delay (the community plugin for RabbitMQ).
type delayed struct{ Router }

const (
	delayedType    = "x-delayed-message"
	delayedTypeKey = "x-delayed-type"
)

// maxDelay is the longest delay, in milliseconds; longer ones are cut.
const maxDelay = 1<<32 - 1

func newDelayed(args frames.Table) (Router, error) {
	v, _ := args.Lookup(delayedTypeKey)
	name, _ := v.(string)
	construct := constructorOf(name)
	if construct == nil {
		return nil, frames.Errorf(frames.PreconditionFailed, "Invalid argument, '%s' must be an existing exchange type", delayedTypeKey)
	}
	if name == delayedType {
		return nil, frames.Errorf(frames.PreconditionFailed, "Invalid argument, '%s' can't be used for '%s'", delayedType, delayedTypeKey)
	}
	inner, err := construct(args)
	if err != nil {
		return nil, err
	}
	return &delayed{inner}, nil
}

// ByKey is false: each message's delay must be looked at.
func (d *delayed) ByKey() bool { return false }

// Delay returns how long to wait before the message is routed here, in
// milliseconds, 1 to 2^32-1: its header x-delay, an integer or a string of
// digits, if that is positive and the exchange is of type x-delayed-message.
// Else ok is false and it is routed at once.
func (x *Exchange) Delay(m *message.Message) (ms int64, ok bool) {
	if _, ok := x.router.(*delayed); !ok {
		return 0, false
	}
	tag, value, ok := frames.FindField(headerTable(m), "x-delay")
	if !ok {
		return 0, false
	}
	switch tag {
	case 'S':
		ms, _ = strconv.ParseInt(string(value), 10, 64) // no number is no delay
	case 'T': // not an integer
	default:
		if kindOf(tag) == integer {
			ms = decodeInteger(tag, value)
		}
	}
	return min(ms, maxDelay), ms > 0
}
