//go:build !foreign

package cases_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// quorumQueue declares a durable quorum queue with more arguments.
func (ch *channel) quorumQueue(name string, more ...any) string {
	ch.Helper()
	return ch.declare(name, "d", append(table{"x-queue-type", "quorum"}, more...))
}

// Deliveries of a quorum queue are counted from the second one on, and the one
// after the limit is a dead letter at once (lavinmq#975, lavinmq#976).
func TestDeliveryCountAndLimit(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("dead", "d", nil))
	c.ok(c.quorumQueue("q", "x-delivery-limit", 2, "x-dead-letter-exchange", "", "x-dead-letter-routing-key", c.name("dead")))
	c.is(c.put("", "q", "m", props{mode: 2}, ""), "ack")
	for i, want := range []string{"mode=2", "headers={x-acquired-count:l1 x-delivery-count:l1} mode=2", "headers={x-acquired-count:l2 x-delivery-count:l2} mode=2"} {
		again := ""
		if i > 0 {
			again = " redelivered"
		}
		c.is(c.get("q"), fmt.Sprintf(`#%d%s /q "m" left 0`, i+1, again))
		c.is(c.props(), want)
		c.nack(uint64(i+1), "r")
		c.is(c.sync(), "ok")
	}
	c.eventually("1 0", func() string { return c.depth("dead") })
	c.is(c.depth("q"), "0 0")
	c.is(c.get("dead"), `#4 /dead "m" left 0`)
	if got := c.props(); !strings.Contains(got, `reason:"delivery_limit"`) || !strings.Contains(got, `x-first-death-reason:"delivery_limit"`) ||
		strings.Contains(got, "x-delivery-count") {
		t.Errorf("properties of the dead letter: %s, want delivery_limit and no x-delivery-count", got)
	}
}

// The limit is 20 where nothing is said, and -1 is none (rabbitmq-server#1805).
func TestDeliveryLimitDefault(t *testing.T) {
	for _, tt := range []struct {
		name       string
		args       table
		deliveries int // of at most 30
	}{
		{"default", nil, 21},
		{"unlimited", table{"x-delivery-limit", -1}, 30},
		{"zero", table{"x-delivery-limit", 0}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := connect(t)
			c.ok(c.quorumQueue("q", tt.args...))
			c.is(c.put("", "q", "m", props{}, ""), "ack")
			n := 0
			for n < 30 && c.get("q") != "empty" {
				n++
				c.nack(uint64(n), "r")
				c.is(c.sync(), "ok")
			}
			if n != tt.deliveries {
				t.Errorf("%d deliveries, want %d", n, tt.deliveries)
			}
		})
	}
}

// What quorum queues do not have is refused by name (infrahub#1632,
// lavinmq#2198).
func TestQuorumDeclareRules(t *testing.T) {
	c := connect(t)
	property := func(p string) string {
		return "channel 406 PRECONDITION_FAILED - invalid property '" + p + "' for queue 'q' in vhost '/' (50,10)"
	}
	argument := func(a string) string {
		return "channel 406 PRECONDITION_FAILED - invalid arg '" + a + "' for queue 'q' in vhost '/' of queue type rabbit_quorum_queue (50,10)"
	}
	for _, tt := range []struct {
		flags string
		arg   string
		value any
		want  string
	}{
		{"", "", nil, property("non-durable")},
		{"dx", "", nil, property("exclusive-owner")},
		{"da", "", nil, property("auto-delete")},
		{"d", "x-max-priority", 5, argument("x-max-priority")},
		{"d", "x-queue-mode", "lazy", argument("x-queue-mode")},
		{"d", "x-max-age", "1h", argument("x-max-age")},
		{"d", "x-delivery-limit", 3, "ok q 0 0"},
	} {
		args := table{"x-queue-type", "quorum"}
		if tt.arg != "" {
			args = append(args, tt.arg, tt.value)
		}
		c.is(c.declare("q", tt.flags, args), tt.want)
	}
	c.is(c.declare("classic", "d", table{"x-dead-letter-strategy", "at-most-once"}),
		"channel 406 PRECONDITION_FAILED - invalid arg 'x-dead-letter-strategy' for queue 'classic' in vhost '/' of queue type rabbit_classic_queue (50,10)")
}

