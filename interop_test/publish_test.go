package interop_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// confirms puts the channel into confirm mode.
func (c *client) confirms(size int) <-chan amqp.Confirmation {
	c.Helper()
	c.must(c.ch.Confirm(false))
	return c.ch.NotifyPublish(make(chan amqp.Confirmation, size))
}

func TestConfirmsInOrder(t *testing.T) {
	for _, mode := range []uint8{amqp.Transient, amqp.Persistent} {
		t.Run(fmt.Sprintf("delivery mode %d", mode), func(t *testing.T) {
			c := newClient(t)
			q := c.durableQueue(nil)
			const n = 500
			confirmed := c.confirms(n)
			for i := range n {
				key := q
				if i%3 == 0 {
					key = "nobody" // unroutable ones are confirmed too
				}
				c.must(c.ch.PublishWithContext(t.Context(), "", key, false, false, amqp.Publishing{DeliveryMode: mode, Body: []byte("m")}))
			}
			for tag := uint64(1); tag <= n; tag++ {
				if got := receive(t, confirmed); !got.Ack || got.DeliveryTag != tag {
					t.Fatalf("confirm %+v, want an ack of %d", got, tag)
				}
			}
			if ready, _ := c.counts(q); ready != n-167 {
				t.Errorf("%d messages in the queue, want %d", ready, n-167)
			}
		})
	}
}

func TestConfirmOneAtATime(t *testing.T) {
	c := newClient(t)
	q := c.durableQueue(nil)
	c.must(c.ch.Confirm(false))
	for i := range 20 {
		d, err := c.ch.PublishWithDeferredConfirmWithContext(t.Context(), "", q, false, false, amqp.Publishing{DeliveryMode: amqp.Persistent})
		c.must(err)
		if !d.Wait() {
			t.Fatalf("message %d was refused", i)
		}
	}
	if ready, _ := c.counts(q); ready != 20 {
		t.Errorf("%d messages in the queue, want 20", ready)
	}
}

// A message that is acknowledged before it must be written is never written,
// and confirmed all the same.
func TestConfirmOfConsumedMessages(t *testing.T) {
	c := newClient(t)
	q := c.durableQueue(nil)
	consumer := newClient(t)
	ds := consumer.consume(q, "", false)
	const n = 2000
	confirmed := c.confirms(n)
	go func() {
		for range n {
			if d, ok := <-ds; ok {
				_ = d.Ack(false) // an error ends the test below
			}
		}
	}()
	for range n {
		c.must(c.ch.PublishWithContext(t.Context(), "", q, false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("m")}))
	}
	for tag := uint64(1); tag <= n; tag++ {
		if got := receive(t, confirmed); !got.Ack || got.DeliveryTag != tag {
			t.Fatalf("confirm %+v, want an ack of %d", got, tag)
		}
	}
}

