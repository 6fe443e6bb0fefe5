package cases_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// basic.cancel goes to clients that know it, when a queue is deleted
// (amqprs#112, EasyNetQ#1295).
func TestDeletedQueueCancelsItsConsumers(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "", nil))
	c.ok(c.consume("q", "one", "", nil))
	c.ok(c.on(2).consume("q", "two", "", nil))
	other := c.again(login{})
	other.is(other.remove("q", ""), "ok 0")
	c.want("cancel one")
	c.on(2).want("cancel two")
	c.is(c.cancel("one"), "ok one") // the tag is free
	c.ok(c.declare("q", "", nil))
	c.is(c.consume("q", "one", "", nil), "ok one")
}

func TestNoCancelForClientsThatDoNotKnowIt(t *testing.T) {
	c := connectAs(t, login{capabilities: table{"consumer_cancel_notify", false}})
	c.ok(c.declare("q", "", nil))
	c.ok(c.consume("q", "one", "", nil))
	c.ok(c.on(2).remove("q", ""))
	c.wantNothing()
	c.is(c.sync(), "ok")
}

// What the deleted queue had given out may be settled still.
func TestAckAfterTheQueueIsGone(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "", nil))
	c.puts("q", "1", "2", "3")
	c.ok(c.consume("q", "t", "", nil))
	c.want(`deliver t #1 /q "1"`, `deliver t #2 /q "2"`, `deliver t #3 /q "3"`)
	c.ok(c.on(2).remove("q", ""))
	c.want("cancel t")
	c.ack(1, "")
	c.nack(2, "r")
	c.reject(3, "")
	c.is(c.sync(), "ok")
}

// Tags that are not outstanding (amqplib#271, node-amqp-connection-manager#58,
// kombu#19, seneca-amqp-transport#50).
func TestUnknownDeliveryTags(t *testing.T) {
	unknown := func(tag int, ids string) string {
		return fmt.Sprintf("channel 406 PRECONDITION_FAILED - unknown delivery tag %d %s", tag, ids)
	}
	for _, tt := range []struct {
		name string
		do   func(c *channel)
		want string
	}{
		{"ack 99", func(c *channel) { c.ack(99, "") }, unknown(99, "(60,80)")},
		{"ack multiple 99", func(c *channel) { c.ack(99, "m") }, unknown(99, "(60,80)")},
		{"ack twice", func(c *channel) { c.ack(1, ""); c.ack(1, "") }, unknown(1, "(60,80)")},
		{"nack twice", func(c *channel) { c.ack(1, ""); c.nack(1, "r") }, unknown(1, "(60,120)")},
		{"reject twice", func(c *channel) { c.ack(2, ""); c.reject(2, "") }, unknown(2, "(60,90)")},
		{"tag 0", func(c *channel) { c.ack(0, "") }, unknown(0, "(60,80)")},
		{"reject tag 0", func(c *channel) { c.reject(0, "r") }, unknown(0, "(60,90)")},
		{"nack tag 0", func(c *channel) { c.nack(0, "r") }, unknown(0, "(60,120)")},
		{"multiple up to a settled one", func(c *channel) { c.ack(2, ""); c.ack(2, "m") }, unknown(2, "(60,80)")},
		{"all", func(c *channel) { c.ack(0, "m") }, "ok"},
		{"all twice", func(c *channel) { c.ack(0, "m"); c.ack(0, "m"); c.nack(0, "mr") }, "ok"},
		{"out of order", func(c *channel) { c.ack(3, ""); c.ack(1, ""); c.ack(2, "") }, "ok"},
		{"multiple after a single", func(c *channel) { c.ack(1, ""); c.ack(2, "m"); c.ack(3, "m") }, "ok"},
		{"on another channel", func(c *channel) { c.on(2).ack(1, ""); c.is(c.on(2).next(), unknown(1, "(60,80)")) }, "ok"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := connect(t)
			c.ok(c.declare("q", "x", nil))
			c.puts("q", "1", "2", "3")
			for range 3 {
				c.get("q")
			}
			tt.do(c)
			c.is(c.sync(), tt.want)
		})
	}
}

