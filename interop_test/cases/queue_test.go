package cases_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// Tools read these texts, and workers die of them (kombu#824, amqplib#260,
// hirefire-resource-ruby#51).
func TestInequivalentDeclareTexts(t *testing.T) {
	none, ten := table(nil), table{"x-max-priority", 10}
	text := func(arg, rest string) string {
		return "channel 406 PRECONDITION_FAILED - inequivalent arg '" + arg + "' for queue 'q' in vhost '/': " + rest + " (50,10)"
	}
	for _, tt := range []struct {
		name   string
		flags  string
		args   table
		flags2 string
		args2  table
		want   string
	}{
		{"argument added", "", none, "", ten, text("x-max-priority", "received the value '10' of type 'signedint' but current is none")},
		{"argument left out", "", ten, "", none, text("x-max-priority", "received none but current is the value '10' of type 'signedint'")},
		{"argument changed", "", ten, "", table{"x-max-priority", 5}, text("x-max-priority", "received '5' but current is '10'")},
		{"argument of another width", "", ten, "", table{"x-max-priority", uint8(10)}, "ok q 0 0"},
		{"void is a value", "", none, "", table{"x-max-length", nil}, text("x-max-length", "received the value 'undefined' of type 'void' but current is none")},
		{"void against a value is none", "", ten, "", table{"x-max-priority", nil}, text("x-max-priority", "received none but current is '10'")},
		{"a timestamp is a number", "", ten, "", table{"x-max-priority", time.Unix(10, 0)}, "ok q 0 0"},
		{"bytes are text", "", table{"x-overflow", "drop-head"}, "", table{"x-overflow", []byte("drop-head")}, "ok q 0 0"},
		{"what is no UTF-8 is Latin-1", "", table{"x-overflow", "drop-head"}, "", table{"x-overflow", "\xe9"}, text("x-overflow", "received 'é' but current is 'drop-head'")},
		{"not its argument", "", none, "", table{"x-delivery-limit", 5}, "ok q 0 0"},
		{"durable", "d", none, "", none, text("durable", "received 'false' but current is 'true'")},
		{"not durable", "", none, "d", none, text("durable", "received 'true' but current is 'false'")},
		{"auto-delete", "a", none, "", none, text("auto_delete", "received 'false' but current is 'true'")},
		{"durable before auto-delete before arguments", "", none, "da", ten, text("durable", "received 'true' but current is 'false'")},
		{"auto-delete before arguments", "", none, "a", ten, text("auto_delete", "received 'true' but current is 'false'")},
		{"text", "", table{"x-dead-letter-exchange", "d"}, "", table{"x-dead-letter-exchange", "e"}, text("x-dead-letter-exchange", "received 'e' but current is 'd'")},
		{"unknown arguments are not compared", "", table{"foo", 1}, "", table{"bar", "2"}, "ok q 0 0"},
		{"the type is injected", "d", none, "d", table{"x-queue-type", "classic"}, "ok q 0 0"},
		{"the type is injected, other way", "d", table{"x-queue-type", "classic"}, "d", none, "ok q 0 0"},
		{"passive never compares", "d", ten, "pa", table{"x-max-priority", 5, "x-queue-type", "nonsense"}, "ok q 0 0"},
		{"durable and exclusive is exclusive", "dx", none, "x", none, "ok q 0 0"},
		{"exclusive is a lock", "x", none, "", none, "channel 405 RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'q' in vhost '/'. It could be originally declared on another connection or the exclusive property value does not match that of the original declaration. (50,10)"},
		{"not exclusive is one too", "", none, "x", none, "channel 405 RESOURCE_LOCKED - ..."},
		{"the lock before durable", "x", none, "d", ten, "channel 405 RESOURCE_LOCKED - ..."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := connect(t)
			c.is(c.declare("q", tt.flags, tt.args), "ok q 0 0")
			c.is(c.declare("q", tt.flags2, tt.args2), tt.want)
		})
	}
}

