package queue

import "github.com/leveretmq/leveret/frames"

// None stands for an integer argument or policy key that is not set.
const None = -1

// Overflow says what a full queue does.
type Overflow uint8

// The overflow behaviours; OverflowUnset is drop-head by default.
const (
	OverflowUnset Overflow = iota
	DropHead
	RejectPublish
	RejectPublishDLX
)

// Arguments are a queue's declared arguments, validated.
type Arguments struct {
	// Table is what the client sent, with x-queue-type added.
	Table frames.Table
	// Type is classic, quorum or stream.
	Type string

	Expires         int64 // milliseconds; None
	MessageTTL      int64 // milliseconds; None
	MaxLength       int64 // messages; None
	MaxLengthBytes  int64 // bytes of bodies; None
	MaxPriority     int   // 0 is no priorities
	DeliveryLimit   int64 // None; quorum
	ConsumerTimeout int64 // milliseconds; None
	Overflow        Overflow
	SingleActive    bool
	DeadLetter      *Target // nil if none; the exchange may be ""
}

// A Policy is what policies and operator policies say of one queue, merged.
type Policy struct {
	// Name and Operator are the names of the policy and the operator policy
	// that apply; "" if none.
	Name, Operator string

	Expires              int64
	MessageTTL           int64
	MaxLength            int64
	MaxLengthBytes       int64
	DeliveryLimit        int64
	ConsumerTimeout      int64
	Overflow             Overflow
	DeadLetterExchange   *string
	DeadLetterRoutingKey *string
}
