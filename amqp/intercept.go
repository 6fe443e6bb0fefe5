package amqp

import (
	"time"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
)

// Intercept is what the broker adds to the messages that clients publish. The
// zero value is nothing (RabbitMQ 4.0: message_interceptors.incoming).
type Intercept struct {
	Timestamp   Addition // when it came: property timestamp, header timestamp_in_ms
	RoutingNode Addition // by which node: header x-routed-by
}

// An Addition says whether something is added to messages.
type Addition byte

// Additions are made never, to messages that lack it, or to all.
const (
	NoAddition Addition = iota
	Missing
	Overwrite
)

func (i *Intercept) on() bool { return i.Timestamp != NoAddition || i.RoutingNode != NoAddition }

// The headers that are added (RabbitMQ 4.0).
const (
	timestampHeader   = "timestamp_in_ms"
	routingNodeHeader = "x-routed-by"
)

// intercept adds to a message what the configuration says.
func (s *Server) intercept(m *message.Message, p *frames.Properties) error {
	if add := s.cfg.Intercept.Timestamp; add == Overwrite || add == Missing && !p.Has(frames.FlagTimestamp) {
		p.Flags |= frames.FlagTimestamp
		p.Timestamp = uint64(time.UnixMilli(m.Time).Unix())
	}
	return rewriteHeaders(m, p, func(t frames.Table) frames.Table {
		t = addHeader(t, s.cfg.Intercept.Timestamp, timestampHeader, m.Time)
		return addHeader(t, s.cfg.Intercept.RoutingNode, routingNodeHeader, s.cfg.Node)
	})
}

func addHeader(t frames.Table, add Addition, name string, value any) frames.Table {
	if _, there := t.Lookup(name); add == NoAddition || add == Missing && there {
		return t
	}
	return t.Set(name, value)
}
