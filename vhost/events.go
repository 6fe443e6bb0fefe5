package vhost

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// An event is published to amq.rabbitmq.event.
type event struct {
	key    string
	fields frames.Table
}

// Listening says whether anybody would get an event. Who has to build the
// fields of one asks first.
func (s *Set) Listening() bool {
	x := s.events.Load()
	return x != nil && !x.Empty()
}

// Event publishes an event if anybody listens. The key is its name with dots,
// for instance user.created; the fields become headers (RabbitMQ 4.0). It must
// not be called with a lock of this package held.
func (s *Set) Event(key string, fields frames.Table) {
	if !s.Listening() {
		return
	}
	v, ok := s.Get(defaultVHost)
	if !ok {
		return
	}
	now := time.Now()
	headers := append(fields[:len(fields):len(fields)], frames.Field{Name: "timestamp_in_ms", Value: now.UnixMilli()})
	p := frames.Properties{Flags: frames.FlagDeliveryMode | frames.FlagTimestamp, DeliveryMode: 2, Timestamp: uint64(now.Unix())}
	p.SetTable(headers)
	v.publish(&message.Message{
		Envelope: &message.Envelope{Exchange: eventExchange, RoutingKey: key, Header: p.Append(nil), TTL: message.NoTTL, Persistent: true},
		Time:     now.UnixMilli(),
	})
}

// LogListening says whether anybody would get log lines.
func (s *Set) LogListening() bool {
	x := s.logs.Load()
	return x != nil && !x.Empty()
}

// Log publishes a log line to amq.rabbitmq.log of the default vhost, if anybody
// listens; the key is its level. It must not be called with a lock of this
// package held.
func (s *Set) Log(key, contentType string, line []byte) {
	v, ok := s.Get(defaultVHost)
	if !ok || !s.LogListening() {
		return
	}
	now := time.Now()
	p := frames.Properties{Flags: frames.FlagContentType | frames.FlagTimestamp, ContentType: []byte(contentType), Timestamp: uint64(now.Unix())}
	p.SetTable(frames.Table{{Name: "node", Value: s.config.Node}})
	v.publish(&message.Message{
		Envelope: &message.Envelope{Exchange: logExchange, RoutingKey: key, Header: p.Append(nil), TTL: message.NoTTL},
		Body:     line, Time: now.UnixMilli(),
	})
}

// publish publishes a message of the broker itself. A missing exchange drops it.
func (v *VHost) publish(m *message.Message) {
	p := v.borrow()
	defer v.giveBack(p)
	rt, err := p.Route([]byte(m.Exchange), []byte(m.RoutingKey))
	if err != nil {
		return
	}
	p.use(rt)
	p.route(rt, queue.Entry{Msg: m})
	p.Flush()
}

// event adds an event that is published once the operation is done.
func (c *change) event(key string, fields frames.Table) {
	c.events = append(c.events, event{key, fields})
}

// listening says whether events of this operation are worth building.
func (c *change) listening() bool { return c.v.set.Listening() }

func (c *change) queueCreated(e *queueEntry) {
	if !c.listening() {
		return
	}
	fields := frames.Table{
		{Name: "name", Value: e.spec.Name},
		{Name: "vhost", Value: c.v.name},
		{Name: "durable", Value: e.spec.Durable},
		{Name: "auto_delete", Value: e.spec.AutoDelete},
		{Name: "exclusive", Value: e.spec.Exclusive},
		{Name: "arguments", Value: ArgumentTexts(e.spec.Arguments.Table)},
		{Name: "type", Value: typeModule(e)},
		{Name: "leader", Value: c.v.set.config.Node},
		{Name: "members", Value: []any{c.v.set.config.Node}},
	}
	owner := ""
	if o, ok := e.owner.(namedOwner); ok {
		owner = o.ConnectionName()
	}
	fields = append(fields, frames.Field{Name: "owner_pid", Value: owner})
	c.event("queue.created", append(fields, userField(e.user)))
}

// A namedOwner is an owner of exclusive queues that has a name for events:
// owner_pid, which is the connection's name here and its process in RabbitMQ.
type namedOwner interface{ ConnectionName() string }

// queuePolicyEvent tells that other policies apply to a queue than before: the
// names of those that do, and their definitions merged.
func (c *change) queuePolicyEvent(e *queueEntry, user string) {
	if !c.listening() {
		return
	}
	key := "queue.policy.cleared"
	fields := frames.Table{{Name: "name", Value: e.spec.Name}, {Name: "vhost", Value: c.v.name}, {Name: "type", Value: typeModule(e)}}
	if e.policy != nil || e.operator != nil {
		key = "queue.policy.updated"
		info := e.infoLocked()
		fields = append(fields,
			frames.Field{Name: "policy", Value: info.Policy},
			frames.Field{Name: "operator_policy", Value: info.Operator},
			frames.Field{Name: "effective_policy_definition", Value: definitionTable(info.Effective)})
	}
	c.event(key, append(fields, userField(user)))
}

func (c *change) queueDeleted(e *queueEntry, user string) {
	if !c.listening() {
		return
	}
	c.event("queue.deleted", frames.Table{
		{Name: "name", Value: e.spec.Name},
		{Name: "vhost", Value: c.v.name},
		{Name: "type", Value: typeModule(e)},
		userField(user),
	})
}

