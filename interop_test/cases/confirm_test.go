package cases_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A message that nobody gets is returned first and confirmed then, with
// nothing of the channel in between (streadway/amqp#351, lapin#252,
// amqplib#184).
func TestReturnPrecedesAck(t *testing.T) {
	c := connect(t)
	c.ok(c.call(confirmSelect, u8(0)))
	c.ok(c.call(confirmSelect, u8(0))) // again is fine
	c.publish("", "nope", "1", props{contentType: "text/plain", headers: table{"a", 1}}, "m")
	c.want(`return 312 NO_ROUTE /nope "1"`)
	c.is(c.props(), "content_type=text/plain headers={a:I1}")
	c.want("ack 1")
	c.publish("amq.fanout", "k", "", props{}, "m")
	c.want(`return 312 NO_ROUTE amq.fanout/k ""`, "ack 2")
	big := strings.Repeat("b", 300_000)
	c.publish("", "nope", big, props{}, "m")
	c.want(fmt.Sprintf("return 312 NO_ROUTE /nope %q", big), "ack 3")
	c.publish("", "nope", "x", props{}, "") // op-rabbit#83, amqplib#492
	c.want("ack 4")
}

// A message that is returned is confirmed right behind that, alone: clients wait for a
// confirm of each (the tests of php-amqp do).
func TestReturnsInOneWriteAreConfirmedOneByOne(t *testing.T) {
	c := connect(t)
	c.ok(c.call(confirmSelect, u8(0)))
	c.send(slices.Concat(
		c.message("", "nope", "1", props{}, ""), c.message("", "nope", "2", props{}, "m"),
		c.message("", "nope", "3", props{}, "m"), c.message("", "nope", "4", props{}, "")))
	c.want("ack 1", `return 312 NO_ROUTE /nope "2"`, "ack 2", `return 312 NO_ROUTE /nope "3"`, "ack 3", "ack 4")
}

// Without confirms a return comes all the same, and alone.
func TestReturnWithoutConfirms(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	c.publish("", "q", "1", props{}, "m")
	c.publish("", "nope", "2", props{}, "m")
	c.publish("", "nope", "3", props{}, "")
	c.is(c.sync(), "ok")
	c.want(`return 312 NO_ROUTE /nope "2"`)
	c.wantNothing()
}

// All confirms come, each number once, in whatever grouping.
func TestEachNumberIsConfirmedOnce(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "d", nil))
	c.ok(c.declare("full", "x", table{"x-max-length", 1, "x-overflow", "reject-publish"}))
	c.puts("full", "0")
	const n = 300
	verdicts := make(map[int]string)
	for i := range n {
		queue, want := "q", "ack"
		if i%7 == 0 {
			queue, want = "full", "nack"
		}
		c.publish("", queue, "m", props{mode: i%2 + 1}, "")
		verdicts[i+2] = want // 1 was the one before
	}
	for len(verdicts) > 0 {
		text := c.next()
		var verb, rest string
		var tag int
		if k, _ := fmt.Sscan(text, &verb, &tag, &rest); k < 2 {
			t.Fatalf("got %s with %d unconfirmed", text, len(verdicts))
		}
		for k, want := range verdicts {
			if k != tag && (rest != "multiple" || k > tag) {
				continue
			}
			if want != verb {
				t.Fatalf("%s covers %d, want %s", text, k, want)
			}
			delete(verdicts, k)
		}
	}
	c.wantNothing()
}

// One full queue of several: refused, yet kept by the other (lavinmq#1958).
func TestPartlyFullFanOut(t *testing.T) {
	c := connect(t)
	c.ok(c.exchange("x", "fanout", "", nil))
	c.ok(c.declare("free", "x", nil))
	c.ok(c.declare("full", "x", table{"x-max-length", 1, "x-overflow", "reject-publish"}))
	c.ok(c.bind("free", "x", "", nil))
	c.ok(c.bind("full", "x", "", nil))
	c.is(c.put("x", "k", "1", props{}, "m"), "ack")
	c.is(c.put("x", "k", "2", props{}, "m"), "nack") // routed, so not returned
	c.is(c.bodies("free"), "1 2")
	c.is(c.bodies("full"), "1")
}

// Modes exclude each other (lavinmq 1.0).
func TestTransactionAndConfirmModes(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(c *channel) string
		want string
	}{
		{"commit", func(c *channel) string { return c.call(txCommit) }, "channel 406 PRECONDITION_FAILED - channel is not transactional (90,20)"},
		{"rollback", func(c *channel) string { return c.call(txRollback) }, "channel 406 PRECONDITION_FAILED - channel is not transactional (90,30)"},
		{"confirm then tx", func(c *channel) string { c.ok(c.call(confirmSelect, u8(0))); return c.call(txSelect) },
			"channel 406 PRECONDITION_FAILED - cannot switch from confirm to tx mode (90,10)"},
		{"tx then confirm", func(c *channel) string { c.ok(c.call(txSelect)); return c.call(confirmSelect, u8(0)) },
			"channel 406 PRECONDITION_FAILED - cannot switch from tx to confirm mode (85,10)"},
		{"tx then confirm, no-wait", func(c *channel) string {
			c.ok(c.call(txSelect))
			c.tell(confirmSelect, u8(1))
			return c.next()
		}, "channel 406 PRECONDITION_FAILED - cannot switch from tx to confirm mode (85,10)"},
		{"tx twice", func(c *channel) string { c.ok(c.call(txSelect)); return c.call(txSelect) }, "ok"},
		{"commit of nothing", func(c *channel) string { c.ok(c.call(txSelect)); return c.call(txCommit) }, "ok"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := connect(t)
			c.is(tt.do(c), tt.want)
		})
	}
}