// Arguments have types and ranges (amqplib#165, aio-pika#333, lavinmq#169,
// rabbitmq-c#360, lavinmq#1429).
func TestQueueArguments(t *testing.T) {
	bad := func(arg, term string) string {
		return "channel 406 PRECONDITION_FAILED - invalid arg '" + arg + "' for queue 'q' in vhost '/': " + term + " (50,10)"
	}
	other := func(arg, kind string) string {
		return "channel 406 PRECONDITION_FAILED - invalid arg '" + arg + "' for queue 'q' in vhost '/' of queue type rabbit_" + kind + "_queue (50,10)"
	}
	const ok = "ok q 0 0"
	tenYears := int64(315_360_000_000)
	for _, tt := range []struct {
		arg   string
		value any
		want  string
	}{
		{"x-max-priority", 255, ok},
		{"x-max-priority", uint8(255), ok},
		{"x-max-priority", int8(-1), bad("x-max-priority", "{value_negative,-1}")},
		{"x-max-priority", 256, bad("x-max-priority", "{max_value_exceeded,256}")},
		{"x-max-priority", 0, ok},
		{"x-queue-type", "a\n\"é", bad("x-queue-type", `"unsupported queue type 'a\n\"é'"`)},
		{"x-queue-mode", "a€", bad("x-queue-mode", "[117,110,115,117,112,112,111,114,116,101,100,32,113,117,101,117,101,32,109,111,100,101,32,39,97,8364,39]")},
		{"x-max-priority", 1.0, bad("x-max-priority", `"expected integer, got double"`)},
		{"x-expires", 0, bad("x-expires", "{value_zero,0}")},
		{"x-expires", -1, bad("x-expires", "{value_negative,-1}")},
		{"x-expires", tenYears, ok},
		{"x-expires", tenYears + 1, bad("x-expires", "{value_too_large,315360000001}")},
		{"x-expires", "1000", bad("x-expires", `"expected integer, got longstr"`)},
		{"x-message-ttl", -1, bad("x-message-ttl", "{value_negative,-1}")},
		{"x-message-ttl", 0, ok},
		{"x-message-ttl", int64(1 << 33), ok},
		{"x-message-ttl", tenYears + 1, bad("x-message-ttl", "{value_too_large,315360000001}")},
		{"x-message-ttl", "1000", bad("x-message-ttl", `"expected integer, got longstr"`)},
		{"x-message-ttl", true, bad("x-message-ttl", `"expected integer, got bool"`)},
		{"x-message-ttl", table{}, bad("x-message-ttl", `"expected integer, got table"`)},
		{"x-message-ttl", array{}, bad("x-message-ttl", `"expected integer, got array"`)},
		{"x-message-ttl", time.Unix(5, 0), bad("x-message-ttl", `"expected integer, got timestamp"`)},
		{"x-message-ttl", float32(1), bad("x-message-ttl", `"expected integer, got float"`)},
		{"x-message-ttl", []byte("1"), bad("x-message-ttl", `"expected integer, got binary"`)},
		{"x-message-ttl", decimal{0, 5}, bad("x-message-ttl", `"expected integer, got decimal"`)},
		{"x-message-ttl", uint64(5), ok},
		{"x-max-length", 0, ok},
		{"x-max-length", -1, bad("x-max-length", "{value_negative,-1}")},
		{"x-max-length", int64(1 << 60), ok},
		{"x-max-length-bytes", 0, ok},
		{"x-max-length-bytes", -5, bad("x-max-length-bytes", "{value_negative,-5}")},
		{"x-overflow", "bad", bad("x-overflow", "invalid_overflow")},
		{"x-overflow", "reject-publish-dlx", ok},
		{"x-overflow", 1, bad("x-overflow", "{unacceptable_type,signedint}")},
		{"x-dead-letter-exchange", 1, "channel 406 PRECONDITION_FAILED - invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue 'q' in vhost '/' (50,10)"},
		{"x-dead-letter-exchange", "", ok},
		{"x-dead-letter-exchange", "missing", ok},
		{"x-dead-letter-routing-key", "k", bad("x-dead-letter-routing-key", "routing_key_but_no_dlx_defined")},
		{"x-dead-letter-routing-key", 1, bad("x-dead-letter-routing-key", "{unacceptable_type,signedint}")},
		{"x-single-active-consumer", false, ok},
		{"x-single-active-consumer", true, ok},
		{"x-single-active-consumer", "true", bad("x-single-active-consumer", "{unacceptable_type,longstr}")},
		{"x-queue-mode", "lazy", ok},
		{"x-queue-mode", "foo", bad("x-queue-mode", `"unsupported queue mode 'foo'"`)},
		{"x-queue-version", 2, ok},
		{"x-queue-version", 3, bad("x-queue-version", `"unsupported queue version '3'"`)},
		{"x-queue-type", "foo", bad("x-queue-type", `"unsupported queue type 'foo'"`)},
		{"x-queue-type", "undefined", ok},
		{"x-queue-master-locator", "whatever", ok},
		{"x-queue-leader-locator", "balanced", ok},
		{"x-queue-leader-locator", "min-masters", ok},
		{"x-queue-leader-locator", "whatever", bad("x-queue-leader-locator", "invalid_queue_locator_arg")},
		{"x-quorum-initial-group-size", 3, other("x-quorum-initial-group-size", "classic")},
		{"x-max-in-memory-length", 3, other("x-max-in-memory-length", "classic")},
		{"x-dead-letter-strategy", "at-most-once", other("x-dead-letter-strategy", "classic")},
		{"x-max-age", "1h", other("x-max-age", "classic")},
		{"x-initial-cluster-size", 3, other("x-initial-cluster-size", "classic")},
		{"x-stream-max-segment-size-bytes", 3, other("x-stream-max-segment-size-bytes", "classic")},
		{"x-stream-filter-size-bytes", 1, ok},
		{"x-consumer-timeout", 1000, ok},
		{"x-consumer-timeout", "nonsense", ok},
		{"x-ha-policy", "all", ok},
		{"anything", table{"deep", array{1, nil}}, ok},
	} {
		t.Run(fmt.Sprintf("%s %T %v", tt.arg, tt.value, tt.value), func(t *testing.T) {
			c := connect(t)
			c.is(c.declare("q", "", table{tt.arg, tt.value}), tt.want)
		})
	}
}

