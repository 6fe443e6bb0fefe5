package interop_test

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestDefaultExchange(t *testing.T) {
	c := newClient(t)
	one, two := c.privateQueue(nil), c.privateQueue(nil)
	c.publish("", one, "1")
	c.publish("", two, "2")
	c.publish("", "nobody", "lost")
	c.wantReady(one, "1")
	c.wantReady(two, "2")
	wantError(t, c.ch.QueueBind(one, "k", "", false, nil), amqp.AccessRefused, "ACCESS_REFUSED - operation not permitted on the default exchange")
}

// Each exchange type: what is bound, and who gets a message.
func TestRouting(t *testing.T) {
	for _, tt := range []struct {
		name, kind string
		bindings   []string // queue i is bound with key i
		key        string
		want       []int // the queues that get it
	}{
		{"direct", "direct", []string{"a", "b", "a"}, "a", []int{0, 2}},
		{"direct without a match", "direct", []string{"a"}, "A", nil},
		{"fanout", "fanout", []string{"a", "", "z"}, "whatever", []int{0, 1, 2}},
		{"topic star", "topic", []string{"stock.*.nyse", "stock.*", "*.*.*"}, "stock.ibm.nyse", []int{0, 2}},
		{"topic hash", "topic", []string{"#", "stock.#", "#.nyse", "stock.#.ibm.#", "#.x.#"}, "stock.ibm.nyse", []int{0, 1, 2, 3}},
		{"topic hash is no word", "topic", []string{"stock.#", "stock.*"}, "stock", []int{0}},
		{"topic empty words", "topic", []string{"a.*.b", "a..b", "a.*"}, "a..b", []int{0, 1}},
		{"topic literal", "topic", []string{"a.b", "a.b.c"}, "a.b", []int{0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newClient(t)
			x := c.exchange(tt.kind, nil)
			var queues []string
			for _, key := range tt.bindings {
				queues = append(queues, c.bound(x, key, nil))
			}
			c.publish(x, tt.key, "m")
			c.wantOnly(queues, tt.want...)
		})
	}
}

// wantOnly checks which of the queues have got the message m, once.
func (c *client) wantOnly(queues []string, want ...int) {
	c.Helper()
	for i, q := range queues {
		wanted := 0
		for _, w := range want {
			if w == i {
				wanted = 1
			}
		}
		if got := c.drain(q); len(got) != wanted {
			c.Errorf("queue %d got %q, want %d messages", i, got, wanted)
		}
	}
}

func TestHeadersExchange(t *testing.T) {
	for _, tt := range []struct {
		name     string
		bindings []amqp.Table
		headers  amqp.Table
		want     []int
	}{
		{"all and any", []amqp.Table{
			{"x-match": "all", "a": "1", "b": int32(2)},
			{"x-match": "any", "a": "1", "b": int32(3)},
			{"x-match": "all", "a": "1", "b": int32(3)},
			{"a": "1"}, // all is the default
		}, amqp.Table{"a": "1", "b": int64(2), "c": true}, []int{0, 1, 3}},
		{"no arguments", []amqp.Table{
			nil,
			{"x-match": "any"},
		}, amqp.Table{"a": "1"}, []int{0}},
		{"names with x-", []amqp.Table{
			{"x-match": "all", "x-a": "no", "b": "1"},
			{"x-match": "all-with-x", "x-a": "no", "b": "1"},
			{"x-match": "any-with-x", "x-a": "yes", "b": "2"},
		}, amqp.Table{"x-a": "yes", "b": "1"}, []int{0, 2}},
		{"kinds differ", []amqp.Table{
			{"a": int32(1)}, {"a": "1"}, {"a": true}, {"a": float64(1)},
		}, amqp.Table{"a": int8(1)}, []int{0}},
		{"void is any value", []amqp.Table{
			{"a": nil}, {"missing": nil},
		}, amqp.Table{"a": "whatever"}, []int{0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newClient(t)
			x := c.exchange("headers", nil)
			var queues []string
			for _, args := range tt.bindings {
				queues = append(queues, c.bound(x, "", args))
			}
			c.must(c.ch.PublishWithContext(t.Context(), x, "ignored", false, false, amqp.Publishing{Headers: tt.headers, Body: []byte("m")}))
			c.wantOnly(queues, tt.want...)
		})
	}
}

