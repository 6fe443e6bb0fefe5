package vhost

import (
	"slices"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
)

// A TraceSource is where a traced message comes from or goes to.
type TraceSource struct {
	Connection string // the connection's name
	Channel    uint16
	User       string
}

// SetTracing turns tracing of the vhost's messages on or off. It is off after a
// restart (RabbitMQ 4.0).
func (v *VHost) SetTracing(on bool) { v.tracing.Store(on) }

// Tracing says whether the vhost's messages are traced. It costs one load; who
// delivers asks it before TraceDeliver.
func (v *VHost) Tracing() bool { return v.tracing.Load() }

// tracePublish publishes a copy of an accepted message to the trace exchange.
func (v *VHost) tracePublish(from *TraceSource, exchange string, m *message.Message, targets []*batchSlot) {
	if exchange == traceExchange {
		return
	}
	v.trace("publish."+exchange, m, append(v.traceHeaders(from, m), frames.Field{Name: "routed_queues", Value: array(routedTo(exchange, m, targets))}))
}

// routedTo names the queues that a message went to; for the default exchange, as
// RabbitMQ 4.0, those that its keys name, even if they do not exist.
func routedTo(exchange string, m *message.Message, targets []*batchSlot) []string {
	if exchange == "" {
		keys := allKeysOf(m)
		slices.Sort(keys)
		return slices.Compact(keys)
	}
	var names []string
	for _, s := range targets {
		if s.entry != nil {
			names = append(names, s.entry.spec.Name)
		}
	}
	return names
}

// TraceDeliver publishes a copy of a message that is delivered from a queue to a
// client, with basic.deliver or basic.get-ok. Call it if Tracing.
func (v *VHost) TraceDeliver(to *TraceSource, queueName string, m *message.Message, redelivered bool) {
	if m.Exchange == traceExchange {
		return
	}
	var again int32
	if redelivered {
		again = 1
	}
	v.trace("deliver."+queueName, m, append(v.traceHeaders(to, m), frames.Field{Name: "redelivered", Value: again}))
}

func (v *VHost) trace(key string, m *message.Message, headers frames.Table) {
	var p frames.Properties
	p.SetTable(headers)
	v.publish(&message.Message{
		Envelope: &message.Envelope{Exchange: traceExchange, RoutingKey: key, Header: p.Append(nil), TTL: message.NoTTL},
		Body:     m.Body, Time: m.Time,
	})
}

func (v *VHost) traceHeaders(at *TraceSource, m *message.Message) frames.Table {
	return frames.Table{
		{Name: "exchange_name", Value: m.Exchange},
		{Name: "routing_keys", Value: array(allKeysOf(m))},
		{Name: "properties", Value: traceProperties(m)},
		{Name: "node", Value: v.set.config.Node},
		{Name: "vhost", Value: v.name},
		{Name: "connection", Value: at.Connection},
		{Name: "channel", Value: int32(at.Channel)},
		{Name: "user", Value: at.User},
	}
}

// traceProperties shows the properties that are set, integers as signed 32 bits
// (RabbitMQ 4.0).
func traceProperties(m *message.Message) frames.Table {
	var p frames.Properties
	if p.Parse(m.Header) != nil {
		return nil // it was checked when it came in
	}
	var t frames.Table
	text := func(flag uint16, name string, v []byte) {
		if p.Has(flag) {
			t = append(t, frames.Field{Name: name, Value: string(v)})
		}
	}
	number := func(flag uint16, name string, v int32) {
		if p.Has(flag) {
			t = append(t, frames.Field{Name: name, Value: v})
		}
	}
	text(frames.FlagContentType, "content_type", p.ContentType)
	text(frames.FlagContentEncoding, "content_encoding", p.ContentEncoding)
	if headers, err := p.Table(); err == nil && p.Has(frames.FlagHeaders) {
		t = append(t, frames.Field{Name: "headers", Value: headers})
	}
	number(frames.FlagDeliveryMode, "delivery_mode", int32(p.DeliveryMode))
	number(frames.FlagPriority, "priority", int32(p.Priority))
	text(frames.FlagCorrelationID, "correlation_id", p.CorrelationID)
	text(frames.FlagReplyTo, "reply_to", p.ReplyTo)
	text(frames.FlagExpiration, "expiration", p.Expiration)
	text(frames.FlagMessageID, "message_id", p.MessageID)
	number(frames.FlagTimestamp, "timestamp", int32(p.Timestamp))
	text(frames.FlagType, "type", p.Type)
	text(frames.FlagUserID, "user_id", p.UserID)
	text(frames.FlagAppID, "app_id", p.AppID)
	text(frames.FlagClusterID, "cluster_id", p.ClusterID)
	return t
}
