package interop_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// numbers are the texts of from to to-1.
func numbers(from, to int) []string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

func TestConsumeInOrder(t *testing.T) {
	c := newClient(t)
	q := c.privateQueue(nil)
	c.publish("", q, numbers(0, 100)...) // some wait in the queue
	ds := c.consume(q, "", false)
	c.publish("", q, numbers(100, 200)...) // some come later
	for i := range 200 {
		d := receive(t, ds)
		if string(d.Body) != fmt.Sprint(i) || d.DeliveryTag != uint64(i+1) || d.Redelivered || d.RoutingKey != q || d.Exchange != "" {
			t.Fatalf("delivery %d: %q, tag %d, redelivered %v, key %s", i, d.Body, d.DeliveryTag, d.Redelivered, d.RoutingKey)
		}
		c.must(d.Ack(false))
	}
	c.wantReady(q)
}

func TestConsumeRefused(t *testing.T) {
	c := newClient(t)
	_, err := c.ch.ConsumeWithContext(t.Context(), "no-such-queue", "", false, false, false, false, nil)
	wantError(t, err, amqp.NotFound, "NOT_FOUND - no queue 'no-such-queue' in vhost '/'")
	c.reopen()
	q := c.privateQueue(nil)
	_, err = c.ch.ConsumeWithContext(t.Context(), q, "", false, false, false, false, amqp.Table{"x-priority": "high"})
	wantError(t, err, amqp.PreconditionFailed, "PRECONDITION_FAILED - invalid arg 'x-priority' for queue '"+q+"' in vhost '/': \"expected integer, got longstr\"")
}

func TestServerNamedConsumer(t *testing.T) {
	r := dialRaw(t)
	r.handshake(usualTune)
	r.openChannel(1)
	r.method(1, queueDeclare, u16(0), shortstr(""), u8(4), table()) // exclusive
	r.expect(queueDeclareOk)
	r.method(1, basicConsume, u16(0), shortstr(""), shortstr(""), u8(0), table())
	f := r.expect(methodID{60, 21})
	if tag := string(f.payload[5:]); !strings.HasPrefix(tag, "amq.ctag-") || len(tag) != len("amq.ctag-")+22 {
		t.Errorf("the broker called a consumer %q, want amq.ctag- and 22 characters", tag)
	}
}

func TestExclusiveConsumer(t *testing.T) {
	c, other := newClient(t), newClient(t)
	q := c.durableQueue(nil)
	refused := "ACCESS_REFUSED - queue '" + q + "' in vhost '/' in exclusive use"
	ds, err := c.ch.ConsumeWithContext(t.Context(), q, "only", true, true, false, false, nil)
	c.must(err)
	_, err = other.ch.ConsumeWithContext(t.Context(), q, "", true, false, false, false, nil)
	wantError(t, err, amqp.AccessRefused, refused)
	c.stop("only", ds)
	other.reopen()
	other.consume(q, "", true)
	_, err = c.ch.ConsumeWithContext(t.Context(), q, "", true, true, false, false, nil)
	wantError(t, err, amqp.AccessRefused, refused)
}

func TestCancel(t *testing.T) {
	c := newClient(t)
	q := c.privateQueue(nil)
	ds := c.consume(q, "tag", false)
	c.publish("", q, "held")
	held := receive(t, ds)
	c.must(c.ch.Cancel("tag", false))
	c.must(c.ch.Cancel("no-such-tag", false))
	c.publish("", q, "later")
	for d := range ds {
		t.Errorf("delivered %q after the cancel", d.Body)
	}
	c.must(held.Ack(false)) // still the channel's to acknowledge
	c.wantReady(q, "later")
}