// A refused message is nacked, and acks do not cover it.
func TestNackOfRefusedMessages(t *testing.T) {
	c := newClient(t)
	q := c.durableQueue(amqp.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"})
	confirmed := c.confirms(4)
	for _, key := range []string{q, q, "nobody", q} {
		c.publish("", key, "m")
	}
	got := map[uint64]bool{}
	for range 4 {
		confirm := receive(t, confirmed)
		got[confirm.DeliveryTag] = confirm.Ack
	}
	if want := map[uint64]bool{1: true, 2: false, 3: true, 4: false}; !reflect.DeepEqual(got, want) {
		t.Errorf("confirms %v, want %v", got, want)
	}
}

func TestMandatory(t *testing.T) {
	c := newClient(t)
	returned := c.ch.NotifyReturn(make(chan amqp.Return, 2))
	confirmed := c.confirms(3)
	q := c.privateQueue(nil)
	publishing := amqp.Publishing{ContentType: "text/plain", Headers: amqp.Table{"h": "v"}, MessageId: "id", Body: []byte("come back")}
	c.must(c.ch.PublishWithContext(t.Context(), "", q, true, false, publishing))
	c.must(c.ch.PublishWithContext(t.Context(), "amq.direct", "nobody", true, false, publishing))
	r := receive(t, returned)
	if r.ReplyCode != 312 || r.ReplyText != "NO_ROUTE" || r.Exchange != "amq.direct" || r.RoutingKey != "nobody" {
		t.Errorf("returned with %d %s from %s to %s", r.ReplyCode, r.ReplyText, r.Exchange, r.RoutingKey)
	}
	if r.ContentType != "text/plain" || r.MessageId != "id" || r.Headers["h"] != "v" || string(r.Body) != "come back" {
		t.Errorf("returned message %+v is not what was published", r)
	}
	for range 2 {
		if confirm := receive(t, confirmed); !confirm.Ack {
			t.Errorf("confirm %+v, want an ack", confirm)
		}
	}
	if len(returned) != 0 {
		t.Error("the routed message came back too")
	}
}

// The return of a message comes before its ack.
func TestReturnComesBeforeAck(t *testing.T) {
	r := dialRaw(t)
	r.handshake(usualTune)
	r.openChannel(1)
	r.method(1, methodID{85, 10}, u8(0)) // confirm.select
	r.expect(methodID{85, 11})
	r.send(frame(frameMethod, 1, methodPayload(basicPublish, u16(0), shortstr(""), shortstr("nobody"), u8(1))),
		frame(frameHeader, 1, contentHeader(60, 0)))
	r.expect(methodID{60, 50}) // basic.return
	if f, err := r.read(); err != nil || f.kind != frameHeader {
		t.Fatalf("got %v, %v, want the returned header", f, err)
	}
	r.expect(methodID{60, 80}) // basic.ack
}

func TestImmediateIsNotImplemented(t *testing.T) {
	c := newClient(t)
	closed := c.watchConnection()
	c.must(c.ch.PublishWithContext(t.Context(), "", "q", false, true, amqp.Publishing{}))
	c.wantClosed(closed, amqp.NotImplemented, "NOT_IMPLEMENTED - immediate=true")
}

func TestPublishToMissingExchangeAfterGoodOnes(t *testing.T) {
	c := newClient(t)
	q := c.durableQueue(nil)
	closed := c.watchChannel()
	c.publish("", q, "a", "b")
	c.publish("no-such-exchange", q, "c")
	c.wantClosed(closed, amqp.NotFound, "NOT_FOUND - no exchange 'no-such-exchange' in vhost '/'")
	c.reopen()
	c.wantReady(q, "a", "b")
}

func TestUserIDMustBeTheLogin(t *testing.T) {
	c := newClient(t)
	q := c.privateQueue(nil)
	c.must(c.ch.PublishWithContext(t.Context(), "", q, false, false, amqp.Publishing{UserId: "guest", Body: []byte("mine")}))
	c.wantReady(q, "mine")
	closed := c.watchChannel()
	c.must(c.ch.PublishWithContext(t.Context(), "", q, false, false, amqp.Publishing{UserId: "joe"}))
	c.wantClosed(closed, amqp.PreconditionFailed, "PRECONDITION_FAILED - user_id property set to 'joe' but authenticated user was 'guest'")
}

func TestPropertiesTravelUnchanged(t *testing.T) {
	c := newClient(t)
	q := c.privateQueue(nil)
	sent := amqp.Publishing{
		Headers: amqp.Table{
			"bool": true, "int8": int8(-8), "uint8": uint8(200), "int16": int16(-16), "int32": int32(-32), "int64": int64(-64),
			"float32": float32(0.5), "float64": 0.25, "string": "text \x00 with zero", "bytes": []byte{0, 1, 2}, "void": nil,
			"decimal": amqp.Decimal{Scale: 2, Value: 12345}, "time": time.Unix(1700000000, 0).UTC(),
			"table": amqp.Table{"nested": amqp.Table{"deep": int32(1)}}, "array": []any{int32(1), "two", amqp.Table{"three": int32(3)}},
		},
		ContentType: "application/json", ContentEncoding: "gzip", DeliveryMode: 2, Priority: 9, CorrelationId: "correlation",
		ReplyTo: "reply", Expiration: "100000", MessageId: "message", Timestamp: time.Unix(1700000001, 0), Type: "type", UserId: "guest",
		AppId: "app", Body: []byte("body"),
	}
	c.must(c.ch.PublishWithContext(t.Context(), "", q, false, false, sent))
	d := c.get(q, true)
	d.Timestamp, sent.Timestamp = d.Timestamp.UTC(), sent.Timestamp.UTC()
	got := amqp.Publishing{
		Headers: d.Headers, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: d.DeliveryMode, Priority: d.Priority,
		CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo, Expiration: d.Expiration, MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type,
		UserId: d.UserId, AppId: d.AppId, Body: d.Body,
	}
	for key, want := range sent.Headers {
		if have := got.Headers[key]; !sameValue(have, want) {
			t.Errorf("header %s: got %T %v, want %T %v", key, have, have, want, want)
		}
	}
	got.Headers, sent.Headers = nil, nil
	if !reflect.DeepEqual(got, sent) {
		t.Errorf("got %+v, want %+v", got, sent)
	}
}

// sameValue compares field values; times by the instant.
func sameValue(got, want any) bool {
	g, ok := got.(time.Time)
	if w, both := want.(time.Time); ok && both {
		return g.Equal(w)
	}
	return reflect.DeepEqual(got, want)
}

// Bodies around the frame size, and far beyond it, in frames of several sizes.
func TestBodiesOfAllSizes(t *testing.T) {
	for _, frameSize := range []int{4096, 131072} {
		t.Run(fmt.Sprintf("frames of %d", frameSize), func(t *testing.T) {
			c := &client{T: t, conn: dial(t, amqp.Config{FrameSize: frameSize})}
			c.reopen()
			q := c.privateQueue(nil)
			ds := c.consume(q, "", true)
			random := rand.NewChaCha8([32]byte{1})
			for _, size := range []int{0, 1, frameSize - 9, frameSize - 8, frameSize - 7, frameSize, 2*frameSize - 16, 1 << 20, 5<<20 + 1} {
				body := make([]byte, size)
				if _, err := random.Read(body); err != nil {
					t.Fatal(err)
				}
				c.must(c.ch.PublishWithContext(t.Context(), "", q, false, false, amqp.Publishing{Body: body}))
				if got := receive(t, ds); !bytes.Equal(got.Body, body) {
					t.Errorf("a body of %d bytes came as %d other bytes", size, len(got.Body))
				}
			}
		})
	}
}

func TestMessageTooLarge(t *testing.T) {
	c := newClient(t)
	q := c.privateQueue(nil)
	const limit = 16 << 20
	c.must(c.ch.PublishWithContext(t.Context(), "", q, false, false, amqp.Publishing{Body: make([]byte, limit)}))
	if d := c.get(q, true); len(d.Body) != limit {
		t.Errorf("got %d bytes, want %d", len(d.Body), limit)
	}
	closed := c.watchChannel()
	c.must(c.ch.PublishWithContext(t.Context(), "", q, false, false, amqp.Publishing{Body: make([]byte, limit+1)}))
	c.wantClosed(closed, amqp.PreconditionFailed, "PRECONDITION_FAILED - message size 16777217 is larger than configured max size 16777216")
}

// Many publishers at once: what one channel sends arrives in its order.
func TestConcurrentPublishersKeepTheirOrder(t *testing.T) {
	const publishers, each = 8, 300
	c := newClient(t)
	q := c.durableQueue(nil)
	ds := c.consume(q, "", true)
	var wg sync.WaitGroup
	for p := range publishers {
		own := newClient(t)
		wg.Go(func() {
			for i := range each {
				err := own.ch.PublishWithContext(t.Context(), "", q, false, false, amqp.Publishing{Body: fmt.Appendf(nil, "%d %d", p, i)})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	next := make([]int, publishers)
	for range publishers * each {
		var p, i int
		if _, err := fmt.Sscan(string(receive(t, ds).Body), &p, &i); err != nil {
			t.Fatal(err)
		}
		if i != next[p] {
			t.Fatalf("publisher %d: message %d came, want %d", p, i, next[p])
		}
		next[p]++
	}
	wg.Wait()
}

// CC and BCC headers are further routing keys; only BCC is taken out.
func TestSenderSelectedDistribution(t *testing.T) {
	c := newClient(t)
	to, cc, bcc := c.privateQueue(nil), c.privateQueue(nil), c.privateQueue(nil)
	c.must(c.ch.PublishWithContext(t.Context(), "", to, false, false, amqp.Publishing{
		Headers: amqp.Table{"CC": []any{cc}, "BCC": []any{bcc, to}}, Body: []byte("m"),
	}))
	for _, q := range []string{to, cc, bcc} {
		d := c.get(q, true)
		if d.RoutingKey != to || string(d.Body) != "m" {
			t.Errorf("got %q with key %s, want m with key %s", d.Body, d.RoutingKey, to)
		}
		if _, there := d.Headers["BCC"]; there {
			t.Error("the BCC header was delivered")
		}
		if want := []any{cc}; !reflect.DeepEqual(d.Headers["CC"], want) {
			t.Errorf("header CC %v, want %v", d.Headers["CC"], want)
		}
	}
	c.wantReady(to)
}

func TestLongRoutingKeys(t *testing.T) {
	c := newClient(t)
	q := c.privateQueue(nil)
	key := strings.Repeat("k", 255)
	c.must(c.ch.QueueBind(q, key, "amq.direct", false, nil))
	c.publish("amq.direct", key, "long")
	if d := c.get(q, true); d.RoutingKey != key || d.Exchange != "amq.direct" {
		t.Errorf("got key %s of exchange %s", d.RoutingKey, d.Exchange)
	}
}