func TestPredeclaredExchanges(t *testing.T) {
	c := newClient(t)
	for name, kind := range map[string]string{
		"amq.direct": "direct", "amq.fanout": "fanout", "amq.topic": "topic", "amq.headers": "headers", "amq.match": "headers",
	} {
		c.must(c.ch.ExchangeDeclare(name, kind, true, false, false, false, nil))
		wantError(t, c.ch.ExchangeDelete(name, false, false), amqp.AccessRefused,
			"ACCESS_REFUSED - deletion of system exchange '"+name+"' in vhost '/' not allowed")
		c.reopen()
	}
}

func TestTwoBindingsOfOneQueueDeliverOnce(t *testing.T) {
	c := newClient(t)
	x := c.exchange("topic", nil)
	q := c.bound(x, "a.#", nil)
	c.must(c.ch.QueueBind(q, "#.b", x, false, nil))
	c.must(c.ch.QueueBind(q, "#.b", x, false, nil)) // the same again
	c.publish(x, "a.b", "once")
	c.wantReady(q, "once")
	c.must(c.ch.QueueUnbind(q, "#.b", x, nil))
	c.must(c.ch.QueueUnbind(q, "#.b", x, nil)) // unbinding what is not there
	c.publish(x, "z.b", "no more")
	c.publish(x, "a.b", "still")
	c.wantReady(q, "still")
}

func TestExchangeDeclareRefused(t *testing.T) {
	c := newClient(t)
	x := c.exchange("direct", nil)
	for _, tt := range []struct {
		name, exchange, kind          string
		durable, autoDelete, internal bool
		code                          int
		text                          string
	}{
		{"unknown type", unique(t), "nosuch", false, false, false, amqp.PreconditionFailed, "PRECONDITION_FAILED - unknown exchange type 'nosuch'"},
		{"reserved name", "amq.mine", "direct", false, false, false, amqp.AccessRefused, "ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix 'amq.*'"},
		{"default exchange", "", "direct", false, false, false, amqp.AccessRefused, "ACCESS_REFUSED - operation not permitted on the default exchange"},
		{"other type", x, "fanout", false, false, false, amqp.PreconditionFailed,
			"PRECONDITION_FAILED - inequivalent arg 'type' for exchange '" + x + "' in vhost '/': received 'fanout' but current is 'direct'"},
		{"other durable", x, "direct", true, false, false, amqp.PreconditionFailed,
			"PRECONDITION_FAILED - inequivalent arg 'durable' for exchange '" + x + "' in vhost '/': received 'true' but current is 'false'"},
		{"other auto-delete", x, "direct", false, true, false, amqp.PreconditionFailed,
			"PRECONDITION_FAILED - inequivalent arg 'auto_delete' for exchange '" + x + "' in vhost '/': received 'true' but current is 'false'"},
		{"other internal", x, "direct", false, false, true, amqp.PreconditionFailed,
			"PRECONDITION_FAILED - inequivalent arg 'internal' for exchange '" + x + "' in vhost '/': received 'true' but current is 'false'"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newClient(t)
			wantError(t, c.ch.ExchangeDeclare(tt.exchange, tt.kind, tt.durable, tt.autoDelete, tt.internal, false, nil), tt.code, tt.text)
		})
	}
}

func TestPassiveExchangeDeclare(t *testing.T) {
	c := newClient(t)
	x := c.exchange("direct", nil)
	c.must(c.ch.ExchangeDeclarePassive(x, "fanout", true, true, true, false, nil)) // only the name counts
	wantError(t, c.ch.ExchangeDeclarePassive("no-such-exchange", "direct", false, false, false, false, nil),
		amqp.NotFound, "NOT_FOUND - no exchange 'no-such-exchange' in vhost '/'")
}