// What is not committed is not there; rollback undoes acks.
func TestTransactionEffects(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "", nil))
	c.puts("q", "0")
	tx := c.on(2)
	tx.ok(tx.call(txSelect))
	tx.publish("", "q", "1", props{}, "")
	tx.publish("", "nope", "2", props{}, "m")
	tx.is(tx.sync(), "ok")
	c.is(c.depth("q"), "1 0")
	tx.wantNothing() // the return waits too
	tx.is(tx.get("q"), `#1 /q "0" left 0`)
	tx.ack(1, "")
	tx.is(tx.call(txRollback), "ok")
	tx.is(tx.call(txCommit), "ok")
	c.is(c.depth("q"), "0 0")
	tx.ack(1, "") // is outstanding again
	tx.is(tx.sync(), "ok")
	tx.publish("", "q", "3", props{mode: 2}, "")
	tx.publish("", "nope", "4", props{}, "m")
	tx.is(tx.call(txCommit), "ok")
	tx.want(`return 312 NO_ROUTE /nope "4"`)
	c.is(c.bodies("q"), "3")
	// An ack counts at once for the next one, and in effect at commit.
	c.puts("q", "5")
	tx.is(tx.get("q"), `#2 /q "5" left 0`)
	tx.ack(2, "")
	tx.ack(2, "")
	tx.is(tx.next(), "channel 406 PRECONDITION_FAILED - unknown delivery tag 2 (60,80)")
	c.eventually("1 0", func() string { return c.depth("q") }) // rolled back
}

func TestTransactionNackAtCommit(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("dead", "x", nil))
	c.ok(c.declare("q", "x", table{"x-dead-letter-exchange", "", "x-dead-letter-routing-key", c.name("dead")}))
	c.puts("q", "1", "2", "3")
	tx := c.on(2)
	tx.ok(tx.call(txSelect))
	for range 3 {
		tx.get("q")
	}
	tx.nack(1, "r")
	tx.reject(2, "")
	tx.ack(3, "")
	tx.is(tx.sync(), "ok")
	c.is(c.depth("q")+"/"+c.depth("dead"), "0 0/0 0")
	tx.is(tx.call(txCommit), "ok")
	c.eventually("1 0/1 0", func() string { return c.depth("q") + "/" + c.depth("dead") })
	tx.is(tx.close(), "ok")
	c.is(c.bodies("q")+"/"+c.bodies("dead"), "1/2")
}

// Checks of a publish are made at once, in a transaction too; a refusal by a
// queue shows at commit.
func TestTransactionErrors(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("full", "x", table{"x-max-length", 0, "x-overflow", "reject-publish"}))
	c.ok(c.call(txSelect))
	c.publish("nope", "k", "m", props{}, "")
	c.is(c.next(), "channel 404 NOT_FOUND - no exchange 'nope' in vhost '/' (60,40)")
	c.ok(c.call(txSelect))
	c.publish("", "full", "m", props{}, "")
	c.is(c.call(txCommit), "channel 406 PRECONDITION_FAILED - partial tx completion (90,20)")
}

// A queue that is deleted before the commit is a refusal, also if there is another
// one of its name; what reached other queues stays.
func TestCommitToADeletedQueue(t *testing.T) {
	for _, again := range []bool{false, true} {
		c := connect(t)
		d := c.on(2)
		c.ok(c.declare("q", "", nil))
		c.ok(c.declare("other", "x", nil))
		c.ok(c.exchange("x", "fanout", "", nil))
		c.ok(c.bind("q", "x", "", nil))
		c.ok(c.bind("other", "x", "", nil))
		d.ok(d.call(txSelect))
		d.publish("x", "", "m", props{}, "")
		d.is(d.sync(), "ok")
		c.ok(c.remove("q", ""))
		if again {
			c.ok(c.declare("q", "x", nil))
		}
		d.is(d.call(txCommit), "channel 406 PRECONDITION_FAILED - partial tx completion (90,20)")
		c.is(c.bodies("other"), "m")
		if again {
			c.is(c.depth("q"), "0 0")
		}
	}
}