func TestSettleAllWithNothingOutstanding(t *testing.T) {
	c := connect(t)
	c.ack(0, "m")
	c.nack(0, "mr")
	c.nack(0, "m")
	c.is(c.sync(), "ok")
	c.is(c.call(basicRecover, u8(1)), "ok")
}

// A no-ack delivery is settled (pika#530, streadway/amqp#233).
func TestSettlingAnAutoAckedDelivery(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	c.puts("q", "1", "2")
	c.is(c.take("q"), `#1 /q "1" left 1`)
	c.reject(1, "")
	c.is(c.next(), "channel 406 PRECONDITION_FAILED - unknown delivery tag 1 (60,90)")
	c.ok(c.consume("q", "t", "a", nil))
	c.want(`deliver t #1 /q "2"`)
	c.nack(1, "r")
	c.is(c.next(), "channel 406 PRECONDITION_FAILED - unknown delivery tag 1 (60,120)")
	c.is(c.depth("q"), "0 0")
}

// One sequence of tags per channel, for gets and deliveries of all kinds.
func TestDeliveryTagsAreOneSequence(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	c.ok(c.declare("r", "x", nil))
	c.puts("q", "1", "2")
	c.puts("r", "3", "4")
	c.is(c.take("q"), `#1 /q "1" left 1`)
	c.is(c.get("q"), `#2 /q "2" left 0`)
	c.ok(c.consume("r", "t", "a", nil))
	c.want(`deliver t #3 /r "3"`, `deliver t #4 /r "4"`)
	c.is(c.get("q"), "empty")
	c.is(c.cancel("t"), "ok t")
	c.puts("q", "5")
	c.is(c.get("q"), `#5 /q "5" left 0`)
}

// The second consumer takes over, with all the first one held
// (rabbitmq-server#5460, amqp091-go#106).
func TestSingleActiveConsumerFailsOver(t *testing.T) {
	a := connect(t)
	a.ok(a.declare("q", "", table{"x-single-active-consumer", true}))
	a.ok(a.qos(2, false))
	b := a.again(login{})
	a.ok(a.consume("q", "a", "", nil))
	b.ok(b.consume("q", "b", "", nil))
	a.on(2).puts("q", "0", "1", "2", "3", "4")
	a.want(`deliver a #1 /q "0"`, `deliver a #2 /q "1"`)
	b.wantNothing()
	_ = a.sock.Close() // killed
	a.ended = "closed"
	got := map[string]bool{}
	for range 5 {
		text := b.next()
		got[text[strings.Index(text, "/q"):]] = strings.Contains(text, "redelivered")
	}
	for i, again := range []bool{true, true, false, false, false} {
		if redelivered, ok := got[fmt.Sprintf("/q %q", fmt.Sprint(i))]; !ok || redelivered != again {
			t.Errorf("message %d: delivered %v redelivered %v, want redelivered %v", i, ok, redelivered, again)
		}
	}
}

// Cancelling the active one hands over; what it holds stays with it.
func TestSingleActiveConsumerCancel(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "", table{"x-single-active-consumer", true}))
	b := c.on(2)
	c.ok(c.qos(2, false))
	c.ok(c.consume("q", "a", "", nil))
	b.ok(b.consume("q", "b", "", nil))
	c.on(3).puts("q", "0", "1", "2", "3")
	c.want(`deliver a #1 /q "0"`, `deliver a #2 /q "1"`)
	b.wantNothing()
	c.is(c.on(3).get("q"), `#1 /q "2" left 1`) // basic.get is not a consumer
	c.on(3).nack(1, "r")
	c.ok(c.cancel("a"))
	b.want(`deliver b #1 redelivered /q "2"`, `deliver b #2 /q "3"`)
	b.wantNothing()
	c.ok(c.close())
	b.want(`deliver b #3 redelivered /q "0"`, `deliver b #4 redelivered /q "1"`)
	b.is(c.on(4).consume("q", "x", "x", nil), "channel 403 ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use (60,20)")
}