func TestUnacknowledgedGoBackInOrder(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(c *client)
	}{
		{"connection ends", func(c *client) { c.must(c.conn.Close()) }},
		{"channel ends", func(c *client) { c.must(c.ch.Close()) }},
		{"channel error", func(c *client) {
			_, err := c.ch.QueueDeclarePassive("no-such-queue", false, false, false, false, nil)
			wantError(c.T, err, amqp.NotFound, "NOT_FOUND - no queue 'no-such-queue' in vhost '/'")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, next := newClient(t), newClient(t)
			q := next.durableQueue(nil)
			next.publish("", q, numbers(0, 10)...)
			ds := c.consume(q, "", false)
			for range 10 {
				if d := receive(t, ds); string(d.Body) == "3" {
					c.must(d.Ack(false))
				}
			}
			tt.end(c)
			again := next.consume(q, "", true)
			for _, want := range []string{"0", "1", "2", "4", "5", "6", "7", "8", "9"} {
				if d := receive(t, again); string(d.Body) != want || !d.Redelivered {
					t.Errorf("got %q, redelivered %v, want %s, true", d.Body, d.Redelivered, want)
				}
			}
		})
	}
}

func TestRequeueToTheOriginalPlace(t *testing.T) {
	c := newClient(t)
	q := c.privateQueue(nil)
	c.publish("", q, numbers(0, 6)...)
	var held []amqp.Delivery
	for range 4 {
		held = append(held, c.get(q, false))
	}
	c.must(held[2].Nack(false, true))
	c.must(held[0].Reject(true))
	c.must(held[3].Ack(false))
	for _, want := range []struct {
		body        string
		redelivered bool
	}{{"0", true}, {"2", true}, {"4", false}, {"5", false}} {
		if d := c.get(q, true); string(d.Body) != want.body || d.Redelivered != want.redelivered {
			t.Errorf("got %q, redelivered %v, want %s, %v", d.Body, d.Redelivered, want.body, want.redelivered)
		}
	}
	c.must(held[1].Nack(false, false)) // dropped
	c.wantReady(q)
}

func TestAckMultiple(t *testing.T) {
	for _, tt := range []struct {
		name string
		ack  func(ch *amqp.Channel) error
		left []string // what is not settled
	}{
		{"up to a tag", func(ch *amqp.Channel) error { return ch.Ack(3, true) }, []string{"3", "4"}},
		{"all", func(ch *amqp.Channel) error { return ch.Ack(0, true) }, nil},
		{"single in the middle", func(ch *amqp.Channel) error { return ch.Ack(3, false) }, []string{"0", "1", "3", "4"}},
		{"nack up to a tag", func(ch *amqp.Channel) error { return ch.Nack(2, true, false) }, []string{"2", "3", "4"}},
		{"a hole in the range", func(ch *amqp.Channel) error {
			if err := ch.Ack(2, false); err != nil {
				return err
			}
			return ch.Ack(4, true)
		}, []string{"4"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newClient(t)
			q := c.privateQueue(nil)
			c.publish("", q, numbers(0, 5)...)
			for range 5 {
				c.get(q, false)
			}
			c.must(tt.ack(c.ch))
			c.must(c.recover(true)) // the rest goes back
			c.wantReady(q, tt.left...)
		})
	}
}

func TestUnknownDeliveryTag(t *testing.T) {
	for _, tt := range []struct {
		name string
		ack  func(ch *amqp.Channel) error
		tag  int
	}{
		{"never delivered", func(ch *amqp.Channel) error { return ch.Ack(5, false) }, 5},
		{"settled twice", func(ch *amqp.Channel) error {
			if err := ch.Ack(1, false); err != nil {
				return err
			}
			return ch.Ack(1, false)
		}, 1},
		{"zero", func(ch *amqp.Channel) error { return ch.Ack(0, false) }, 0},
		{"multiple beyond the end", func(ch *amqp.Channel) error { return ch.Ack(7, true) }, 7},
		{"nack", func(ch *amqp.Channel) error { return ch.Nack(5, false, true) }, 5},
		{"reject", func(ch *amqp.Channel) error { return ch.Reject(5, true) }, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newClient(t)
			q := c.privateQueue(nil)
			c.publish("", q, "m")
			c.get(q, false)
			closed := c.watchChannel()
			c.must(tt.ack(c.ch))
			c.wantClosed(closed, amqp.PreconditionFailed, fmt.Sprintf("PRECONDITION_FAILED - unknown delivery tag %d", tt.tag))
		})
	}
}