func TestDeleteExchange(t *testing.T) {
	c := newClient(t)
	x := c.exchange("direct", nil)
	q := c.bound(x, "k", nil)
	wantError(t, c.ch.ExchangeDelete(x, true, false), amqp.PreconditionFailed, "PRECONDITION_FAILED - exchange '"+x+"' in vhost '/' in use")
	c.reopen()
	c.must(c.ch.QueueUnbind(q, "k", x, nil))
	c.must(c.ch.ExchangeDelete(x, true, false))
	c.must(c.ch.ExchangeDelete(x, false, false)) // deleting what is not there
	closed := c.watchChannel()
	c.publish(x, "k", "to nowhere")
	c.wantClosed(closed, amqp.NotFound, "NOT_FOUND - no exchange '"+x+"' in vhost '/'")
}

func TestAutoDeleteExchange(t *testing.T) {
	c := newClient(t)
	x := unique(t)
	c.must(c.ch.ExchangeDeclare(x, "fanout", false, true, false, false, nil))
	one, two := c.bound(x, "", nil), c.bound(x, "", nil)
	c.must(c.ch.QueueUnbind(one, "", x, nil))
	c.must(c.ch.ExchangeDeclarePassive(x, "fanout", false, true, false, false, nil))
	c.must(c.ch.QueueUnbind(two, "", x, nil))
	wantError(t, c.ch.ExchangeDeclarePassive(x, "fanout", false, true, false, false, nil),
		amqp.NotFound, "NOT_FOUND - no exchange '"+x+"' in vhost '/'")
}

func TestInternalExchange(t *testing.T) {
	c := newClient(t)
	internal, outer := unique(t), c.exchange("fanout", nil)
	c.must(c.ch.ExchangeDeclare(internal, "fanout", false, true, true, false, nil))
	q := c.bound(internal, "", nil)
	c.must(c.ch.ExchangeBind(internal, "", outer, false, nil))
	c.publish(outer, "", "through the back door")
	c.wantReady(q, "through the back door")
	closed := c.watchChannel()
	c.publish(internal, "", "through the front door")
	c.wantClosed(closed, amqp.AccessRefused, "ACCESS_REFUSED - cannot publish to internal exchange '"+internal+"' in vhost '/'")
}

func TestExchangeToExchangeWithCycles(t *testing.T) {
	c := newClient(t)
	a, b, d := c.exchange("fanout", nil), c.exchange("topic", nil), c.exchange("direct", nil)
	c.must(c.ch.ExchangeBind(b, "", a, false, nil))
	c.must(c.ch.ExchangeBind(d, "k.#", b, false, nil))
	c.must(c.ch.ExchangeBind(a, "k.1", d, false, nil)) // closes the circle
	c.must(c.ch.ExchangeBind(a, "", a, false, nil))    // and one of its own
	q1, q2, q3 := c.bound(a, "", nil), c.bound(b, "*.1", nil), c.bound(d, "k.1", nil)
	c.publish(b, "k.1", "m")
	c.wantOnly([]string{q1, q2, q3}, 0, 1, 2)
	c.must(c.ch.ExchangeUnbind(d, "k.#", b, false, nil))
	c.publish(b, "k.1", "m")
	c.wantOnly([]string{q1, q2, q3}, 1)
}

func TestAlternateExchange(t *testing.T) {
	c := newClient(t)
	last := c.exchange("fanout", nil)
	rest := c.bound(last, "", nil)
	middle := c.exchange("direct", amqp.Table{"alternate-exchange": last})
	first := c.exchange("direct", amqp.Table{"alternate-exchange": middle})
	q := c.bound(first, "known", nil)
	c.publish(first, "known", "to the queue")
	c.publish(first, "unknown", "to the rest")
	c.wantReady(q, "to the queue")
	c.wantReady(rest, "to the rest")

	missing := c.exchange("direct", amqp.Table{"alternate-exchange": "no-such-exchange"})
	c.publish(missing, "unknown", "dropped") // the channel lives on
	c.counts(q)
}
