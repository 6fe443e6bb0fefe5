package interop_test

import (
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A client is a connection and one channel of it, as most tests need. Its
// methods fail the test when the broker refuses.
type client struct {
	*testing.T
	conn      *amqp.Connection
	ch        *amqp.Channel
	confirmed *amqp.Channel // for put; nil until it is used
}

func newClient(t *testing.T) *client {
	t.Helper()
	c := &client{T: t, conn: dial(t, amqp.Config{})}
	c.reopen()
	return c
}

// reopen takes a new channel of the same connection.
func (c *client) reopen() {
	c.Helper()
	ch, err := c.conn.Channel()
	c.must(err)
	c.ch = ch
}

func (c *client) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// unique makes a name that no other test has.
func unique(t *testing.T) string {
	return strings.ReplaceAll(t.Name(), "/", ".") + "-" + rand.Text()[:8]
}

// privateQueue declares a queue that ends with the connection.
func (c *client) privateQueue(args amqp.Table) string {
	c.Helper()
	q, err := c.ch.QueueDeclare("", false, false, true, false, args)
	c.must(err)
	return q.Name
}

// durableQueue declares a queue that several connections may use and that is
// deleted after the test.
func (c *client) durableQueue(args amqp.Table) string {
	c.Helper()
	q, err := c.ch.QueueDeclare(unique(c.T), true, false, false, false, args)
	c.must(err)
	c.deleteAfter(q.Name)
	return q.Name
}

// deleteAfter deletes a queue when the test is over.
func (c *client) deleteAfter(queue string) {
	c.Cleanup(func() {
		conn, err := amqp.Dial(brokerURL)
		c.must(err)
		ch, err := conn.Channel()
		c.must(err)
		_, err = ch.QueueDelete(queue, false, false, false)
		c.must(err)
		c.must(conn.Close())
	})
}

// exchange declares one that is deleted after the test.
func (c *client) exchange(kind string, args amqp.Table) string {
	c.Helper()
	name := unique(c.T)
	c.must(c.ch.ExchangeDeclare(name, kind, false, false, false, false, args))
	c.Cleanup(func() {
		conn, err := amqp.Dial(brokerURL)
		c.must(err)
		ch, err := conn.Channel()
		c.must(err)
		c.must(ch.ExchangeDelete(name, false, false))
		c.must(conn.Close())
	})
	return name
}

// bound declares a private queue with a binding.
func (c *client) bound(exchange, key string, args amqp.Table) string {
	c.Helper()
	q := c.privateQueue(nil)
	c.must(c.ch.QueueBind(q, key, exchange, false, args))
	return q
}

// publish sends transient messages.
func (c *client) publish(exchange, key string, bodies ...string) {
	c.Helper()
	for _, body := range bodies {
		c.must(c.ch.PublishWithContext(c.Context(), exchange, key, false, false, amqp.Publishing{Body: []byte(body)}))
	}
}

// put sends transient messages and returns when the queues have them: the
// counts of a queue may otherwise overtake what was published before.
func (c *client) put(exchange, key string, bodies ...string) {
	c.Helper()
	if c.confirmed == nil {
		ch, err := c.conn.Channel()
		c.must(err)
		c.must(ch.Confirm(false))
		c.confirmed = ch
	}
	for _, body := range bodies {
		d, err := c.confirmed.PublishWithDeferredConfirmWithContext(c.Context(), exchange, key, false, false, amqp.Publishing{Body: []byte(body)})
		c.must(err)
		if ok, err := d.WaitContext(c.Context()); err != nil || !ok {
			c.Fatalf("message %q was not confirmed: %v", body, err)
		}
	}
}

// wantReady takes all ready messages off a queue and compares them.
func (c *client) wantReady(queue string, want ...string) {
	c.Helper()
	if got := c.drain(queue); !slices.Equal(got, want) {
		c.Errorf("queue %s held %q, want %q", queue, got, want)
	}
}

// drain takes all ready messages off a queue.
func (c *client) drain(queue string) []string {
	c.Helper()
	var got []string
	for {
		d, ok, err := c.ch.Get(queue, true)
		c.must(err)
		if !ok {
			return got
		}
		got = append(got, string(d.Body))
	}
}

// recover asks for redelivery of what is not acknowledged (ref §1.8.3.16).
func (c *client) recover(requeue bool) error {
	//lint:ignore SA1019 clients in use call it
	return c.ch.Recover(requeue)
}

// get takes one message that must be there.
func (c *client) get(queue string, autoAck bool) amqp.Delivery {
	c.Helper()
	d, ok, err := c.ch.Get(queue, autoAck)
	c.must(err)
	if !ok {
		c.Fatalf("queue %s is empty", queue)
	}
	return d
}

// counts are a queue's ready messages and consumers.
func (c *client) counts(queue string) (ready, consumers int) {
	c.Helper()
	q, err := c.ch.QueueDeclarePassive(queue, false, false, false, false, nil)
	c.must(err)
	return q.Messages, q.Consumers
}

// consume starts a consumer with the given tag.
func (c *client) consume(queue, tag string, autoAck bool) <-chan amqp.Delivery {
	c.Helper()
	ds, err := c.ch.ConsumeWithContext(c.Context(), queue, tag, autoAck, false, false, false, nil)
	c.must(err)
	return ds
}

// stop cancels a consumer and returns what was delivered and not yet received:
// everything the broker sent, as nothing can follow the cancel-ok.
func (c *client) stop(tag string, ds <-chan amqp.Delivery) []string {
	c.Helper()
	c.must(c.ch.Cancel(tag, false))
	var rest []string
	for d := range ds {
		rest = append(rest, string(d.Body))
	}
	return rest
}

// receive waits for something that must come.
func receive[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v, ok := <-ch:
		if !ok {
			t.Fatal("the channel is closed")
		}
		return v
	case <-time.After(patience):
		t.Fatalf("nothing came within %v", patience)
	}
	panic("unreachable")
}

// receiveBodies waits for n deliveries and returns their bodies.
func receiveBodies(t *testing.T, ds <-chan amqp.Delivery, n int) []string {
	t.Helper()
	var got []string
	for range n {
		got = append(got, string(receive(t, ds).Body))
	}
	return got
}

// wantError checks what closed a channel or connection.
func wantError(t *testing.T, err error, code int, text string) {
	t.Helper()
	e, ok := errors.AsType[*amqp.Error](err)
	if !ok {
		t.Errorf("got error %v, want %d %q", err, code, text)
		return
	}
	if e.Code != code || e.Reason != text {
		t.Errorf("got %d %q, want %d %q", e.Code, e.Reason, code, text)
	}
}

// wantClosed waits for the broker to close the channel.
func (c *client) wantClosed(closed <-chan *amqp.Error, code int, text string) {
	c.Helper()
	wantError(c.T, receive(c.T, closed), code, text)
}

// watchChannel tells why the channel gets closed.
func (c *client) watchChannel() <-chan *amqp.Error {
	return c.ch.NotifyClose(make(chan *amqp.Error, 1))
}

// watchConnection tells why the connection gets closed.
func (c *client) watchConnection() <-chan *amqp.Error {
	return c.conn.NotifyClose(make(chan *amqp.Error, 1))
}
