package frames

import (
	"encoding/binary"
)

// The methods of the publish, deliver and settle paths have codecs of their
// own that allocate nothing.

// A Publish is basic.publish as views of the read buffer.
type Publish struct {
	Exchange, RoutingKey []byte
	Mandatory, Immediate bool
}

// Parse reads the arguments of basic.publish. RabbitMQ 4.0 checks the names of
// all other methods for UTF-8, but not these.
func (p *Publish) Parse(args []byte) error {
	b := args
	if len(b) < 3 {
		return cannotDecode(args)
	}
	n := int(b[2])
	b = b[3:]
	if len(b) < n+1 {
		return cannotDecode(args)
	}
	p.Exchange = b[:n:n]
	b = b[n:]
	n = int(b[0])
	b = b[1:]
	if len(b) != n+1 {
		return cannotDecode(args)
	}
	p.RoutingKey = b[:n:n]
	p.Mandatory = b[n]&1 != 0
	p.Immediate = b[n]&2 != 0
	return nil
}

// cannotDecode shows the bytes as numbers, even if they can be printed (RabbitMQ 4.0).
func cannotDecode(args []byte) error {
	return Errorf(FrameError, "cannot decode <<%s>>", numbers(args))
}

// ParseSettle reads the arguments of basic.ack, basic.nack and basic.reject: the
// tag, and the octet of bits, which each of them reads differently.
func ParseSettle(args []byte) (tag uint64, bits byte, err error) {
	if len(args) != 9 {
		return 0, 0, cannotDecode(args)
	}
	return binary.BigEndian.Uint64(args), args[8], nil
}

// AppendDeliver appends basic.deliver's method frame; the content header and the
// body follow it. What is longer than a shortstr is cut, as AppendMethod does: a
// name that nobody checked must not break the frames of who gets the message.
func AppendDeliver(dst []byte, channel uint16, consumerTag string, tag uint64, redelivered bool, exchange, key string) []byte {
	consumerTag, exchange, key = cutShort(consumerTag), cutShort(exchange), cutShort(key)
	n := 4 + 1 + len(consumerTag) + 8 + 1 + 1 + len(exchange) + 1 + len(key)
	dst = append(dst, MethodFrame, byte(channel>>8), byte(channel),
		0, 0, byte(n>>8), byte(n), 0, ClassBasic, 0, 60, byte(len(consumerTag)))
	dst = append(dst, consumerTag...)
	dst = binary.BigEndian.AppendUint64(dst, tag)
	dst = append(dst, bit(redelivered), byte(len(exchange)))
	dst = append(dst, exchange...)
	dst = append(dst, byte(len(key)))
	dst = append(dst, key...)
	return append(dst, frameEnd)
}

// A DeliverHead is where in a buffer the frames of a delivery lie that come before its
// body: basic.deliver and the content header. A delivery to the same consumer of the
// same exchange, key and properties is a copy of them but for three fields.
type DeliverHead struct {
	from, to  int
	tag, size int // where these fields are, from from on
}

// AppendDeliverHead appends AppendDeliver and AppendContentHeader.
func AppendDeliverHead(dst []byte, channel uint16, consumerTag string, tag uint64, redelivered bool, exchange, key string, size uint64, properties []byte) ([]byte, DeliverHead) {
	from := len(dst)
	dst = AppendDeliver(dst, channel, consumerTag, tag, redelivered, exchange, key)
	const method, class = 7 + 4 + 1, 7 + 4 // the bytes before the consumer tag, and before the size
	h := DeliverHead{from: from, tag: method + len(cutShort(consumerTag)), size: len(dst) - from + class}
	dst = AppendContentHeader(dst, channel, size, properties)
	h.to = len(dst)
	return dst, h
}

// AppendAgain appends the head to the buffer that it lies in, with other values.
func (h *DeliverHead) AppendAgain(dst []byte, tag uint64, redelivered bool, size uint64) []byte {
	n := len(dst)
	dst = append(dst, dst[h.from:h.to]...)
	b := dst[n:]
	binary.BigEndian.PutUint64(b[h.tag:], tag)
	b[h.tag+8] = bit(redelivered)
	binary.BigEndian.PutUint64(b[h.size:], size)
	return dst
}

// AppendAck appends basic.ack.
func AppendAck(dst []byte, channel uint16, tag uint64, multiple bool) []byte {
	dst = append(dst, MethodFrame, byte(channel>>8), byte(channel), 0, 0, 0, 13, 0, ClassBasic, 0, 80)
	dst = binary.BigEndian.AppendUint64(dst, tag)
	return append(dst, bit(multiple), frameEnd)
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}