// Whatever another connection does to an exclusive queue is 405, and that
// before anything else is looked at; publishing is free (rabbitmq-server#1888,
// streadway/amqp#167).
func TestExclusiveQueueIsLocked(t *testing.T) {
	a := connect(t)
	a.ok(a.declare("q", "x", nil))
	a.ok(a.bind("q", "amq.direct", a.name("q"), nil))
	b := a.again(login{})
	const text = "channel 405 RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'q' in vhost '/'. It could be originally declared on another connection or the exclusive property value does not match that of the original declaration. "
	b.is(b.declare("q", "d", table{"x-max-length", 1}), text+"(50,10)")
	b.is(b.declare("q", "x", nil), text+"(50,10)")
	b.is(b.declare("q", "p", nil), text+"(50,10)")
	b.is(b.consume("q", "t", "", nil), text+"(60,20)")
	b.is(b.consume("q", "t", "x", nil), text+"(60,20)")
	b.is(b.get("q"), text+"(60,70)")
	b.is(b.bind("q", "amq.direct", "k", nil), text+"(50,20)")
	b.is(b.unbind("q", "amq.direct", b.name("q"), nil), text+"(50,50)")
	b.is(b.remove("q", ""), text+"(50,40)")
	b.is(b.remove("q", "ue"), text+"(50,40)")
	b.is(b.purge("q"), text+"(50,30)")
	b.is(b.put("", "q", "m", props{}, "m"), "ack")
	a.is(a.bodies("q"), "m")
	a.is(a.on(2).bind("q", "amq.direct", a.name("q"), nil), "ok") // another channel of the owner
	b.ok(b.declare("plain", "", nil))
	b.is(b.declare("plain", "x", nil), strings.Replace(text, "'q'", "'plain'", 1)+"(50,10)")
}