// On a classic queue the active one stays, whatever the priority of others;
// and somebody is always active (rabbitmq-server#14141).
func TestSingleActiveConsumerIgnoresPriority(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "", table{"x-single-active-consumer", true}))
	c.ok(c.consume("q", "lo", "a", table{"x-priority", 1}))
	c.ok(c.on(2).consume("q", "hi", "a", table{"x-priority", 10}))
	c.ok(c.on(3).consume("q", "third", "a", nil))
	p := c.on(9)
	p.puts("q", "1")
	c.want(`deliver lo #1 /q "1"`)
	c.ok(c.on(2).cancel("hi")) // an idle one goes
	p.puts("q", "2")
	c.want(`deliver lo #2 /q "2"`)
	c.ok(c.cancel("lo"))
	p.puts("q", "3")
	c.on(3).want(`deliver third #1 /q "3"`)
	c.ok(c.on(2).consume("q", "again", "a", nil))
	c.ok(c.on(3).close())
	p.puts("q", "4")
	c.on(2).want(`deliver again #1 /q "4"`)
}

// consume-ok comes before what the queue holds (ballerina-message-broker#381).
func TestConsumeOkComesFirst(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	c.puts("q", "0", "1", "2", "3", "4")
	c.tell(basicConsume, u16(0), short(c.name("q")), short("t"), u8(0), table{}.encode())
	it, _ := c.read(patience)
	c.is(c.text(it), "ok t")
	c.want(`deliver t #1 /q "0"`, `deliver t #2 /q "1"`, `deliver t #3 /q "2"`, `deliver t #4 /q "3"`, `deliver t #5 /q "4"`)
}

// Nothing is delivered after cancel-ok, under load, with acks pending
// (ruby-amqp/amqp#198, bunny#547, amqplib#641, rabbitmq-server#3729).
func TestNothingAfterCancelOk(t *testing.T) {
	for _, flags := range []string{"a", ""} {
		t.Run("flags "+flags, func(t *testing.T) {
			c := connect(t)
			c.ok(c.declare("q", "", nil))
			c.cancelsUnderLoad("q", flags, nil)
		})
	}
}

// cancelsUnderLoad starts and cancels consumers of a queue that another
// connection publishes to meanwhile: more than is read until the cancel, and not
// so much that a slow machine drowns in it.
func (ch *channel) cancelsUnderLoad(queue, flags string, args table) {
	ch.Helper()
	rounds, done := make(chan struct{}, 10), make(chan struct{})
	p := ch.again(login{})
	p.ready()
	go func() {
		defer close(done)
		m := p.message("", queue, "m", props{}, "")
		for range rounds {
			for range 4000 {
				p.send(m)
			}
		}
	}()
	defer func() {
		close(rounds)
		<-done
	}()
	for i := range 10 {
		rounds <- struct{}{}
		tag := fmt.Sprint("t", i)
		ch.ok(ch.consume(queue, tag, flags, args))
		for range 5 {
			ch.next()
		}
		ch.ok(ch.cancel(tag))
		ch.inbox = nil // came before
		if flags == "" {
			ch.ack(0, "m")
		}
		if got := ch.nextWithin(20 * time.Millisecond); got != "nothing" {
			ch.Fatalf("after cancel-ok: %s", got)
		}
	}
}

// Consumers take turns; a stuck one does not hold up others (lavinmq#2188,
// lavinmq#1173).
func TestConsumersTakeTurns(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	c.ok(c.on(2).consume("q", "a", "a", nil))
	c.ok(c.on(3).consume("q", "b", "a", nil))
	for i := range 100 {
		c.puts("q", fmt.Sprint(i))
	}
	for i := range 50 {
		c.on(2).want(fmt.Sprintf("deliver a #%d /q \"%d\"", i+1, 2*i))
		c.on(3).want(fmt.Sprintf("deliver b #%d /q \"%d\"", i+1, 2*i+1))
	}
}

func TestStuckConsumerHoldsUpNobody(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	c.ok(c.on(2).qos(1, false))
	c.ok(c.on(2).consume("q", "stuck", "", nil))
	c.ok(c.on(3).qos(1, false))
	c.ok(c.on(3).consume("q", "works", "", nil))
	c.puts("q", "0")
	c.on(2).want(`deliver stuck #1 /q "0"`)
	for i := range 20 {
		c.puts("q", fmt.Sprint(i+1))
		c.on(3).want(fmt.Sprintf("deliver works #%d /q \"%d\"", i+1, i+1))
		c.on(3).ack(uint64(i+1), "")
	}
	c.on(2).wantNothing()
}

