package interop_test

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestTransactionPublish(t *testing.T) {
	c, other := newClient(t), newClient(t)
	q := c.durableQueue(nil)
	c.must(c.ch.Tx())
	c.publish("", q, "a", "b")
	other.wantReady(q)
	c.must(c.ch.TxCommit())
	other.wantReady(q, "a", "b")
	c.publish("", q, "undone")
	c.must(c.ch.TxRollback())
	c.publish("", q, "c")
	c.must(c.ch.TxCommit())
	other.wantReady(q, "c")
	c.publish("", q, "lost with the channel")
	c.must(c.ch.Close())
	other.wantReady(q)
}

func TestTransactionAck(t *testing.T) {
	c, other := newClient(t), newClient(t)
	q := c.durableQueue(nil)
	c.put("", q, "a", "b", "c")
	c.must(c.ch.Tx())
	a, b := c.get(q, false), c.get(q, false)
	c.must(a.Ack(false))
	c.must(b.Nack(false, true))
	other.wantReady(q, "c") // b is not back before the commit
	c.must(c.ch.TxRollback())
	c.must(a.Ack(false)) // again, as if it had never been
	c.must(b.Nack(false, true))
	c.must(c.ch.TxCommit())
	other.wantReady(q, "b")
	c.must(c.ch.Close())
	other.wantReady(q)
}

func TestTransactionPersistentCommit(t *testing.T) {
	c := newClient(t)
	q := c.durableQueue(nil)
	c.must(c.ch.Tx())
	for range 50 {
		c.must(c.ch.PublishWithContext(t.Context(), "", q, false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("m")}))
	}
	c.must(c.ch.TxCommit())
	if ready, _ := c.counts(q); ready != 50 {
		t.Errorf("%d ready after the commit, want 50", ready)
	}
}

func TestTransactionReturnsAtCommit(t *testing.T) {
	c := newClient(t)
	returned := c.ch.NotifyReturn(make(chan amqp.Return, 1))
	c.must(c.ch.Tx())
	c.must(c.ch.PublishWithContext(t.Context(), "", "nobody", true, false, amqp.Publishing{}))
	c.must(c.ch.Tx()) // a round trip; selecting again is fine
	if len(returned) != 0 {
		t.Error("returned before the commit")
	}
	c.must(c.ch.TxCommit())
	if r := receive(t, returned); r.ReplyCode != 312 {
		t.Errorf("returned with %d, want 312", r.ReplyCode)
	}
}

func TestTransactionErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(ch *amqp.Channel) error
		text string
	}{
		{"commit without select", func(ch *amqp.Channel) error { return ch.TxCommit() }, "PRECONDITION_FAILED - channel is not transactional"},
		{"rollback without select", func(ch *amqp.Channel) error { return ch.TxRollback() }, "PRECONDITION_FAILED - channel is not transactional"},
		{"select after confirm", func(ch *amqp.Channel) error {
			if err := ch.Confirm(false); err != nil {
				return err
			}
			return ch.Tx()
		}, "PRECONDITION_FAILED - cannot switch from confirm to tx mode"},
		{"confirm after select", func(ch *amqp.Channel) error {
			if err := ch.Tx(); err != nil {
				return err
			}
			return ch.Confirm(false)
		}, "PRECONDITION_FAILED - cannot switch from tx to confirm mode"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantError(t, tt.do(newClient(t).ch), amqp.PreconditionFailed, tt.text)
		})
	}
}