// The name is free as soon as the owner is gone (metricq-python#25, nameko#359,
// node-red-contrib-amqp#45, st2#4958).
func TestExclusiveQueueIsFreeAfterClose(t *testing.T) {
	a := connect(t)
	for range 50 {
		a.is(a.declare("q", "x", nil), "ok q 0 0")
		a.hangUp()
		a = a.again(login{})
	}
}

func TestExclusiveQueueIsFreeAfterReset(t *testing.T) {
	a := connect(t)
	for range 10 {
		a.is(a.declare("q", "x", nil), "ok q 0 0")
		_ = a.sock.(*net.TCPConn).SetLinger(0) // reset
		_ = a.sock.Close()
		a.ended = "closed"
		b := a.again(login{})
		b.eventually("ok q 0 0", func() string { return b.declare("q", "x", nil) })
		a = b
	}
}

// Exclusive queues go with their connection, not their channel.
func TestExclusiveQueueOutlivesItsChannel(t *testing.T) {
	a := connect(t)
	a.ok(a.declare("q", "x", nil))
	a.ok(a.close())
	a.is(a.on(2).declare("q", "x", nil), "ok q 0 0")
	a.is(a.on(2).declare("nope", "p", nil), "channel 404 NOT_FOUND - no queue 'nope' in vhost '/' (50,10)")
	a.is(a.depth("q"), "0 0")
}

// An auto-delete queue waits for its first consumer and goes with its last
// (sensu#709).
func TestAutoDeleteQueue(t *testing.T) {
	gone := "channel 404 NOT_FOUND - no queue 'q' in vhost '/' (50,10)"
	c := connect(t)
	c.is(c.declare("q", "a", nil), "ok q 0 0")
	c.is(c.get("q"), "empty")
	c.is(c.depth("q"), "0 0")
	c.ok(c.consume("q", "one", "", nil))
	c.ok(c.consume("q", "two", "", nil))
	c.is(c.cancel("one"), "ok one")
	c.is(c.depth("q"), "0 1")
	c.is(c.cancel("two"), "ok two")
	c.is(c.depth("q"), gone)
	c.is(c.declare("q", "a", nil), "ok q 0 0")
	c.ok(c.consume("q", "one", "", nil))
	c.ok(c.close())
	c.eventually(gone, func() string { return c.depth("q") })
	c.is(c.declare("q", "a", nil), "ok q 0 0")
	c.ok(c.consume("q", "one", "", nil))
	c.is(c.declare("nope", "p", nil), "channel 404 NOT_FOUND - no queue 'nope' in vhost '/' (50,10)")
	c.eventually(gone, func() string { return c.depth("q") })
	d := c.again(login{})
	d.is(d.declare("q", "a", nil), "ok q 0 0")
	d.ok(d.consume("q", "one", "", nil))
	d.hangUp()
	c.eventually(gone, func() string { return c.depth("q") })
}

// A missing queue ends the channel only (streadway/amqp#167, bunny#694).
func TestMissingQueueEndsTheChannelOnly(t *testing.T) {
	c := connect(t)
	c.ok(c.on(2).declare("q", "x", nil))
	no := func(ids string) string { return "channel 404 NOT_FOUND - no queue 'nope' in vhost '/' " + ids }
	c.is(c.declare("nope", "p", nil), no("(50,10)"))
	c.is(c.get("nope"), no("(60,70)"))
	c.is(c.consume("nope", "", "", nil), no("(60,20)"))
	c.is(c.purge("nope"), no("(50,30)"))
	c.is(c.bind("nope", "amq.direct", "", nil), no("(50,20)"))
	c.is(c.remove("nope", ""), "ok 0")
	c.is(c.remove("nope", "ue"), "ok 0")
	c.is(c.unbind("nope", "amq.direct", "", nil), "ok")
	c.is(c.on(2).depth("q"), "0 0")
}