// Higher consumers first, lower ones when those are full.
func TestConsumerPriorities(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	for n, p := range map[uint16]any{2: -5, 3: nil, 4: int64(7)} {
		args := table{}
		if p != nil {
			args = table{"x-priority", p}
		}
		c.ok(c.on(n).qos(1, false))
		c.ok(c.on(n).consume("q", fmt.Sprint("t", n), "", args))
	}
	c.puts("q", "1", "2", "3", "4")
	c.on(4).want(`deliver t4 #1 /q "1"`)
	c.on(3).want(`deliver t3 #1 /q "2"`)
	c.on(2).want(`deliver t2 #1 /q "3"`)
	c.on(3).ack(1, "")
	c.on(3).want(`deliver t3 #2 /q "4"`)
	c.is(c.on(5).consume("q", "t", "", table{"x-priority", "1"}), `channel 406 PRECONDITION_FAILED - invalid arg 'x-priority' for queue 'q' in vhost '/': "expected integer, got longstr" (60,20)`)
	c.is(c.on(5).consume("q", "t", "", table{"x-stream-offset", 1}), `channel 406 PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue 'q' in vhost '/' of queue type rabbit_classic_queue (60,20)`)
	c.is(c.on(5).consume("q", "t", "", table{"x-cancel-on-ha-failover", true, "whatever", nil}), "ok t")
}

// Strict priority, first come first served within one; capped at the queue's
// (bunny#396, rabbitmq-server#249).
func TestMessagePriorities(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", table{"x-max-priority", 5}))
	for _, m := range []struct {
		body     string
		priority any
	}{{"n", nil}, {"p1", 1}, {"p9", 9}, {"p5", 5}, {"p1b", 1}, {"p200", 200}, {"z0", 0}} {
		c.is(c.put("", "q", m.body, props{priority: m.priority}, ""), "ack")
	}
	c.is(c.get("q"), `#1 /q "p9" left 6`)
	c.is(c.get("q"), `#2 /q "p5" left 5`)
	c.nack(1, "r")
	c.is(c.get("q"), `#3 redelivered /q "p9" left 5`)
	c.nack(3, "mr")
	c.is(c.bodies("q"), "p9 p5 p200 p1 p1b n z0")
}

// A highest priority of 0 is two priorities, as 1 is (RabbitMQ 4.0).
func TestMaxPriorityZero(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", table{"x-max-priority", 0}))
	for i, p := range []int{0, 1, 5, 0, 3} {
		c.is(c.put("", "q", fmt.Sprint(i), props{priority: p}, ""), "ack")
	}
	c.is(c.bodies("q"), "1 2 4 0 3")
}

// The answer to basic.qos comes before the deliveries that there is room for now.
func TestQosOkPrecedesDeliveries(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	c.puts("q", "0", "1", "2")
	c.ok(c.qos(1, true))
	c.ok(c.consume("q", "t", "", nil))
	c.want(`deliver t #1 /q "0"`)
	c.ok(c.qos(2, true))
	if len(c.inbox) > 0 {
		t.Errorf("%s came before qos-ok", c.text(c.inbox[0]))
	}
	c.want(`deliver t #2 /q "1"`)
}

// Requeued messages go back where they were.
func TestRequeuedMessagesKeepTheirPlace(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	c.puts("q", "0", "1", "2", "3", "4")
	for range 4 {
		c.get("q")
	}
	c.nack(3, "r")
	c.reject(1, "r")
	c.ack(2, "")
	c.is(c.call(basicRecover, u8(1)), "ok")
	c.is(c.take("q"), `#5 redelivered /q "0" left 3`)
	c.is(c.take("q"), `#6 redelivered /q "2" left 2`)
	c.is(c.take("q"), `#7 redelivered /q "3" left 1`)
	c.is(c.take("q"), `#8 /q "4" left 0`)
	c.ack(0, "m")
	c.is(c.sync(), "ok")
}

