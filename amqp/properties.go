package amqp

import (
	"strconv"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/vhost"
)

// special acts on the properties that the broker looks into: reply-to,
// expiration, CC and BCC, user-id, in RabbitMQ's order of checks.
func (ch *channel) special(m *message.Message, p *frames.Properties) error {
	if p.Has(frames.FlagReplyTo) && string(p.ReplyTo) == replyToName {
		if err := ch.rewriteReplyTo(m, p); err != nil {
			return err
		}
	}
	if p.Has(frames.FlagExpiration) {
		ttl, err := expirationOf(p)
		if err != nil {
			return err
		}
		m.TTL = ttl
		if len(p.Expiration) > 1 && p.Expiration[0] < '1' { // 0s and signs in front do not travel (RabbitMQ 4.0)
			p.Expiration = strconv.AppendInt(nil, ttl, 10)
			m.Header = p.Append(nil)
		}
	}
	if p.Has(frames.FlagHeaders) {
		if err := ch.copies(m, p); err != nil {
			return err
		}
	}
	if p.Has(frames.FlagUserID) && string(p.UserID) != ch.conn.user.Name && !ch.conn.user.Has("impersonator") {
		return frames.Errorf(frames.PreconditionFailed, "user_id property set to '%s' but authenticated user was '%s'",
			p.UserID, ch.conn.user.Name)
	}
	return nil
}

// beforeTopic is the error of a message whose topic was refused: what special looks
// at before topics comes first (RabbitMQ 4.0).
func (ch *channel) beforeTopic(m *message.Message, refused error) error {
	p := &ch.conn.props
	if err := ch.conn.parse(m.Header); err != nil {
		return err
	}
	if p.Has(frames.FlagReplyTo) && string(p.ReplyTo) == replyToName && ch.replyTo == nil {
		return errNoReplyConsumer
	}
	if p.Has(frames.FlagExpiration) {
		if _, err := expirationOf(p); err != nil {
			return err
		}
	}
	if p.Has(frames.FlagHeaders) {
		for _, name := range [2]string{"CC", "BCC"} {
			if _, err := routingKeys(p.Headers, name); err != nil {
				return err
			}
		}
	}
	return refused
}

// expirationOf reads the expiration property, in milliseconds.
func expirationOf(p *frames.Properties) (ttl int64, err error) {
	if ttl, err = message.ParseExpiration(string(p.Expiration)); err != nil {
		err = frames.Errorf(frames.PreconditionFailed, "%s", err)
	}
	return ttl, err
}

// copies takes the additional routing keys of the CC and BCC headers. BCC is
// removed from the headers, which are written anew for that.
func (ch *channel) copies(m *message.Message, p *frames.Properties) error {
	cc, err := routingKeys(p.Headers, "CC")
	if err != nil {
		return err
	}
	bcc, err := routingKeys(p.Headers, "BCC")
	if err != nil {
		return err
	}
	if frames.Irregular(p.Headers) {
		if err := rewriteHeaders(m, p, frames.Table.Sorted); err != nil {
			return err
		}
	}
	if cc == nil && bcc == nil {
		return nil
	}
	if m.More == nil {
		m.More = &message.More{}
	}
	m.More.CC, m.More.BCC = cc, bcc
	if err := ch.mayPublishCopies(m); err != nil {
		return err
	}
	if bcc == nil {
		return nil
	}
	return rewriteHeaders(m, p, func(t frames.Table) frames.Table { return t.Without("BCC").Sorted() })
}

// rewriteHeaders gives the message another header table.
func rewriteHeaders(m *message.Message, p *frames.Properties, edit func(frames.Table) frames.Table) error {
	t, err := p.Table()
	if err != nil {
		return err
	}
	p.SetTable(edit(t))
	m.Header = p.Append(nil)
	return nil
}

// mayPublishCopies checks topic permissions for each additional key.
func (ch *channel) mayPublishCopies(m *message.Message) error {
	x := ch.cur.route.X
	if x == nil || x.Type != "topic" {
		return nil
	}
	for _, keys := range [...][]string{m.More.CC, m.More.BCC} {
		for _, key := range keys {
			if err := ch.MayTopic(vhost.Write, x.Name, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// routingKeys reads a header that is an array of keys; what is not a longstr in
// it is ignored (RabbitMQ 4.0).
func routingKeys(headers []byte, name string) ([]string, error) {
	tag, value, ok := frames.FindField(headers, name)
	if !ok {
		return nil, nil
	}
	v, err := frames.DecodeField(tag, value)
	if err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok {
		return nil, frames.Errorf(frames.PreconditionFailed, "invalid message: {unacceptable_type_in_header,%q,%s}", name, frames.TypeName(v))
	}
	keys := []string{}
	for _, k := range list {
		if s, ok := k.(string); ok {
			keys = append(keys, s)
		}
	}
	return keys, nil
}