// commit-ok comes before the deliveries that the transaction's acks make room for.
func TestCommitOkPrecedesDeliveries(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	c.puts("q", "0", "1")
	d := c.on(2)
	d.ok(d.call(txSelect))
	d.ok(d.qos(1, false))
	d.ok(d.consume("q", "t", "", nil))
	d.want(`deliver t #1 /q "0"`)
	d.ack(1, "")
	d.is(d.call(txCommit), "ok")
	if len(d.inbox) > 0 {
		t.Errorf("%s came before commit-ok", d.text(d.inbox[0]))
	}
	d.want(`deliver t #2 /q "1"`)
}

// What follows an error of the channel is dropped; what preceded it counts.
func TestPublishesAroundAnError(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	d := c.on(2)
	d.ok(d.call(confirmSelect, u8(0)))
	d.publish("", "q", "1", props{}, "")
	d.publish("nope", "k", "2", props{}, "")
	d.publish("", "q", "3", props{}, "")
	got := d.next()
	if got == "ack 1" {
		got = d.next()
	}
	d.is(got, "channel 404 NOT_FOUND - no exchange 'nope' in vhost '/' (60,40)")
	c.is(c.sync(), "ok")
	c.is(c.bodies("q"), "1")
	d.is(d.put("", "q", "4", props{}, ""), "ack") // numbers start again
}

// Properties the broker acts on (Foundatio#56, lavinmq#969).
func TestRefusedProperties(t *testing.T) {
	expiration := func(value, why string) string {
		return fmt.Sprintf("channel 406 PRECONDITION_FAILED - invalid expiration '%s': %s (60,40)", value, why)
	}
	for _, tt := range []struct {
		name string
		p    props
		want string
	}{
		{"abc", props{expiration: "abc"}, expiration("abc", "no_integer")},
		{"empty", props{expiration: ""}, expiration("", "no_integer")},
		{"-1", props{expiration: "-1"}, expiration("-1", "{value_negative,-1}")},
		{"1.5", props{expiration: "1.5"}, expiration("1.5", `{leftover_string,".5"}`)},
		{"1,5", props{expiration: "1,5"}, expiration("1,5", `{leftover_string,",5"}`)},
		{"blank first", props{expiration: " 5"}, expiration(" 5", "no_integer")},
		{"blank last", props{expiration: "5 "}, expiration("5 ", `{leftover_string," "}`)},
		{"0x10", props{expiration: "0x10"}, expiration("0x10", `{leftover_string,"x10"}`)},
		{"too large", props{expiration: "315360000001"}, expiration("315360000001", "{value_too_large,315360000001}")},
		{"plus", props{expiration: "+50000"}, "ack"},
		{"leading zeros", props{expiration: "000050000"}, "ack"},
		{"-0", props{expiration: "-0"}, "ack"},
		{"ten years", props{expiration: "315360000000"}, "ack"},
		{"somebody else", props{user: "bob"}, "channel 406 PRECONDITION_FAILED - user_id property set to 'bob' but authenticated user was 'guest' (60,40)"},
		{"nobody", props{user: ""}, "channel 406 PRECONDITION_FAILED - user_id property set to '' but authenticated user was 'guest' (60,40)"},
		{"oneself", props{user: "guest"}, "ack"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := connect(t)
			c.ok(c.declare("q", "x", nil))
			c.is(c.put("", "q", "m", tt.p, ""), tt.want)
		})
	}
}

// An expiration of 0 needs somebody who waits.
func TestExpirationZero(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	c.is(c.put("", "q", "1", props{expiration: "0"}, ""), "ack")
	c.is(c.get("q"), "empty")
	c.ok(c.consume("q", "t", "a", nil))
	c.is(c.put("", "q", "2", props{expiration: "0"}, ""), "ack")
	c.want(`deliver t #1 /q "2"`)
}

// The size of a message is limited (rabbitmq-server#11455,
// rabbitmq-website#2537).
func TestMessageSizeLimit(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	const limit = 16 << 20
	c.is(c.put("", "q", strings.Repeat("b", limit), props{headers: table{"not", "counted"}}, ""), "ack")
	c.is(c.depth("q"), "1 0")
	c.is(c.put("", "q", strings.Repeat("b", limit+1), props{}, ""),
		"channel 406 PRECONDITION_FAILED - message size 16777217 is larger than configured max size 16777216 (60,40)")
	c.is(c.put("", "nope", strings.Repeat("b", limit+1), props{}, "m"),
		"channel 406 PRECONDITION_FAILED - message size 16777217 is larger than configured max size 16777216 (60,40)")
	c.is(c.depth("q"), "1 0")
	c.take("q")
	if len(c.last.body) != limit {
		t.Errorf("%d bytes came back, want %d", len(c.last.body), limit)
	}
}

// A client that dies in the middle of a message leaves nothing (lavinmq 1.1).
func TestClientDiesInTheMiddleOfABody(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "d", nil))
	for _, cut := range []int{1, 10, 30, 46, 50} {
		d := c.again(login{})
		d.ready()
		m := d.message("", "q", "0123456789", props{mode: 2}, "")
		d.send(m[:len(m)-cut])
		_ = d.sock.Close()
		d.ended = "closed"
	}
	c.is(c.put("", "q", "whole", props{}, ""), "ack")
	c.is(c.depth("q"), "1 0")
}
