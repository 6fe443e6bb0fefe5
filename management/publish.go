package management

import (
	"context"
	"encoding/base64"
	"time"

	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/vhost"
)

// publish handles POST /exchanges/V/N/publish: it answers once the queues have
// taken the message.
func publish(r *request) (reply, error) {
	if _, err := r.vhost.ExchangeInfo(r.exchangeArg("exchange")); err != nil {
		return reply{}, missing(orNotFound(err), "exchange_not_found")
	}
	b, err := r.body()
	if err != nil {
		return reply{}, err
	}
	m, err := readMessage(b)
	if err != nil {
		return reply{}, err
	}
	m.Exchange = r.exchangeArg("exchange")
	routed, err := r.s.publish(r.http.Context(), r.vhost, r.actor(), r.user, m)
	if err != nil {
		if e, isProtocol := err.(*frames.Error); isProtocol && e.Code == frames.AccessRefused && !r.local && !r.hasPermissions() {
			return reply{}, err // RabbitMQ 4.0: there is no channel that could refuse
		}
		return reply{}, missing(channelError(err), "exchange_not_found")
	}
	return ok(object{{"routed", routed}})
}

// channelError is the error of publish and get, whose reason has the code, as
// of a channel that was closed (RabbitMQ 4.0). A missing thing is a plain 404.
func channelError(err error) error {
	e, isProtocol := err.(*frames.Error)
	if !isProtocol || e.Code == frames.InternalError {
		return err
	}
	if e.Code == frames.NotFound {
		return errNotFound
	}
	if e.Code == frames.NotImplemented { // RabbitMQ 4.0 names the other codes only
		return badRequest("%d %s", e.Code, e.Text)
	}
	return badRequest("%d %s", e.Code, e.ReplyText())
}

// readMessage reads a message to publish.
func readMessage(b body) (*message.Message, error) {
	if err := b.need("routing_key", "properties", "payload", "payload_encoding"); err != nil {
		return nil, err
	}
	payload, err := readPayload(b)
	if err != nil {
		return nil, err
	}
	key, err := b.routingKey()
	if err != nil {
		return nil, err
	}
	var properties body
	switch v := b["properties"].(type) {
	case map[string]any:
		properties = v
	case []any:
		if len(v) > 0 {
			return nil, badRequest("properties must be an object")
		}
	default:
		return nil, badRequest("properties must be an object")
	}
	p, err := readProperties(properties)
	if err != nil {
		return nil, err
	}
	header := p.Append(nil)
	m := message.New(len(header), 0)
	copy(m.Header, header)
	m.Body, m.RoutingKey, m.Time = payload, key, time.Now().UnixMilli()
	m.Priority, m.Persistent = p.Priority, p.DeliveryMode == 2
	return m, readSpecial(m, &p)
}

func readPayload(b body) ([]byte, error) {
	text, isText := b["payload"].(string)
	if !isText {
		return nil, badRequest("payload_not_string")
	}
	switch encoding := b["payload_encoding"]; encoding {
	case "string":
		return []byte(text), nil
	case "base64":
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, badRequest("the payload is not base64")
		}
		return raw, nil
	default:
		return nil, badRequest("unsupported payload_encoding '%s'; it is string or base64", jsonText(encoding))
	}
}

// directReplyTo stands for a consumer of the same channel, which a request has none of.
const directReplyTo = "amq.rabbitmq.reply-to"

// readSpecial acts on the properties that the broker looks into.
func readSpecial(m *message.Message, p *frames.Properties) error {
	if p.Has(frames.FlagExpiration) {
		ttl, err := message.ParseExpiration(string(p.Expiration))
		if err != nil {
			return badRequest("406 PRECONDITION_FAILED - %s", err)
		}
		m.TTL = ttl
	}
	if string(p.ReplyTo) == directReplyTo {
		return badRequest("406 PRECONDITION_FAILED - fast reply consumer does not exist")
	}
	t, _ := p.Table() // it was made here
	cc, err := keyList(t, "CC")
	if err != nil {
		return err
	}
	bcc, err := keyList(t, "BCC")
	if err != nil {
		return err
	}
	if len(cc)+len(bcc) == 0 {
		return nil
	}
	m.More = &message.More{CC: cc, BCC: bcc}
	if len(bcc) > 0 {
		p.SetTable(t.Without("BCC"))
		m.Header = p.Append(nil)
	}
	return nil
}

// keyList reads the additional routing keys of a header, which must be a list; what
// is no string in it is ignored (RabbitMQ 4.0).
func keyList(t frames.Table, name string) (keys []string, err error) {
	v, there := t.Lookup(name)
	list, isList := v.([]any)
	if there && !isList {
		return nil, badRequest("406 PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,%q,%s}", name, frames.TypeName(v))
	}
	for _, k := range list {
		if s, isText := k.(string); isText {
			keys = append(keys, s)
		}
	}
	return keys, nil
}

// publish publishes a message for a user and waits for the confirm.
func (s *Server) publish(ctx context.Context, v *vhost.VHost, by vhost.Actor, u auth.User, m *message.Message) (routed bool, err error) {
	if err := mayPublish(v, by, u, m); err != nil {
		return false, err
	}
	p := v.NewPublisher()
	p.Source = vhost.TraceSource{Connection: "management", User: by.User()}
	route, err := p.Route([]byte(m.Exchange), []byte(m.RoutingKey))
	if err != nil {
		return false, err
	}
	confirmed := make(confirm, 1)
	receipt := message.NewReceipt(confirmed, 1, 1)
	receipt.Hold(1)
	routed = p.Add(route, m, receipt, 1)
	p.Flush()
	receipt.Release()
	select {
	case r := <-confirmed:
		if refused, failed := r.Outcome(); failed || len(refused) > 0 {
			return false, badRequest("rejected Unable to publish message. Check queue limits.")
		}
		return routed, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// A confirm gets its one receipt when that is settled.
type confirm chan *message.Receipt

// Settled implements message.Owner.
func (c confirm) Settled(r *message.Receipt) { c <- r }

// mayPublish makes the checks of basic.publish in RabbitMQ's order.
func mayPublish(v *vhost.VHost, by vhost.Actor, u auth.User, m *message.Message) error {
	if err := mayPublishTo(v, by, m); err != nil {
		return err
	}
	var p frames.Properties
	if err := p.Parse(m.Header); err != nil {
		return err
	}
	if p.Has(frames.FlagUserID) && string(p.UserID) != by.User() && !u.Has(auth.Impersonator) {
		return frames.Errorf(frames.PreconditionFailed, "user_id property set to '%s' but authenticated user was '%s'", p.UserID, by.User())
	}
	return nil
}

// mayPublishTo makes those of them that look at the exchange and the keys.
func mayPublishTo(v *vhost.VHost, by vhost.Actor, m *message.Message) error {
	x, err := v.Exchange(m.Exchange)
	if err != nil {
		return err
	}
	if err := by.MayExchange(vhost.Write, m.Exchange); err != nil {
		return err
	}
	if x.Internal {
		return frames.Errorf(frames.AccessRefused, "cannot publish to internal exchange '%s' in vhost '%s'", m.Exchange, v.Name())
	}
	if x.Type == "topic" {
		return mayTopics(by, m)
	}
	return nil
}

func mayTopics(by vhost.Actor, m *message.Message) error {
	keys := []string{m.RoutingKey}
	if m.More != nil {
		keys = append(append(keys, m.More.CC...), m.More.BCC...)
	}
	for _, key := range keys {
		if err := by.MayTopic(vhost.Write, m.Exchange, key); err != nil {
			return err
		}
	}
	return nil
}