// Channel-wide and consumer limits (kombu#2469, py-amqp#302, celery#6067).
func TestQosScopes(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	c.ok(c.qos(1, false))
	c.ok(c.consume("q", "one", "", nil))
	c.ok(c.qos(2, false)) // for later ones
	c.ok(c.consume("q", "two", "", nil))
	p := c.on(2)
	p.puts("q", "1", "2", "3", "4", "5", "6")
	c.want(`deliver one #1 /q "1"`, `deliver two #2 /q "2"`, `deliver two #3 /q "3"`)
	c.wantNothing()
	c.ok(c.qos(4, true)) // for all, on top
	c.ack(1, "")
	c.want(`deliver one #4 /q "4"`)
	c.ok(c.consume("q", "three", "", nil))
	c.want(`deliver three #5 /q "5"`)
	c.wantNothing()
	c.ack(5, "m")
	c.want(`deliver...`)
}

func TestQosGlobalCountsGets(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	c.puts("q", "1", "2", "3", "4")
	c.get("q")
	c.ok(c.qos(2, true))
	c.ok(c.consume("q", "t", "", nil))
	c.want(`deliver t #2 /q "2"`)
	c.wantNothing()
	c.is(c.get("q"), `#3 /q "3" left 1`) // is never limited
	c.ack(2, "m")
	c.want(`deliver t #4 /q "4"`)
}

func TestQosGlobalDoesNotCountLaterGets(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	c.puts("q", "1", "2", "3", "4", "5")
	c.ok(c.qos(1, true))
	c.ok(c.consume("q", "t", "", nil))
	c.want(`deliver t #1 /q "1"`)
	c.is(c.get("q"), `#2 /q "2" left 3`)
	c.ack(1, "")
	c.want(`deliver t #3 /q "3"`)
	c.ack(2, "") // makes no room
	c.wantNothing()
	c.ack(3, "")
	c.want(`deliver t #4 /q "4"`)
	c.wantNothing()
}

// Who does not acknowledge takes no place in a channel's limit, but gets nothing
// while there is none.
func TestQosGlobalHoldsBackNoAck(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	c.ok(c.declare("r", "x", nil))
	c.ok(c.qos(1, true))
	c.ok(c.consume("q", "t", "", nil))
	c.ok(c.consume("r", "u", "a", nil))
	p := c.on(2)
	p.puts("q", "1")
	c.want(`deliver t #1 /q "1"`)
	p.puts("r", "2")
	c.wantNothing()
	c.ack(1, "")
	c.want(`deliver u #2 /r "2"`)
	p.puts("r", "3", "4")
	c.want(`deliver u #3 /r "3"`, `deliver u #4 /r "4"`)
}

func TestQosGlobalIsSharedInTurn(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	c.ok(c.qos(1, true))
	c.ok(c.consume("q", "t", "", nil))
	c.ok(c.consume("q", "u", "", nil))
	c.on(2).puts("q", "1", "2", "3", "4", "5", "6")
	c.want(`deliver t #1 /q "1"`)
	for i, tag := range []string{"u", "t", "u", "t", "u"} {
		c.ack(uint64(i+1), "")
		c.want(fmt.Sprintf(`deliver %s #%d /q "%d"`, tag, i+2, i+2))
	}
}

func TestQosGlobalZeroLiftsTheLimit(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	c.puts("q", "1", "2", "3")
	c.ok(c.qos(1, true))
	c.ok(c.consume("q", "t", "", nil))
	c.want(`deliver t #1 /q "1"`)
	c.wantNothing()
	c.ok(c.qos(0, true))
	c.want(`deliver t #2 /q "2"`, `deliver t #3 /q "3"`)
}

func TestQosDoesNotLimitNoAck(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	c.puts("q", "1", "2", "3")
	c.ok(c.qos(1, false))
	c.ok(c.qos(1, true))
	c.ok(c.consume("q", "t", "a", nil))
	c.want(`deliver t #1 /q "1"`, `deliver t #2 /q "2"`, `deliver t #3 /q "3"`)
}