// x-expires is a lease: what renews it, and what does not (lavinmq#924,
// rabbitmq-server#5894, rabbitmq-website#769).
func TestExpiresIsALease(t *testing.T) {
	const lease = time.Second
	for _, tt := range []struct {
		name   string
		renew  func(c *channel)
		renews bool
	}{
		{"passive declare", func(c *channel) { c.declare("q", "p", nil) }, true},
		{"declare", func(c *channel) { c.declare("q", "", table{"x-expires", 1000}) }, true},
		{"get", func(c *channel) { c.take("q") }, true},
		{"publish", func(c *channel) { c.publish("", "q", "m", props{}, ""); c.sync() }, false},
		{"bind", func(c *channel) { c.bind("q", "amq.direct", c.name("q"), nil) }, false},
		{"purge", func(c *channel) { c.purge("q") }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := connect(t)
			c.ok(c.declare("q", "", table{"x-expires", 1000}))
			if !tt.renews { // it ends although this happens more often than the lease ends
				c.eventually(`return 312 NO_ROUTE /q "probe", ack`, func() string {
					tt.renew(c)
					return c.put("", "q", "probe", props{}, "m")
				})
				return
			}
			renewed := time.Now()
			tt.renew(c)
			for began := renewed; renewed.Sub(began) < 5*lease/2; {
				c.pause(lease / 5)
				lives := c.put("", "q", "probe", props{}, "m")
				if time.Since(renewed) < lease {
					c.is(lives, "ack")
					renewed = time.Now()
				} else { // the machine has held this up: it shows nothing, so anew
					began = time.Now()
					renewed = began
					c.ok(c.declare("q", "", table{"x-expires", 1000}))
				}
				tt.renew(c)
			}
		})
	}
}

func TestExpiresCountsFromTheLastConsumer(t *testing.T) {
	t.Parallel()
	const lease = 800 * time.Millisecond
	c := connect(t)
	c.ok(c.declare("dead", "x", nil))
	c.ok(c.declare("q", "", table{"x-expires", 800, "x-dead-letter-exchange", "", "x-dead-letter-routing-key", c.name("dead")}))
	c.puts("q", "m")
	c.ok(c.consume("q", "t", "", nil))
	c.want(`deliver t #1 /q "m"`)
	c.pause(3 * lease / 2)
	c.nack(1, "r")
	c.want(`deliver t #2 redelivered /q "m"`)
	c.is(c.depth("q"), "0 1")
	cancelled := time.Now()
	c.is(c.cancel("t"), "ok t")
	c.pause(lease / 2) // not before
	got := c.on(2).bind("q", "amq.direct", c.name("q"), nil)
	if time.Since(cancelled) < lease { // else it may have ended
		c.is(got, "ok")
	}
	c.on(2).gone("q")
	c.is(c.depth("dead"), "0 0") // its messages are not dead-lettered
}

// The queue last declared on the channel is what "" means (kourier#68,
// nest#1571).
func TestServerNamedQueues(t *testing.T) {
	c := connect(t)
	const none = "channel 404 NOT_FOUND - no previously declared queue "
	c.is(c.get(""), none+"(60,70)")
	c.is(c.consume("", "", "", nil), none+"(60,20)")
	c.is(c.bind("", "amq.direct", "k", nil), none+"(50,20)")
	c.is(c.unbind("", "amq.direct", "k", nil), none+"(50,50)")
	c.is(c.purge(""), none+"(50,30)")
	c.is(c.remove("", ""), none+"(50,40)")
	c.is(c.declare("", "p", nil), "channel 404 NOT_FOUND - no queue '' in vhost '/' (50,10)")
	c.is(c.declare("", "x", nil), "ok amq.gen-* 0 0")
	name := (&reader{c.last.args}).short()
	c.is(c.declare(name, "p", nil), "ok amq.gen-* 0 0")
	c.is(c.on(2).declare(name, "x", nil), "channel 403 ACCESS_REFUSED - queue name 'amq.gen-*' contains reserved prefix 'amq.*' (50,10)")
	c.is(c.bind("", "amq.direct", "", nil), "ok") // the key is the name too
	c.is(c.put("amq.direct", name, "m", props{}, "m"), "ack")
	c.is(c.get(""), `#1 amq.direct/amq.gen-* "m" left 0`)
	c.is(c.unbind("", "amq.direct", "", nil), "ok")
	c.is(c.put("amq.direct", name, "m", props{}, "m"), `return 312 NO_ROUTE amq.direct/amq.gen-* "m", ack`)
	c.is(c.consume("", "", "", nil), "ok amq.ctag-*")
	c.is(c.declare(name, "p", nil), "ok amq.gen-* 0 1")
	c.is(c.on(2).get(""), none+"(60,70)") // of this channel only
	c.ok(c.declare("other", "x", nil))
	c.is(c.purge(""), "ok 0")
	c.is(c.remove("", ""), "ok 0")
	c.is(c.get(""), "channel 404 NOT_FOUND - no queue 'other' in vhost '/' (60,70)")
	c.is(c.declare("amq.foo", "", nil), "channel 403 ACCESS_REFUSED - queue name 'amq.foo' contains reserved prefix 'amq.*' (50,10)")
	c.is(c.declare("amq.foo", "p", nil), "channel 404 NOT_FOUND - no queue 'amq.foo' in vhost '/' (50,10)")
}

