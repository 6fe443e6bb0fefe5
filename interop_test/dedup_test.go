//go:build !foreign

package interop_test

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// What was refused is in no queue, so an id that was refused with it is no
// duplicate.

// putID publishes a persistent message with an id, and says whether it was confirmed.
func (c *client) putID(exchange, key, id string) bool {
	c.Helper()
	if c.confirmed == nil {
		c.put("", "") // nothing, on a channel with confirms
	}
	d, err := c.confirmed.PublishWithDeferredConfirmWithContext(c.Context(), exchange, key, false, false,
		amqp.Publishing{DeliveryMode: amqp.Persistent, Headers: amqp.Table{"x-deduplication-header": id}, Body: []byte(id)})
	c.must(err)
	return d.Wait()
}

func TestRefusedMessageMayBePublishedAgain(t *testing.T) {
	for _, queueType := range queueTypes {
		t.Run(queueType, func(t *testing.T) {
			c := newClient(t)
			x := c.exchange("x-message-deduplication", amqp.Table{"x-cache-size": int32(10)})
			q := c.durableQueue(amqp.Table{"x-queue-type": queueType, "x-max-length": int32(1), "x-overflow": "reject-publish"})
			c.must(c.ch.QueueBind(q, "", x, false, nil))
			for full := range 5 {
				if !c.putID("", q, "fills") {
					break
				}
				if full == 4 {
					t.Fatal("the queue is never full")
				}
			}
			if c.putID(x, "", "a") {
				t.Fatal("a full queue has taken a message")
			}
			_, err := c.ch.QueuePurge(q, false)
			c.must(err)
			if !c.putID(x, "", "a") {
				t.Error("refused again")
			}
			c.wantReady(q, "a")
		})
	}
}

func TestDeadLetterWaitsForAQueueBehindAFilter(t *testing.T) {
	c := newClient(t)
	x := c.exchange("x-message-deduplication", amqp.Table{"x-cache-size": int32(10)})
	work := c.durableQueue(amqp.Table{"x-queue-type": "quorum", "x-dead-letter-exchange": x, "x-dead-letter-strategy": "at-least-once",
		"x-overflow": "reject-publish", "x-message-ttl": int32(1)})
	if !c.putID("", work, "a") {
		t.Fatal("refused")
	}
	dead := c.privateQueue(nil)
	// It has died by now, and found no queue: it comes with a later attempt.
	for n, _ := c.counts(work); n > 0; n, _ = c.counts(work) {
	}
	c.must(c.ch.QueueBind(dead, "", x, false, nil))
	select {
	case d := <-c.consume(dead, "", true):
		if string(d.Body) != "a" {
			t.Errorf("got %q", d.Body)
		}
	case <-time.After(patience):
		t.Error("the dead letter is lost")
	}
}