// Channel-wide prefetch is not for quorum queues (kombu#2469, py-amqp#302).
func TestQosGlobalOnAQuorumQueue(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("classic", "", nil))
	c.ok(c.quorumQueue("q"))
	c.is(c.qos(5, true), "ok")
	c.is(c.consume("classic", "t", "", nil), "ok t")
	c.is(c.on(2).qos(5, false), "ok")
	c.is(c.on(2).consume("q", "u", "", nil), "ok u")
	c.is(c.consume("q", "v", "", nil), "connection 540 NOT_IMPLEMENTED - queue 'q' in vhost '/' does not support global qos (60,20)")
}

// Dead letters come in the order of the rejects (rabbitmq-server#3620).
func TestQuorumDeadLetterOrder(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("dead", "d", nil))
	c.ok(c.quorumQueue("q", "x-dead-letter-exchange", "", "x-dead-letter-routing-key", c.name("dead")))
	c.puts("q", "0", "1", "2", "3", "4", "5")
	for range 6 {
		c.get("q")
	}
	for _, tag := range []uint64{4, 2, 6} {
		c.reject(tag, "")
	}
	c.nack(0, "m")
	c.eventually("6 0", func() string { return c.depth("dead") })
	c.is(c.bodies("dead"), "3 1 5 0 2 4")
}

// A joining consumer of higher priority takes over when the active one has
// settled, and nothing stalls (rabbitmq-server#14141).
func TestQuorumSingleActiveConsumerAndPriority(t *testing.T) {
	c := connect(t)
	c.ok(c.quorumQueue("q", "x-single-active-consumer", true))
	c.ok(c.qos(1, false))
	c.ok(c.consume("q", "lo", "", nil))
	c.puts("q", "0", "1")
	c.want(`deliver lo #1 /q "0"`)
	hi := c.again(login{})
	hi.ok(hi.consume("q", "hi", "", table{"x-priority", 10}))
	hi.wantNothing()
	c.ack(1, "")
	hi.want(`deliver hi #1 /q "1"`)
	c.puts("q", "2")
	hi.want(`deliver hi #2 /q "2"`)
	c.wantNothing()
}

// Nothing is delivered after cancel-ok (rabbitmq-server#3729).
func TestNothingAfterCancelOkOnAQuorumQueue(t *testing.T) {
	for _, flags := range []string{"a", ""} {
		t.Run("flags "+flags, func(t *testing.T) {
			c := connect(t)
			c.ok(c.quorumQueue("q"))
			c.cancelsUnderLoad("q", flags, nil)
		})
	}
}

// The next consumer takes over what the active one had, in the original order
// (rabbitmq-server#5460).
func TestQuorumSingleActiveConsumerFailsOver(t *testing.T) {
	c := connect(t)
	c.ok(c.quorumQueue("q", "x-single-active-consumer", true))
	c.puts("q", "0", "1", "2", "3", "4")
	a := c.again(login{})
	a.ok(a.qos(2, false))
	a.ok(a.consume("q", "a", "", nil))
	a.want(`deliver a #1 /q "0"`, `deliver a #2 /q "1"`)
	c.ok(c.consume("q", "b", "", nil))
	c.wantNothing()
	c.is(c.declare("q", "p", nil), "ok q 3 1") // only the active one counts
	_ = a.sock.Close()
	a.ended = "closed"
	c.want(`deliver b #1 redelivered /q "0"`, `deliver b #2 redelivered /q "1"`, `deliver b #3 /q "2"`, `deliver b #4 /q "3"`, `deliver b #5 /q "4"`)
}

// What basic.get says is left does not count what has expired behind the message.
func TestQuorumGetDoesNotCountExpired(t *testing.T) {
	c := connect(t)
	c.ok(c.quorumQueue("q"))
	c.is(c.put("", "q", "keep", props{}, ""), "ack")
	c.is(c.put("", "q", "short", props{expiration: "1"}, ""), "ack")
	c.is(c.put("", "q", "last", props{}, ""), "ack")
	c.pause(20 * time.Millisecond)
	c.is(c.get("q"), `#1 /q "keep" left 1`)
	c.is(c.get("q"), `#2 /q "last" left 0`)
}