func TestAckOfNoAckDelivery(t *testing.T) {
	c := newClient(t)
	q := c.privateQueue(nil)
	ds := c.consume(q, "", true)
	c.publish("", q, "m")
	closed := c.watchChannel()
	c.must(receive(t, ds).Ack(false))
	c.wantClosed(closed, amqp.PreconditionFailed, "PRECONDITION_FAILED - unknown delivery tag 1")
}

func TestRecover(t *testing.T) {
	c := newClient(t)
	q := c.privateQueue(nil)
	c.publish("", q, "a", "b")
	c.get(q, false)
	c.must(c.recover(true))
	if d := c.get(q, true); string(d.Body) != "a" || !d.Redelivered {
		t.Errorf("got %q, redelivered %v, want a, true", d.Body, d.Redelivered)
	}
	closed := c.watchConnection()
	wantError(t, c.recover(false), amqp.NotImplemented, "NOT_IMPLEMENTED - requeue=false")
	c.wantClosed(closed, amqp.NotImplemented, "NOT_IMPLEMENTED - requeue=false")
}

func TestGet(t *testing.T) {
	c := newClient(t)
	q := c.privateQueue(nil)
	if _, ok, err := c.ch.Get(q, false); ok || err != nil {
		t.Errorf("an empty queue gave something: %v, %v", ok, err)
	}
	c.publish("", q, "a", "b", "c")
	for i, want := range []string{"a", "b", "c"} {
		d := c.get(q, true)
		if string(d.Body) != want || d.MessageCount != uint32(2-i) || d.DeliveryTag != uint64(i+1) {
			t.Errorf("got %q, %d left, tag %d, want %s, %d, %d", d.Body, d.MessageCount, d.DeliveryTag, want, 2-i, i+1)
		}
	}
	_, _, err := c.ch.Get("no-such-queue", true)
	wantError(t, err, amqp.NotFound, "NOT_FOUND - no queue 'no-such-queue' in vhost '/'")
}

func TestRoundRobin(t *testing.T) {
	c := newClient(t)
	q := c.privateQueue(nil)
	var all []<-chan amqp.Delivery
	for i := range 3 {
		all = append(all, c.consume(q, fmt.Sprint(i), true))
	}
	for i := range 9 { // one by one: a batch may go to one consumer
		c.put("", q, fmt.Sprint(i))
		if ready, _ := c.counts(q); ready != 0 {
			t.Fatalf("message %d was not delivered", i)
		}
	}
	for i, ds := range all {
		got := receiveBodies(t, ds, 3)
		if want := []string{fmt.Sprint(i), fmt.Sprint(i + 3), fmt.Sprint(i + 6)}; !slices.Equal(got, want) {
			t.Errorf("consumer %d got %q, want %q", i, got, want)
		}
	}
}

func TestConsumerPriority(t *testing.T) {
	c := newClient(t)
	q := c.privateQueue(nil)
	c.must(c.ch.Qos(2, 0, false))
	low := c.consume(q, "low", false)
	high, err := c.ch.ConsumeWithContext(t.Context(), q, "high", false, false, false, false, amqp.Table{"x-priority": int32(10)})
	c.must(err)
	c.put("", q, numbers(0, 5)...)
	if got := receiveBodies(t, high, 2); !slices.Equal(got, numbers(0, 2)) {
		t.Errorf("the high consumer got %q first, want 0 and 1", got)
	}
	if got := receiveBodies(t, low, 2); !slices.Equal(got, numbers(2, 4)) {
		t.Errorf("the low consumer got %q, want 2 and 3", got)
	}
	if ready, _ := c.counts(q); ready != 1 {
		t.Errorf("%d ready while both are full, want 1", ready)
	}
}

