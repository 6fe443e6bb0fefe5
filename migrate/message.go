package migrate

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

// publishing is a delivery as a message to publish: with the same properties,
// headers and body. Left out is what the source's queue adds for a delivery and
// what would make the target take two copies in two queues for one message.
func publishing(d *amqp.Delivery, queueType string) amqp.Publishing {
	return amqp.Publishing{
		Headers:         headers(d.Headers, queueType),
		ContentType:     d.ContentType,
		ContentEncoding: d.ContentEncoding,
		DeliveryMode:    d.DeliveryMode,
		Priority:        d.Priority,
		CorrelationId:   d.CorrelationId,
		ReplyTo:         d.ReplyTo,
		Expiration:      d.Expiration,
		MessageId:       d.MessageId,
		Timestamp:       d.Timestamp,
		Type:            d.Type,
		UserId:          d.UserId,
		AppId:           d.AppId,
		Body:            d.Body,
	}
}

func headers(t amqp.Table, queueType string) amqp.Table {
	var drop []string
	switch queueType {
	case "stream":
		drop = []string{"x-stream-offset"}
	case "quorum":
		drop = []string{"x-delivery-count", "x-acquired-count"}
	}
	if t["x-producer-id"] != nil && t["x-producer-sequence"] != nil {
		drop = append(drop, "x-producer-id", "x-producer-sequence")
	}
	cloned := false
	for _, name := range drop {
		if _, there := t[name]; !there {
			continue
		}
		if !cloned {
			t, cloned = maps.Clone(t), true
		}
		delete(t, name)
	}
	return t
}

// An entrance is how messages get into one queue of the target. Those that came
// by the queue's name go through the default exchange; others through a fanout
// exchange of its own, which is bound to this queue alone, so that they keep their
// routing key and CC does not send them elsewhere again.
type entrance struct {
	ch    *amqp.Channel
	queue string
	relay string // "" until it is needed
}

func (e *entrance) publish(ctx context.Context, d *amqp.Delivery, p amqp.Publishing) error {
	exchange := ""
	if d.RoutingKey != e.queue || p.Headers["CC"] != nil {
		if err := e.openRelay(); err != nil {
			return err
		}
		exchange = e.relay
	}
	return e.ch.PublishWithContext(ctx, exchange, d.RoutingKey, true, false, p)
}

func (e *entrance) openRelay() error {
	if e.relay != "" {
		return nil
	}
	hash := fnv.New64a()
	hash.Write([]byte(e.queue))
	name := fmt.Sprintf("leveret.migrate.%016x", hash.Sum64())
	if err := e.ch.ExchangeDeclare(name, amqp.ExchangeFanout, false, false, false, false, nil); err != nil {
		return err
	}
	e.relay = name
	return e.ch.QueueBind(e.queue, "", name, false, nil)
}

// close removes the exchange. What is left by a killed run is removed by the next
// one, or by a restart of the target.
func (e *entrance) close(conn *amqp.Connection) error {
	if e.relay == "" {
		return nil
	}
	ch, err := conn.Channel() // the other one may have been closed by an error
	if err != nil {
		return err
	}
	defer ch.Close()
	return ch.ExchangeDelete(e.relay, false, false)
}
