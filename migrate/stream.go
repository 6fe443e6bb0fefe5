package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// firstWait is how long a stream that may be empty is waited for, lastWait how
	// long its end is said to be reached without a message.
	firstWait = time.Second
	lastWait  = 200 * time.Millisecond
	// longWait is for a stream that says it has messages.
	longWait = 10 * time.Second
)

// copyStream copies a stream up to what was its end at first. It goes on where an
// earlier copy ended: the target's offsets say how much it has.
func (m *migration) copyStream(ctx context.Context, l *link, q *Queue) error {
	if there, err := m.lookBoth(l, q); err != nil || !there {
		return err
	}
	last, err := lastOf(ctx, l.from, q.Name, "last", q.Before > 0)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	if last == nil {
		q.State = Empty
		return nil
	}
	start, err := m.resumeAt(ctx, l, q)
	if err != nil {
		return err
	}
	end := offset(last)
	if start > end {
		q.State, q.Reason = Copied, "all of it was there before"
		return nil
	}
	p, err := m.newPump(l, q)
	if err != nil {
		return err
	}
	reached := start - 1
	p.arrived = func(d *amqp.Delivery) bool {
		at := offset(d)
		if at <= reached || at > end {
			return false
		}
		reached = at
		return true
	}
	p.finished = func() bool { return reached >= end }
	p.empty = func() (bool, error) { return false, nil }
	p.deliveries, err = p.source.Consume(q.Name, consumerTag, false, false, false, false, amqp.Table{"x-stream-offset": start})
	if err != nil {
		return errors.Join(fmt.Errorf("source: %w", err), p.close(l))
	}
	err = p.finish(ctx, l, p.run(ctx))
	if q.State == Moved {
		q.State = Copied
	}
	return err
}

// offset is the place of a delivery in its stream, -1 if it has none.
func offset(d *amqp.Delivery) int64 {
	if n, ok := d.Headers["x-stream-offset"].(int64); ok {
		return n
	}
	return -1
}

// resumeAt is the offset at the source of the first message that the target does
// not have. What the target has must be a copy: its last message is compared.
func (m *migration) resumeAt(ctx context.Context, l *link, q *Queue) (int64, error) {
	first, err := firstOf(ctx, l.from, q.Name, "first", longWait)
	if err != nil || first == nil {
		return 0, errors.Join(err, fmt.Errorf("the stream delivers nothing from its first offset"))
	}
	has, err := lastOf(ctx, l.to, q.Name, "last", q.TargetBefore > 0)
	if err != nil {
		return 0, fmt.Errorf("target: %w", err)
	}
	if has == nil {
		return offset(first), nil
	}
	same := offset(first) + offset(has)
	twin, err := firstOf(ctx, l.from, q.Name, same, firstWait)
	if err != nil {
		return 0, fmt.Errorf("source: %w", err)
	}
	if twin == nil || offset(twin) != same || !equal(twin, has) {
		q.fail(Failed, "the target's stream has messages that are not the beginning of the source's; delete it there to have it copied")
		return 0, errors.New(q.Reason)
	}
	return same + 1, nil
}

// equal compares two messages of streams.
func equal(a, b *amqp.Delivery) bool {
	x, y := publishing(a, "stream"), publishing(b, "stream")
	if !bytes.Equal(x.Body, y.Body) || !maps.EqualFunc(x.Headers, y.Headers, func(v, w any) bool { return reflect.DeepEqual(v, w) }) {
		return false
	}
	x.Body, y.Body, x.Headers, y.Headers = nil, nil, nil, nil
	return reflect.DeepEqual(x, y)
}

// firstOf reads one message at a place in a stream; nil if none comes in time.
func firstOf(ctx context.Context, conn *amqp.Connection, queue string, from any, wait time.Duration) (*amqp.Delivery, error) {
	var found *amqp.Delivery
	err := readStream(ctx, conn, queue, from, wait, func(d *amqp.Delivery) (more bool) {
		found = d
		return false
	})
	return found, err
}

// lastOf reads a stream to its end and returns the last message; nil if there is
// none.
func lastOf(ctx context.Context, conn *amqp.Connection, queue string, from any, sure bool) (*amqp.Delivery, error) {
	var found *amqp.Delivery
	wait := firstWait
	if sure {
		wait = longWait
	}
	err := readStream(ctx, conn, queue, from, wait, func(d *amqp.Delivery) (more bool) {
		found = d
		return true
	})
	return found, err
}

// readStream hands the messages of a stream to take, until that has enough or no
// more come.
func readStream(ctx context.Context, conn *amqp.Connection, queue string, from any, wait time.Duration, take func(*amqp.Delivery) bool) error {
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	defer ch.Close()
	if err := ch.Qos(maxPrefetch, 0, false); err != nil {
		return err
	}
	gone := ch.NotifyClose(make(chan *amqp.Error, 1))
	deliveries, err := ch.Consume(queue, "", false, false, false, false, amqp.Table{"x-stream-offset": from})
	if err != nil {
		return err
	}
	enough := time.NewTimer(wait)
	defer enough.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-enough.C:
			return nil
		case d, open := <-deliveries:
			if !open {
				if e := <-gone; e != nil {
					return e
				}
				return errors.New("the connection has ended")
			}
			if !take(&d) {
				return nil
			}
			if err := d.Ack(false); err != nil {
				return err
			}
			enough.Reset(lastWait)
		}
	}
}