// Conditions of queue.delete.
func TestDeleteConditions(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "", nil))
	c.puts("q", "1", "2")
	c.is(c.remove("q", "e"), "channel 406 PRECONDITION_FAILED - queue 'q' in vhost '/' not empty (50,40)")
	c.ok(c.consume("q", "t", "", nil))
	c.want(`deliver t #1 /q "1"`, `deliver t #2 /q "2"`)
	c.is(c.remove("q", "u"), "channel 406 PRECONDITION_FAILED - queue 'q' in vhost '/' in use (50,40)")
	c.eventually("2 0", func() string { return c.depth("q") })
	c.get("q")
	c.is(c.purge("q"), "ok 1")
	c.is(c.remove("q", "ue"), "ok 0") // one is unacknowledged: neither in use nor ready
	c.ack(1, "")
	c.is(c.sync(), "ok") // the tag is known still
}

// The oldest go first, in order, as dead letters (lavinmq#177,
// rabbitmq-server#1374).
func TestOverflowDropsTheOldestInOrder(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("dead", "x", nil))
	c.ok(c.declare("q", "x", table{"x-max-length", 2, "x-dead-letter-exchange", "", "x-dead-letter-routing-key", c.name("dead")}))
	c.puts("q", "0", "1", "2", "3", "4", "5")
	c.eventually("4 0", func() string { return c.depth("dead") })
	c.is(c.bodies("dead"), "0 1 2 3")
	c.is(c.bodies("q"), "4 5")
}

// Unacknowledged messages do not count (rabbitmq-server#2313).
func TestUnackedDoNotCountForTheLimit(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", table{"x-max-length", 2, "x-overflow", "reject-publish"}))
	c.puts("q", "1", "2")
	c.is(c.put("", "q", "3", props{}, ""), "nack")
	c.get("q")
	c.is(c.put("", "q", "4", props{}, ""), "ack")
	c.is(c.put("", "q", "5", props{}, ""), "nack")
	c.nack(1, "r")
	c.eventually("3 0", func() string { return c.depth("q") })
	c.is(c.put("", "q", "6", props{}, ""), "nack")
	c.is(c.bodies("q"), "1 2 4")
}

func TestDropHeadAfterRequeue(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", table{"x-max-length", 2}))
	c.puts("q", "1", "2")
	c.get("q")
	c.puts("q", "3")
	c.nack(1, "r")
	c.is(c.depth("q"), "2 0")
	c.is(c.bodies("q"), "2 3")
}

func TestLimitInBytes(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", table{"x-max-length-bytes", 10}))
	c.is(c.put("", "q", "12345678901", props{}, ""), "ack")
	c.is(c.depth("q"), "0 0")
	c.puts("q", "12345", "67890", "")
	c.is(c.depth("q"), "3 0")
	c.puts("q", "1")
	c.is(c.bodies("q"), "67890  1")
	c.ok(c.declare("r", "x", table{"x-max-length-bytes", 10, "x-overflow", "reject-publish"}))
	c.puts("r", "123456789")
	c.is(c.put("", "r", "12345678901", props{}, ""), "nack")
	c.is(c.put("", "r", "1", props{headers: table{"not", "counted"}}, ""), "ack")
	c.is(c.put("", "r", "1", props{}, ""), "nack")
}

