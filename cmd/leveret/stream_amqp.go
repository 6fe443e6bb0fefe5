package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"
)

// consumePrefetch is how many messages wait for being printed at most. A third
// of them shares an ack.
const consumePrefetch = 300

// consumeTag names the consumer, on a channel of its own.
const consumeTag = "leveret"

// consumeAMQP consumes over AMQP: the broker sends what comes at once, and what
// was not printed goes back to the queue, even if the program is killed.
func (s *session) consumeAMQP(ctx context.Context, uri, queue string, limit int) error {
	if _, err := amqp.ParseURI(uri); err != nil { // the error would show the URI, with the password
		return exitf(exitUsage, "the URI of a broker is wrong; it looks like amqp://user:password@host:5672/vhost, with special characters of the password as %%40")
	}
	c, err := amqp.Dial(uri)
	if err != nil {
		return dialError(err)
	}
	defer c.Close()
	ch, err := c.Channel()
	if err != nil {
		return amqpError(err)
	}
	prefetch := consumePrefetch
	if limit > 0 {
		prefetch = min(prefetch, limit)
	}
	if err := ch.Qos(prefetch, 0, false); err != nil {
		return amqpError(err)
	}
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	deliveries, err := ch.Consume(queue, consumeTag, false, false, false, false, nil)
	if err != nil {
		return amqpError(err)
	}
	enough, err := s.printDeliveries(ctx, deliveries, limit, func() error { return ch.Cancel(consumeTag, false) })
	if !enough && ctx.Err() == nil {
		err = whyEnded(closed, err)
	}
	return amqpError(err)
}

// dialError gives what kept from connecting an exit code.
func dialError(err error) error {
	code := exitUnavailable
	if e, ok := errors.AsType[*amqp.Error](err); ok && (e.Code == amqp.AccessRefused || e.Code == amqp.NotAllowed) {
		code = exitNoAccess
	}
	return exitf(code, "cannot connect to the broker: %v; --uri is as in amqp://user:password@host:5672/vhost", err)
}

// whyEnded is why deliveries have ended: what closed the channel, or err; else the
// broker has cancelled the consumer only, and the channel stays open.
func whyEnded(closed <-chan *amqp.Error, err error) error {
	select {
	case e := <-closed:
		if e != nil {
			return e
		}
	default:
	}
	if err != nil {
		return err
	}
	return errors.New("the consumer was cancelled: the queue was deleted, or the broker has stopped")
}

// printDeliveries prints and acknowledges until the limit, unless it is 0, or
// until ctx or the deliveries end. It says whether that was enough. At the limit it
// cancels first, so that no further message comes in vain.
func (s *session) printDeliveries(ctx context.Context, deliveries <-chan amqp.Delivery, limit int, cancel func() error) (enough bool, err error) {
	var last amqp.Delivery
	unacked := 0
	ack := func() error {
		if unacked == 0 {
			return nil
		}
		unacked = 0
		return last.Ack(true)
	}
	for done := 0; limit == 0 || done < limit; done++ {
		var d amqp.Delivery
		open := false
		select {
		case d, open = <-deliveries:
		case <-ctx.Done():
		}
		if !open {
			return false, ack()
		}
		if err := s.printMessages([]object{deliveryObject(&d)}); err != nil {
			return false, err
		}
		last = d
		if unacked++; unacked >= consumePrefetch/3 || limit == 0 && len(deliveries) == 0 {
			if err := ack(); err != nil {
				return false, err
			}
		}
	}
	if err := cancel(); err != nil {
		return true, err
	}
	return true, ack()
}

// amqpError gives what the broker says an exit code.
func amqpError(err error) error {
	e, ok := errors.AsType[*amqp.Error](err)
	switch {
	case err == nil || !ok:
		return err
	case e.Code == amqp.NotFound:
		return exitf(exitData, "%s", e.Reason)
	case e.Code == amqp.AccessRefused || e.Code == amqp.NotAllowed:
		return exitf(exitNoAccess, "%s", e.Reason)
	case e.Code == amqp.ConnectionForced:
		return exitf(exitUnavailable, "%s", e.Reason)
	}
	return exitf(exitSoftware, "%s", e.Reason)
}

// deliveryObject is a message as the HTTP API shows it.
func deliveryObject(d *amqp.Delivery) object {
	payload, encoding := string(d.Body), "string"
	if !utf8.Valid(d.Body) {
		payload, encoding = base64.StdEncoding.EncodeToString(d.Body), "base64"
	}
	properties := map[string]any{}
	for name, text := range map[string]string{
		"content_type": d.ContentType, "content_encoding": d.ContentEncoding, "correlation_id": d.CorrelationId, "reply_to": d.ReplyTo,
		"expiration": d.Expiration, "message_id": d.MessageId, "type": d.Type, "user_id": d.UserId, "app_id": d.AppId,
	} {
		if text != "" {
			properties[name] = text
		}
	}
	if d.DeliveryMode != 0 {
		properties["delivery_mode"] = d.DeliveryMode
	}
	if d.Priority != 0 {
		properties["priority"] = d.Priority
	}
	if !d.Timestamp.IsZero() {
		properties["timestamp"] = d.Timestamp.Unix()
	}
	if len(d.Headers) > 0 {
		properties["headers"] = headerValue(d.Headers)
	}
	return object{
		"payload": jsonOf(payload), "payload_encoding": jsonOf(encoding), "payload_bytes": jsonOf(len(d.Body)), "redelivered": jsonOf(d.Redelivered),
		"exchange": jsonOf(d.Exchange), "routing_key": jsonOf(d.RoutingKey), "properties": jsonOf(properties),
	}
}

// jsonOf is a value as JSON; one that has no such form, as a NaN, is null.
func jsonOf(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

// headerValue makes a header's value one that JSON has.
func headerValue(v any) any {
	switch v := v.(type) {
	case amqp.Table:
		m := make(map[string]any, len(v))
		for name, value := range v {
			m[name] = headerValue(value)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = headerValue(v[i])
		}
		return list
	case []byte:
		return string(v)
	case time.Time:
		return v.Unix()
	}
	return v
}