func TestPrefetchPerConsumer(t *testing.T) {
	c := newClient(t)
	q := c.privateQueue(nil)
	c.must(c.ch.Qos(3, 0, false))
	ds := c.consume(q, "limited", false)
	c.must(c.ch.Qos(1, 0, false)) // for consumers that start later
	c.put("", q, numbers(0, 10)...)
	if ready, _ := c.counts(q); ready != 7 {
		t.Errorf("%d ready, want 7 as 3 are out", ready)
	}
	c.must(receive(t, ds).Ack(false))
	if got := receiveBodies(t, ds, 3); !slices.Equal(got, numbers(1, 4)) {
		t.Errorf("got %q after an ack, want 1 to 3", got)
	}
	if ready, _ := c.counts(q); ready != 6 {
		t.Errorf("%d ready after an ack, want 6", ready)
	}
	if rest := c.stop("limited", ds); rest != nil {
		t.Errorf("%q came over the limit", rest)
	}
}

func TestPrefetchPerChannel(t *testing.T) {
	c := newClient(t)
	one, two := c.privateQueue(nil), c.privateQueue(nil)
	first, second := c.consume(one, "first", false), c.consume(two, "second", false)
	c.must(c.ch.Qos(3, 0, true)) // running consumers too
	c.publish("", one, "a", "b")
	got := receiveBodies(t, first, 2)
	c.put("", two, "c", "d", "e")
	got = append(got, receiveBodies(t, second, 1)...)
	if want := []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if ready, _ := c.counts(two); ready != 2 {
		t.Errorf("%d ready, want 2 over the limit", ready)
	}
	c.must(c.ch.Ack(1, false))
	if got := receiveBodies(t, second, 1); got[0] != "d" {
		t.Errorf("after an ack: got %q, want d", got)
	}
	c.must(c.ch.Qos(0, 0, true)) // no limit any more
	if got := receiveBodies(t, second, 1); got[0] != "e" {
		t.Errorf("without a limit: got %q, want e", got)
	}
}

func TestPrefetchCountsGets(t *testing.T) {
	c := newClient(t)
	q := c.privateQueue(nil)
	c.publish("", q, "a", "b", "c")
	c.get(q, false)
	c.must(c.ch.Qos(2, 0, true))
	ds := c.consume(q, "tag", false)
	if got := receiveBodies(t, ds, 1); got[0] != "b" {
		t.Errorf("got %q, want b", got)
	}
	if rest := c.stop("tag", ds); rest != nil {
		t.Errorf("%q came over the limit", rest)
	}
}

func TestPrefetchSizeIsNotImplemented(t *testing.T) {
	c := newClient(t)
	closed := c.watchConnection()
	wantError(t, c.ch.Qos(1, 10, false), amqp.NotImplemented, "NOT_IMPLEMENTED - prefetch_size!=0 (10)")
	c.wantClosed(closed, amqp.NotImplemented, "NOT_IMPLEMENTED - prefetch_size!=0 (10)")
}

func TestSingleActiveConsumer(t *testing.T) {
	c := newClient(t)
	q := c.privateQueue(amqp.Table{"x-single-active-consumer": true})
	first, second := c.consume(q, "first", true), c.consume(q, "second", true)
	c.publish("", q, "a", "b")
	if got := receiveBodies(t, first, 2); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the first consumer got %q, want all", got)
	}
	c.stop("first", first)
	c.publish("", q, "c")
	if got := receiveBodies(t, second, 1); got[0] != "c" {
		t.Errorf("its successor got %q, want c", got)
	}
}

func TestChannelFlow(t *testing.T) {
	c := newClient(t)
	c.must(c.ch.Flow(true))
	closed := c.watchConnection()
	wantError(t, c.ch.Flow(false), amqp.NotImplemented, "NOT_IMPLEMENTED - active=false")
	c.wantClosed(closed, amqp.NotImplemented, "NOT_IMPLEMENTED - active=false")
}