// With nothing to keep, only a waiting consumer gets messages.
func TestLimitZero(t *testing.T) {
	for _, overflow := range []string{"drop-head", "reject-publish", "reject-publish-dlx"} {
		t.Run(overflow, func(t *testing.T) {
			c := connect(t)
			c.ok(c.declare("dead", "x", nil))
			c.ok(c.declare("q", "x", table{"x-max-length", 0, "x-overflow", overflow, "x-dead-letter-exchange", "", "x-dead-letter-routing-key", c.name("dead")}))
			verdict, died := "ack", "1"
			if overflow != "drop-head" {
				verdict = "nack"
			}
			if overflow == "reject-publish" {
				died = ""
			}
			c.is(c.put("", "q", "1", props{}, ""), verdict)
			c.is(c.depth("q"), "0 0")
			c.pause(quiet)
			c.is(c.bodies("dead"), died)
		})
	}
	c := connect(t)
	c.ok(c.declare("q", "x", table{"x-max-length", 0}))
	c.ok(c.consume("q", "t", "a", nil))
	c.is(c.put("", "q", "1", props{}, ""), "ack")
	c.want(`deliver t #1 /q "1"`)
}

// The limit drops what would be delivered next: the most urgent
// (rabbitmq-server#1834, MassTransit#3046).
func TestLimitOfAPriorityQueue(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", table{"x-max-priority", 5, "x-max-length", 3}))
	for _, m := range []struct {
		body     string
		priority int
	}{{"h1", 5}, {"l1", 0}, {"m1", 3}, {"l2", 0}, {"h2", 5}} {
		c.is(c.put("", "q", m.body, props{priority: m.priority}, ""), "ack")
	}
	c.is(c.bodies("q"), "m1 l1 l2")
}

// Purge takes what is ready.
func TestPurge(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("dead", "x", nil))
	c.ok(c.declare("q", "x", table{"x-dead-letter-exchange", "", "x-dead-letter-routing-key", c.name("dead")}))
	c.puts("q", "1", "2", "3")
	c.get("q")
	c.is(c.purge("q"), "ok 2")
	c.is(c.purge("q"), "ok 0")
	c.nack(1, "r")
	c.eventually("1 0", func() string { return c.depth("q") })
	c.is(c.remove("q", ""), "ok 1")
	c.pause(quiet)
	c.is(c.depth("dead"), "0 0")
}

// Bindings are told apart by all their parts; a queue's go with it.
func TestBindings(t *testing.T) {
	c := connect(t)
	c.ok(c.exchange("x", "direct", "", nil))
	c.ok(c.declare("q", "", nil))
	for range 3 {
		c.is(c.bind("q", "x", "k", nil), "ok")
	}
	c.is(c.bind("q", "x", "k", table{"a", 1}), "ok")
	c.is(c.unbind("q", "x", "k", nil), "ok")
	c.is(c.put("x", "k", "m", props{}, "m"), "ack")
	c.is(c.unbind("q", "x", "k", table{"a", 1}), "ok")
	c.is(c.put("x", "k", "m", props{}, "m"), `return 312 NO_ROUTE x/k "m", ack`)
	c.is(c.bind("q", "x", "k", nil), "ok")
	c.is(c.remove("q", ""), "ok 1")
	c.ok(c.declare("q", "", nil))
	c.is(c.put("x", "k", "m", props{}, "m"), `return 312 NO_ROUTE x/k "m", ack`)
	c.is(c.bind("q", "x", "k", nil), "ok")
	c.is(c.removeExchange("x", ""), "ok")
	c.ok(c.exchange("x", "direct", "", nil))
	c.is(c.put("x", "k", "m", props{}, "m"), `return 312 NO_ROUTE x/k "m", ack`)
}
