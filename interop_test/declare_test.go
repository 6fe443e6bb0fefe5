package interop_test

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestQueueDeclare(t *testing.T) {
	c := newClient(t)
	q := c.durableQueue(nil)
	c.put("", q, "a", "b")
	c.consume(c.privateQueue(nil), "", true) // a consumer elsewhere is not counted
	again, err := c.ch.QueueDeclare(q, true, false, false, false, nil)
	c.must(err)
	if want := (amqp.Queue{Name: q, Messages: 2}); again != want {
		t.Errorf("declared again: %+v, want %+v", again, want)
	}
	if ready, consumers := c.counts(q); ready != 2 || consumers != 0 {
		t.Errorf("passive: %d ready, %d consumers, want 2, 0", ready, consumers)
	}
}

func TestServerNamedQueues(t *testing.T) {
	c := newClient(t)
	first, second := c.privateQueue(nil), c.privateQueue(nil)
	for _, name := range []string{first, second} {
		if !strings.HasPrefix(name, "amq.gen-") || len(name) != len("amq.gen-")+22 {
			t.Errorf("the broker called a queue %q, want amq.gen- and 22 characters", name)
		}
	}
	if first == second {
		t.Errorf("two queues have the name %q", first)
	}
	c.publish("", first, "x")
	c.wantReady(second)
	c.wantReady(first, "x")
}

func TestEmptyNameMeansTheQueueDeclaredLast(t *testing.T) {
	c := newClient(t)
	c.privateQueue(nil)
	last := c.privateQueue(nil)
	x := c.exchange("direct", nil)
	c.must(c.ch.QueueBind("", "", x, false, nil)) // and no key: the queue's name
	c.publish(x, last, "by name")
	c.wantReady("", "by name")
	c.reopen()
	closed := c.watchChannel()
	_, _, err := c.ch.Get("", true)
	wantError(t, err, amqp.NotFound, "NOT_FOUND - no previously declared queue")
	c.wantClosed(closed, amqp.NotFound, "NOT_FOUND - no previously declared queue")
}

func TestQueueDeclareRefused(t *testing.T) {
	c := newClient(t)
	q := c.durableQueue(amqp.Table{"x-max-length": int32(5)})
	for _, tt := range []struct {
		name                           string
		queue                          string
		durable, autoDelete, exclusive bool
		args                           amqp.Table
		code                           int
		text                           string
	}{
		{"reserved name", "amq.mine", false, false, false, nil,
			amqp.AccessRefused, "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'"},
		{"other durable", q, false, false, false, amqp.Table{"x-max-length": int32(5)},
			amqp.PreconditionFailed, "PRECONDITION_FAILED - inequivalent arg 'durable' for queue '" + q + "' in vhost '/': received 'false' but current is 'true'"},
		{"other auto-delete", q, true, true, false, amqp.Table{"x-max-length": int32(5)},
			amqp.PreconditionFailed, "PRECONDITION_FAILED - inequivalent arg 'auto_delete' for queue '" + q + "' in vhost '/': received 'true' but current is 'false'"},
		{"other argument", q, true, false, false, amqp.Table{"x-max-length": int32(6)},
			amqp.PreconditionFailed, "PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue '" + q + "' in vhost '/': received '6' but current is '5'"},
		{"no argument", q, true, false, false, nil,
			amqp.PreconditionFailed, "PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue '" + q + "' in vhost '/': received none but current is the value '5' of type 'signedint'"},
		{"exclusive", q, true, false, true, amqp.Table{"x-max-length": int32(5)},
			amqp.ResourceLocked, lockedText(q)},
		{"bad argument", unique(t), true, false, false, amqp.Table{"x-max-length": "many"},
			amqp.PreconditionFailed, "PRECONDITION_FAILED - invalid arg 'x-max-length' for queue '...': \"expected integer, got longstr\""},
		{"unknown type", unique(t), true, false, false, amqp.Table{"x-queue-type": "foo"},
			amqp.PreconditionFailed, "PRECONDITION_FAILED - invalid arg 'x-queue-type' for queue '...': \"unsupported queue type 'foo'\""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newClient(t)
			_, err := c.ch.QueueDeclare(tt.queue, tt.durable, tt.autoDelete, tt.exclusive, false, tt.args)
			wantError(t, err, tt.code, strings.Replace(tt.text, "'...'", "'"+tt.queue+"' in vhost '/'", 1))
		})
	}
	same, err := c.ch.QueueDeclare(q, true, false, false, false, amqp.Table{"x-max-length": int64(5), "x-unknown": "ignored"})
	c.must(err)
	if same.Name != q {
		t.Errorf("declared %q, want %q", same.Name, q)
	}
}

// lockedText is what any use of another connection's exclusive queue answers;
// the close text is cut at 255 bytes.
func lockedText(queue string) string {
	text := "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '" + queue + "' in vhost '/'. " +
		"It could be originally declared on another connection or the exclusive property value does not match that of the original declaration."
	if len(text) > 255 {
		return text[:252] + "..."
	}
	return text
}

