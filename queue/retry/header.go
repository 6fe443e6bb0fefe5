package retry

import (
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
)

// countHeader says of a redelivered message how often it was handed out before; a
// client's own header of the name gives way. RabbitMQ 4.0 has this one alone, and
// 4.3 another one, x-acquired-count, besides.
const countHeader = "x-delivery-count"

// Counted is the message with the header of its count; it shares the body with
// the one it is made of.
func Counted(m *message.Message, count uint32) *message.Message {
	return withHeaders(m, func(t frames.Table) frames.Table {
		return t.Set(countHeader, int64(count))
	})
}

// Uncounted is the message without the header of its count: dead letters do not
// have it (RabbitMQ 4.0).
func Uncounted(m *message.Message) *message.Message {
	return withHeaders(m, func(t frames.Table) frames.Table { return t.Without(countHeader) })
}

// withHeaders is a copy of the message with other headers, which go out sorted.
func withHeaders(m *message.Message, change func(frames.Table) frames.Table) *message.Message {
	var p frames.Properties
	if err := p.Parse(m.Header); err != nil {
		return m // it was checked when it came in
	}
	t, err := p.Table()
	if err != nil {
		return m // the same
	}
	if t = change(t).Sorted(); len(t) > 0 {
		p.SetTable(t)
	} else {
		p.Headers, p.Flags = nil, p.Flags&^frames.FlagHeaders
	}
	c := *m
	c.Header = p.Append(nil)
	return &c
}