// Exclusive consumers, and tags.
func TestExclusiveConsumersAndTags(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	use := "channel 403 ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use (60,20)"
	c.ok(c.consume("q", "one", "x", nil))
	c.is(c.on(2).consume("q", "two", "", nil), use)
	c.is(c.on(2).consume("q", "two", "x", nil), use)
	c.puts("q", "1")
	c.want(`deliver one #1 /q "1"`)
	c.is(c.on(2).get("q"), "empty") // allowed
	c.ok(c.cancel("one"))
	c.is(c.on(2).consume("q", "two", "", nil), "ok two")
	c.is(c.consume("q", "one", "x", nil), use)
	c.is(c.on(3).consume("q", "two", "l", nil), "ok two") // same tag, other channel
	c.is(c.on(3).cancel("unknown"), "ok unknown")
	c.is(c.on(3).consume("nope", "two", "", nil), "connection 530 NOT_ALLOWED - attempt to reuse consumer tag 'two' (60,20)")
}

// What a consumer leaves behind goes to the others in its order, though it was
// their turn and its own when it left.
func TestUnackedOfALeaverKeepTheirOrder(t *testing.T) {
	for _, args := range []table{{"x-queue-type", "classic"}, {"x-queue-type", "quorum"}} {
		for name, leave := range map[string]func(c *channel){
			"channel closed":   func(c *channel) { c.ok(c.close()) },
			"connection ended": func(c *channel) { c.hangUp() },
		} {
			t.Run(args[1].(string)+", "+name, func(t *testing.T) {
				c := connect(t)
				c.ok(c.declare("q", "d", args))
				c.puts("q", "0", "1", "2", "3", "4", "5")
				leaver := c.again(login{})
				leaver.ok(leaver.consume("q", "l", "", nil))
				for i := range 6 {
					leaver.want(fmt.Sprintf(`deliver l #%d /q "%d"`, i+1, i))
				}
				c.ok(c.consume("q", "c", "", nil))
				leave(leaver)
				for i := range 6 {
					c.want(fmt.Sprintf(`deliver c #%d redelivered /q "%d"`, i+1, i))
				}
			})
		}
	}
}

// What a cancelled consumer holds stays outstanding.
func TestCancelKeepsTheUnacked(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	c.puts("q", "1", "2", "3")
	c.ok(c.consume("q", "t", "", nil))
	c.want(`deliver t #1 /q "1"`, `deliver t #2 /q "2"`, `deliver t #3 /q "3"`)
	c.ok(c.cancel("t"))
	c.is(c.depth("q"), "0 0")
	c.ack(2, "")
	c.nack(1, "r")
	c.ok(c.close())
	c.eventually("2 0", func() string { return c.depth("q") })
	c.is(c.bodies("q"), "1 3")
}

// All of a channel's deliveries go back when it fails.
func TestChannelErrorRequeues(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	c.puts("q", "1", "2", "3")
	d := c.on(2)
	d.ok(d.qos(2, false))
	d.ok(d.consume("q", "t", "", nil))
	d.want(`deliver t #1 /q "1"`, `deliver t #2 /q "2"`)
	d.is(d.get("q"), `#3 /q "3" left 0`)
	d.ack(9, "")
	d.want("channel 406 PRECONDITION_FAILED - unknown delivery tag 9 (60,80)")
	c.eventually("3 0", func() string { return c.depth("q") })
	c.is(c.take("q"), `#1 redelivered /q "1" left 2`)
	c.is(c.bodies("q"), "2 3")
}

// Nobody waits for ever for a consumer that does not acknowledge
// (amqpstorm#126, EasyNetQ#1695, bunny#681).
func TestConsumerTimeout(t *testing.T) {
	t.Parallel()
	c := connect(t)
	c.ok(c.declare("q", "", table{"x-consumer-timeout", 1000}))
	c.puts("q", "m")
	c.ok(c.on(3).consume("q", "t", "", nil))
	c.on(3).want(`deliver t #1 /q "m"`)
	c.is(c.on(3).nextWithin(130*time.Second), "channel 406 PRECONDITION_FAILED - delivery acknowledgement on channel 3 timed out. "+
		"Timeout value used: 1000 ms. This timeout value can be configured, see consumers doc guide to learn more (0,0)")
	c.eventually("1 0", func() string { return c.depth("q") })
}