func (c *change) exchangeCreated(e *exchangeEntry) {
	if !c.listening() {
		return
	}
	var policy string
	if e.policy != nil {
		policy = e.policy.Name
	}
	c.event("exchange.created", frames.Table{
		{Name: "name", Value: e.x.Name},
		{Name: "vhost", Value: c.v.name},
		{Name: "type", Value: e.x.Type},
		{Name: "durable", Value: e.x.Durable},
		{Name: "auto_delete", Value: e.x.AutoDelete},
		{Name: "internal", Value: e.x.Internal},
		{Name: "arguments", Value: ArgumentTexts(e.x.Arguments)},
		{Name: "policy", Value: policy},
		userField(e.user),
	})
}

func (c *change) exchangeDeleted(e *exchangeEntry, user string) {
	if !c.listening() {
		return
	}
	c.event("exchange.deleted", frames.Table{
		{Name: "name", Value: e.x.Name},
		{Name: "vhost", Value: c.v.name},
		userField(user),
	})
}

func (c *change) bindingEvent(key string, from *exchangeEntry, to end, bindingKey string, args frames.Table, user string) {
	if !c.listening() {
		return
	}
	c.event(key, frames.Table{
		{Name: "source_name", Value: from.x.Name},
		{Name: "source_kind", Value: "exchange"},
		{Name: "destination_name", Value: to.name()},
		{Name: "destination_kind", Value: to.kind()},
		{Name: "routing_key", Value: bindingKey},
		{Name: "arguments", Value: ArgumentTexts(args)},
		{Name: "vhost", Value: c.v.name},
		userField(user),
	})
}

func (c *change) vhostEvent(key, user string) {
	if !c.listening() {
		return
	}
	fields := frames.Table{{Name: "name", Value: c.v.name}}
	if key == "vhost.created" {
		fields = append(fields, frames.Field{Name: "description", Value: c.v.options.Description}, frames.Field{Name: "tags", Value: array(c.v.options.Tags)})
	}
	c.event(key, append(fields, userField(user)))
}

// policyEvent is for a policy that was set, or with nil cleared.
func (c *change) policyEvent(key, name string, p *Policy, user string) {
	if !c.listening() {
		return
	}
	fields := frames.Table{{Name: "name", Value: name}, {Name: "vhost", Value: c.v.name}}
	if p != nil {
		fields = append(fields,
			frames.Field{Name: "pattern", Value: p.Pattern},
			frames.Field{Name: "apply-to", Value: p.ApplyTo},
			frames.Field{Name: "priority", Value: int64(p.Priority)},
			frames.Field{Name: "definition", Value: definitionTable(p.Definition)})
	}
	c.event(key, append(fields, userField(user)))
}

func (c *change) parameterEvent(key, component, name, user string) {
	if !c.listening() {
		return
	}
	c.event(key, frames.Table{
		{Name: "component", Value: component},
		{Name: "vhost", Value: c.v.name},
		{Name: "name", Value: name},
		userField(user),
	})
}

func (c *change) limitsEvent(key string, l Limits, user string) {
	if !c.listening() {
		return
	}
	fields := frames.Table{{Name: "name", Value: limitsName}, {Name: "vhost", Value: c.v.name}}
	limits := l.Map()
	for _, name := range []string{maxConnectionsLimit, maxQueuesLimit} {
		if n, ok := limits[name]; ok {
			fields = append(fields, frames.Field{Name: name, Value: n})
		}
	}
	c.event(key, append(fields, userField(user)))
}

func userField(user string) frames.Field {
	return frames.Field{Name: "user_who_performed_action", Value: user}
}

// typeModule is what RabbitMQ's events call a queue's type.
func typeModule(e *queueEntry) string { return "rabbit_" + e.spec.Arguments.Type + "_queue" }

// ArgumentTexts shows arguments as events do: one Erlang tuple of name, type and
// value each (RabbitMQ 4.0).
func ArgumentTexts(t frames.Table) []any {
	list := make([]any, len(t))
	for i, f := range t {
		value := fmt.Sprint(f.Value)
		switch v := f.Value.(type) {
		case string:
			value = frames.BinaryTerm(v)
		case []byte:
			value = frames.BinaryTerm(string(v))
		case nil, frames.Table, []any:
			value = frames.Term(v)
		}
		list[i] = fmt.Sprintf("{%s,%s,%s}", frames.BinaryTerm(f.Name), frames.TypeName(f.Value), value)
	}
	return list
}

// definitionTable is a policy's definition as a field table, in order of name.
func definitionTable(d queue.Definition) frames.Table {
	t := make(frames.Table, 0, len(d))
	for key, v := range d {
		switch n := v.(type) {
		case float64:
			v = int64(n)
		case int:
			v = int64(n)
		case json.Number:
			v, _ = n.Int64() // it was validated
		}
		t = append(t, frames.Field{Name: key, Value: v})
	}
	return t.Sorted()
}

// array makes an array for a field table.
func array(texts []string) []any {
	l := make([]any, len(texts))
	for i, s := range texts {
		l[i] = s
	}
	return l
}
