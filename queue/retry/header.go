package retry

import (
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
)

// These headers say of a redelivered message how often it was handed out before;
// a client's own headers of the names give way. RabbitMQ 4.0 has the first alone;
// 4.3 has both, and its clients read the second.
const (
	countHeader    = "x-delivery-count"
	acquiredHeader = "x-acquired-count"
)

// Counted is the message with the headers of its count; it shares the body with
// the one it is made of.
func Counted(m *message.Message, count uint32) *message.Message {
	return withHeaders(m, func(t frames.Table) frames.Table {
		return t.Set(countHeader, int64(count)).Set(acquiredHeader, int64(count))
	})
}

// Uncounted is the message without the headers of its count: dead letters do not
// have them (RabbitMQ 4.0).
func Uncounted(m *message.Message) *message.Message {
	return withHeaders(m, func(t frames.Table) frames.Table { return t.Without(countHeader).Without(acquiredHeader) })
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
	c.Own().Header = p.Append(nil)
	return &c
}