// The address of direct reply-to (amqp-messaging rules of RabbitMQ).
func TestDirectReplyTo(t *testing.T) {
	const address = "amq.rabbitmq.reply-to"
	c := connect(t)
	c.is(c.consume(address, "t", "", nil), "channel 406 PRECONDITION_FAILED - reply consumer cannot acknowledge (60,20)")
	c.is(c.put("", "nobody", "m", props{replyTo: address}, ""), "channel 406 PRECONDITION_FAILED - fast reply consumer does not exist (60,40)")
	c.is(c.declare(address, "", nil), "ok amq.rabbitmq.reply-to 0 1")
	c.is(c.purge(""), "channel 404 NOT_FOUND - no queue 'amq.rabbitmq.reply-to' in vhost '/' (50,30)") // last declared
	c.is(c.declare(address, "", nil), "ok amq.rabbitmq.reply-to 0 1")
	c.is(c.consume("", "t", "a", nil), "ok t")
	c.is(c.consume(address, "u", "a", nil), "channel 406 PRECONDITION_FAILED - reply consumer already set (60,20)")
	c.is(c.consume(address, "t", "a", nil), "ok t")
	c.is(c.consume(address, "t", "a", nil), "channel 406 PRECONDITION_FAILED - reply consumer already set (60,20)")
	c.is(c.consume(address, "t", "a", nil), "ok t")
	c.is(c.consume(address, "t", "", nil), "channel 406 PRECONDITION_FAILED - reply consumer cannot acknowledge (60,20)")
	c.is(c.consume(address, "t", "a", nil), "ok t")
	server := c.again(login{})
	server.ok(server.declare("rpc", "", nil))
	c.publish("", "rpc", "question", props{replyTo: address, correlation: "7"}, "")
	server.eventually(`#1 /rpc "question" left 0`, func() string {
		if got := server.take("rpc"); got != "empty" {
			return "#1" + got[strings.Index(got, " "):]
		}
		return "empty"
	})
	to, _, _ := strings.Cut(strings.TrimPrefix(server.props(), "correlation=7 reply_to="), " ")
	if opaque, ok := strings.CutPrefix(to, address+"."); !ok || !strings.HasSuffix(opaque, "==") || strings.Count(opaque, ".") != 1 {
		t.Fatalf("reply-to is %q, want %s.NODE.KEY==", to, address)
	}
	server.is(server.declare(to, "p", nil), "ok "+to+" 0 1")
	server.is(server.put("", to, "answer", props{correlation: "7"}, "m"), "return 312 NO_ROUTE /"+to+` "answer", ack`)
	c.want("deliver t #1 /" + to + ` "answer"`)
	c.is(c.props(), "correlation=7")
	c.publish("", "nobody", "question", props{replyTo: address, expiration: "+05"}, "m")
	c.want(`return 312 NO_ROUTE /nobody "question"`)
	c.is(c.props(), "reply_to="+to+" expiration=5") // as it would have been delivered
	server.is(server.put("", "rpc", "copy", props{headers: table{"CC", array{to, to}, "BCC", array{to}}}, "m"), "ack")
	c.want(`deliver t #1 /rpc "copy"`)
	c.is(c.props(), "headers={CC:["+fmt.Sprintf("%q %q", to, to)+"]}")
	c.wantNothing()
	server.is(server.take("rpc"), `#2 /rpc "copy" left 0`)
	server.is(server.put("amq.direct", "rpc", "copy", props{headers: table{"CC", array{to}}}, "m"), `return 312 NO_ROUTE amq.direct/rpc "copy", ack`)
	server.is(server.put("amq.direct", to, "answer", props{}, "m"), "return 312 NO_ROUTE amq.direct/"+to+` "answer", ack`)
	server.is(server.get(to), "channel 404 NOT_FOUND - no queue '"+to+"' in vhost '/' (60,70)")
	server.is(server.remove(to, ""), "ok 0")
	c.ok(c.cancel("t"))
	server.is(server.put("", to, "late", props{}, ""), "ack")
	c.wantNothing()
}