func TestExclusiveQueue(t *testing.T) {
	owner := newClient(t)
	q := owner.privateQueue(nil)
	for _, tt := range []struct {
		name string
		use  func(ch *amqp.Channel) error
	}{
		{"declare", func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclarePassive(q, false, false, false, false, nil)
			return err
		}},
		{"consume", func(ch *amqp.Channel) error {
			_, err := ch.ConsumeWithContext(t.Context(), q, "", false, false, false, false, nil)
			return err
		}},
		{"get", func(ch *amqp.Channel) error { _, _, err := ch.Get(q, false); return err }},
		{"purge", func(ch *amqp.Channel) error { _, err := ch.QueuePurge(q, false); return err }},
		{"delete", func(ch *amqp.Channel) error { _, err := ch.QueueDelete(q, false, false, false); return err }},
		{"bind", func(ch *amqp.Channel) error { return ch.QueueBind(q, "k", "amq.direct", false, nil) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantError(t, tt.use(newClient(t).ch), amqp.ResourceLocked, lockedText(q))
		})
	}
	stranger := newClient(t)
	stranger.put("", q, "from a stranger")
	owner.wantReady(q, "from a stranger")

	owner.must(owner.conn.Close())
	_, err := stranger.ch.QueueDeclarePassive(q, false, false, false, false, nil)
	wantError(t, err, amqp.NotFound, "NOT_FOUND - no queue '"+q+"' in vhost '/'")
}

func TestAutoDeleteQueue(t *testing.T) {
	c := newClient(t)
	q, err := c.ch.QueueDeclare(unique(t), false, true, false, false, nil)
	c.must(err)
	c.publish("", q.Name, "x")
	c.get(q.Name, true) // a get is no consumer
	if ready, _ := c.counts(q.Name); ready != 0 {
		t.Errorf("%d ready, want 0", ready)
	}
	one, two := c.consume(q.Name, "one", true), c.consume(q.Name, "two", true)
	c.stop("one", one)
	if _, consumers := c.counts(q.Name); consumers != 1 {
		t.Errorf("%d consumers after the first cancel, want 1", consumers)
	}
	c.stop("two", two)
	_, err = c.ch.QueueDeclarePassive(q.Name, false, false, false, false, nil)
	wantError(t, err, amqp.NotFound, "NOT_FOUND - no queue '"+q.Name+"' in vhost '/'")
}

func TestAutoDeleteQueueGoesWithTheConsumersConnection(t *testing.T) {
	c, watcher := newClient(t), newClient(t)
	q, err := c.ch.QueueDeclare(unique(t), false, true, false, false, nil)
	c.must(err)
	c.consume(q.Name, "one", true)
	c.must(c.conn.Close())
	_, err = watcher.ch.QueueDeclarePassive(q.Name, false, false, false, false, nil)
	wantError(t, err, amqp.NotFound, "NOT_FOUND - no queue '"+q.Name+"' in vhost '/'")
}

func TestDeleteQueue(t *testing.T) {
	c := newClient(t)
	q := c.privateQueue(nil)
	c.publish("", q, "a", "b", "c")
	ds := c.consume(c.privateQueue(nil), "elsewhere", true)
	n, err := c.ch.QueueDelete(q, true, false, false)
	c.must(err)
	if n != 3 {
		t.Errorf("deleted with %d messages, want 3", n)
	}
	n, err = c.ch.QueueDelete(q, false, false, false)
	c.must(err)
	if n != 0 {
		t.Errorf("deleting what is not there: %d messages, want 0", n)
	}
	if rest := c.stop("elsewhere", ds); rest != nil {
		t.Errorf("the other queue's consumer got %q", rest)
	}
}

func TestDeleteQueueConditions(t *testing.T) {
	c := newClient(t)
	q := c.durableQueue(nil)
	c.publish("", q, "x")
	_, err := c.ch.QueueDelete(q, false, true, false)
	wantError(t, err, amqp.PreconditionFailed, "PRECONDITION_FAILED - queue '"+q+"' in vhost '/' not empty")
	c.reopen()
	c.wantReady(q, "x")
	c.consume(q, "tag", true)
	_, err = c.ch.QueueDelete(q, true, false, false)
	wantError(t, err, amqp.PreconditionFailed, "PRECONDITION_FAILED - queue '"+q+"' in vhost '/' in use")
}

func TestDeleteQueueCancelsItsConsumers(t *testing.T) {
	c := newClient(t)
	q := c.privateQueue(nil)
	cancelled := c.ch.NotifyCancel(make(chan string, 1))
	ds := c.consume(q, "tag", true)
	_, err := c.ch.QueueDelete(q, false, false, false)
	c.must(err)
	if tag := receive(t, cancelled); tag != "tag" {
		t.Errorf("consumer %q was cancelled, want tag", tag)
	}
	for d := range ds {
		t.Errorf("delivered %q", d.Body)
	}
}

func TestPurge(t *testing.T) {
	c := newClient(t)
	q := c.privateQueue(nil)
	c.publish("", q, "held", "b", "c")
	held := c.get(q, false)
	n, err := c.ch.QueuePurge(q, false)
	c.must(err)
	if n != 2 {
		t.Errorf("purged %d, want the 2 that were ready", n)
	}
	c.must(held.Nack(false, true))
	c.wantReady(q, "held")
	_, err = c.ch.QueuePurge("no-such-queue", false)
	wantError(t, err, amqp.NotFound, "NOT_FOUND - no queue 'no-such-queue' in vhost '/'")
}

func TestNoWaitDeclares(t *testing.T) {
	c := newClient(t)
	x, q := unique(t), unique(t)
	c.must(c.ch.ExchangeDeclare(x, "fanout", false, true, false, true, nil))
	_, err := c.ch.QueueDeclare(q, false, false, true, true, nil)
	c.must(err)
	c.must(c.ch.QueueBind(q, "", x, true, nil))
	c.publish(x, "", "through")
	c.wantReady(q, "through")

	closed := c.watchChannel()
	c.must(c.ch.QueueBind("no-such-queue", "", x, true, nil))
	c.wantClosed(closed, amqp.NotFound, "NOT_FOUND - no queue 'no-such-queue' in vhost '/'")
}
