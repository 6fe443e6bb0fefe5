package cases_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"
)

// toDead are the arguments of a queue whose dead letters go to queue dead.
func (ch *channel) toDead(more ...any) table {
	return append(table{"x-dead-letter-exchange", "", "x-dead-letter-routing-key", ch.name("dead")}, more...)
}

var deathTime = regexp.MustCompile(`time:T\d+`)

// deathProps are the properties of the latest message; times are left out.
func (ch *channel) deathProps() string {
	return deathTime.ReplaceAllString(ch.props(), "time:T")
}

// waitFor takes the next message of a queue that must come, and returns it
// without its tag.
func (ch *channel) waitFor(queue string) string {
	ch.Helper()
	got := "empty"
	for end := time.Now().Add(patience); got == "empty" && time.Now().Before(end); ch.pause(5 * time.Millisecond) {
		got = ch.take(queue)
	}
	for i, b := range got {
		if b == ' ' {
			return got[i+1:]
		}
	}
	return got
}

// Clients cannot continue a history: it starts anew at the first death
// (rabbitmq-server#11331, #10709).
func TestRepublishedDeathHistoryIsReplaced(t *testing.T) {
	t.Parallel()
	c := connect(t)
	c.ok(c.declare("dead", "x", nil))
	c.ok(c.declare("delay", "x", c.toDead("x-message-ttl", 100)))
	p := props{}.encode()
	for range 3 {
		c.is(c.put("", "delay", "m", props{raw: p}, ""), "ack")
		c.is(c.waitFor("dead"), `/dead "m" left 0`)
		c.is(c.deathProps(), `headers={x-death:[{count:l1 reason:"expired" queue:"delay" time:T exchange:"" routing-keys:["delay"]}] `+
			`x-first-death-exchange:"" x-first-death-queue:"delay" x-first-death-reason:"expired" `+
			`x-last-death-exchange:"" x-last-death-queue:"delay" x-last-death-reason:"expired"}`)
		p = c.last.props
	}
}

// Whatever a client calls x-death (rabbitmq-server#11608).
func TestDeathHistoryOfWrongTypes(t *testing.T) {
	for _, value := range []any{"oops", array{1, 2}, array{table{"time", "yesterday"}}, array{table{"queue", 5, "count", "many", "reason", nil}}, 7, nil, table{}, array{}} {
		t.Run(fmt.Sprint(value), func(t *testing.T) {
			c := connect(t)
			c.ok(c.declare("dead", "x", nil))
			c.ok(c.declare("q", "x", c.toDead()))
			c.is(c.put("", "q", "m", props{headers: table{"x-death", value, "x-first-death-queue", "me", "x-last-death-reason", 1}}, ""), "ack")
			c.get("q")
			c.reject(1, "")
			c.is(c.waitFor("dead"), `/dead "m" left 0`)
			c.is(c.deathProps(), `headers={x-death:[{count:l1 reason:"rejected" queue:"q" time:T exchange:"" routing-keys:["q"]}] `+
				`x-first-death-exchange:"" x-first-death-queue:"q" x-first-death-reason:"rejected" `+
				`x-last-death-exchange:"" x-last-death-queue:"q" x-last-death-reason:"rejected"}`)
		})
	}
}

// Only the head expires (rabbitmq-server#2007, #2074, #10617).
func TestShortTTLBehindALongOneWaits(t *testing.T) {
	t.Parallel()
	c := connect(t)
	c.ok(c.declare("dead", "x", nil))
	c.ok(c.declare("q", "x", c.toDead()))
	c.is(c.put("", "q", "long", props{expiration: "60000"}, ""), "ack")
	c.is(c.put("", "q", "short", props{expiration: "100"}, ""), "ack")
	c.is(c.put("", "q", "shorter", props{expiration: "50"}, ""), "ack")
	c.pause(400 * time.Millisecond)
	c.is(c.depth("q")+"/"+c.depth("dead"), "3 0/0 0")
	c.is(c.take("q"), `#1 /q "long" left 0`)
	c.is(c.waitFor("dead"), `/dead "short" left 1`)
	c.is(c.waitFor("dead"), `/dead "shorter" left 0`)
	c.is(c.depth("q"), "0 0")
}

// Expiry goes on when what does not expire has left (lavinmq#1606,
// rabbitmq-server#10692, #10718).
func TestExpiryGoesOnAfterANonExpiringHead(t *testing.T) {
	t.Parallel()
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	c.puts("q", "keep")
	c.is(c.put("", "q", "exp", props{expiration: "3000"}, ""), "ack")
	c.is(c.put("", "q", "exp2", props{expiration: "3300"}, ""), "ack")
	c.is(c.get("q"), `#1 /q "keep" left 2`)
	c.eventually("0 0", func() string { return c.depth("q") })
}

// A message does not expire in a client's hands, but on its way back.
func TestUnackedExpireOnRequeue(t *testing.T) {
	t.Parallel()
	c := connect(t)
	c.ok(c.declare("dead", "x", nil))
	c.ok(c.declare("q", "x", c.toDead("x-message-ttl", 2000)))
	c.puts("q", "m", "n")
	c.is(c.get("q"), `#1 /q "m" left 1`)
	c.is(c.get("q"), `#2 /q "n" left 0`)
	c.pause(2200 * time.Millisecond)
	c.is(c.depth("dead"), "0 0")
	c.ack(2, "")
	c.nack(1, "r")
	c.is(c.waitFor("dead"), `/dead "m" left 0`)
	c.is(c.depth("q"), "0 0")
}

// What comes back to a full queue is dropped before its consumer, who has room again,
// can get it.
func TestRequeueIntoAFullQueue(t *testing.T) {
	for name, args := range map[string]table{"plain": {"x-max-length", 1}, "priorities": {"x-max-length", 1, "x-max-priority", 3}} {
		t.Run(name, func(t *testing.T) {
			c := connect(t)
			c.ok(c.declare("dead", "x", nil))
			c.ok(c.declare("q", "x", c.toDead(args...)))
			d := c.on(2)
			d.ok(d.qos(1, false))
			d.ok(d.consume("q", "t", "", nil))
			c.puts("q", "0", "1", "2")
			d.want(`deliver t #1 /q "0"`)
			d.nack(1, "r")
			d.want(`deliver t #2 /q "2"`)
			d.is(d.sync(), "ok")
			c.is(c.bodies("dead"), "1 0")
		})
	}
}

// A consumer never gets what has expired.
func TestExpiredAreNotDelivered(t *testing.T) {
	t.Parallel()
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	c.is(c.put("", "q", "long", props{expiration: "60000"}, ""), "ack")
	for range 5 {
		c.is(c.put("", "q", "short", props{expiration: "50"}, ""), "ack")
	}
	c.puts("q", "last")
	c.pause(200 * time.Millisecond)
	c.is(c.depth("q"), "7 0")
	c.ok(c.consume("q", "t", "", nil))
	c.want(`deliver t #1 /q "long"`, `deliver t #2 /q "last"`)
	c.wantNothing()
}

// The smaller of the message's and the queue's TTL counts.
func TestSmallerTTLCounts(t *testing.T) {
	t.Parallel()
	c := connect(t)
	c.ok(c.declare("q", "x", table{"x-message-ttl", 3000}))
	c.ok(c.declare("r", "x", table{"x-message-ttl", 3_600_000}))
	c.is(c.put("", "q", "m", props{expiration: "3600000"}, ""), "ack")
	c.is(c.put("", "r", "m", props{expiration: "3000"}, ""), "ack")
	c.is(c.depth("q")+"/"+c.depth("r"), "1 0/1 0")
	c.eventually("0 0/0 0", func() string { return c.depth("q") + "/" + c.depth("r") })
}

// TTL 0 is delivery or death (lavinmq 1.0, 1.2).
func TestTTLZero(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("dead", "x", nil))
	c.ok(c.declare("q", "", c.toDead("x-message-ttl", 0)))
	c.puts("q", "1")
	c.is(c.waitFor("dead"), `/dead "1" left 0`)
	d := c.again(login{})
	d.ok(d.consume("q", "t", "", nil))
	c.puts("q", "2")
	d.want(`deliver t #1 /q "2"`)
	_ = d.sock.Close()
	d.ended = "closed"
	c.is(c.waitFor("dead"), `/dead "2" left 0`)
	c.is(c.depth("q"), "0 0")
}

// A retry queue with a lease works again and again (lavinmq#1134).
func TestRetryQueueIsReusable(t *testing.T) {
	t.Parallel()
	c := connect(t)
	c.ok(c.declare("dead", "x", nil))
	p := props{}.encode()
	for range 3 {
		c.is(c.declare("retry", "", c.toDead("x-message-ttl", 100, "x-expires", 10000)), "ok retry 0 0")
		c.is(c.put("", "retry", "m", props{raw: p}, ""), "ack")
		c.is(c.waitFor("dead"), `/dead "m" left 0`)
		p = c.last.props
	}
}

// Dead letters come in the order of their deaths, a batch in the order of the
// queue (rabbitmq-server#3620, #14926).
func TestDeadLetterOrder(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("dead", "x", nil))
	c.ok(c.declare("q", "x", c.toDead()))
	c.puts("q", "0", "1", "2", "3", "4", "5")
	for range 6 {
		c.get("q")
	}
	c.reject(4, "")
	c.reject(2, "")
	c.reject(6, "")
	c.nack(0, "m")
	c.eventually("6 0", func() string { return c.depth("dead") })
	c.is(c.bodies("dead"), "3 1 5 0 2 4")
}

// The first death is remembered, the latest comes first
// (rabbitmq-server#1332).
func TestFirstAndLastDeath(t *testing.T) {
	t.Parallel()
	c := connect(t)
	c.ok(c.exchange("x", "direct", "", nil))
	c.ok(c.declare("dead", "x", nil))
	c.ok(c.declare("second", "x", c.toDead("x-message-ttl", 50)))
	c.ok(c.declare("first", "x", table{"x-dead-letter-exchange", "", "x-dead-letter-routing-key", c.name("second")}))
	c.ok(c.bind("first", "x", "k", nil))
	c.is(c.put("x", "k", "m", props{expiration: "70000", headers: table{"mine", true}, mode: 2}, ""), "ack")
	c.get("first")
	c.reject(1, "")
	c.is(c.waitFor("dead"), `/dead "m" left 0`)
	c.is(c.deathProps(), `headers={mine:true x-death:[`+
		`{count:l1 reason:"expired" queue:"second" time:T exchange:"" routing-keys:["second"]} `+
		`{original-expiration:"70000" count:l1 reason:"rejected" queue:"first" time:T exchange:"x" routing-keys:["k"]}] `+
		`x-first-death-exchange:"x" x-first-death-queue:"first" x-first-death-reason:"rejected" `+
		`x-last-death-exchange:"" x-last-death-queue:"second" x-last-death-reason:"expired"} mode=2`)
}

// A second death of the same kind counts up and moves to the front.
func TestDeathsOfTheSameKindAreCounted(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("a", "x", table{"x-dead-letter-exchange", "", "x-dead-letter-routing-key", c.name("b")}))
	c.ok(c.declare("b", "x", table{"x-dead-letter-exchange", "", "x-dead-letter-routing-key", c.name("a")}))
	c.puts("a", "m")
	for i := range 3 {
		for _, q := range []string{"a", "b"} {
			c.eventually("1 0", func() string { return c.depth(q) })
			c.get(q)
			if i == 2 && q == "b" {
				break
			}
			c.nack(0, "m")
		}
	}
	c.is(c.deathProps(), `headers={x-death:[{count:l3 reason:"rejected" queue:"a" time:T exchange:"" routing-keys:["a"]} `+
		`{count:l2 reason:"rejected" queue:"b" time:T exchange:"" routing-keys:["b"]}] `+
		`x-first-death-exchange:"" x-first-death-queue:"a" x-first-death-reason:"rejected" `+
		`x-last-death-exchange:"" x-last-death-queue:"a" x-last-death-reason:"rejected"}`)
}

// The last exchange is that of the last death, whatever its entry says.
func TestLastDeathExchange(t *testing.T) {
	c := connect(t)
	c.ok(c.exchange("x", "fanout", "", nil))
	c.ok(c.declare("q", "x", table{"x-dead-letter-exchange", c.name("x")}))
	c.ok(c.bind("q", "x", "", nil))
	c.puts("q", "m")
	for range 2 {
		c.get("q")
		c.nack(0, "m")
		c.eventually("1 0", func() string { return c.depth("q") })
	}
	c.get("q")
	c.is(c.deathProps(), `headers={x-death:[{count:l2 reason:"rejected" queue:"q" time:T exchange:"" routing-keys:["q"]}] `+
		`x-first-death-exchange:"" x-first-death-queue:"q" x-first-death-reason:"rejected" `+
		`x-last-death-exchange:"x" x-last-death-queue:"q" x-last-death-reason:"rejected"}`)
}

// A circle without a reject ends; one with a reject does not.
func TestDeadLetterCycles(t *testing.T) {
	t.Parallel()
	c := connect(t)
	to := func(q string) table {
		return table{"x-dead-letter-exchange", "", "x-dead-letter-routing-key", c.name(q), "x-message-ttl", 50}
	}
	c.ok(c.declare("a", "x", to("b")))
	c.ok(c.declare("b", "x", to("a")))
	c.puts("a", "m")
	for range 3 { // once may be on its way
		c.eventually("0 0/0 0", func() string { return c.depth("a") + "/" + c.depth("b") })
		c.pause(120 * time.Millisecond)
	}
	c.is(c.depth("a")+"/"+c.depth("b"), "0 0/0 0")
	// A queue that is its own target.
	c.ok(c.declare("own", "x", to("own")))
	c.puts("own", "m")
	c.eventually("0 0", func() string { return c.depth("own") })
	c.pause(120 * time.Millisecond)
	c.is(c.depth("own"), "0 0")
	c.ok(c.declare("again", "x", table{"x-dead-letter-exchange", "", "x-dead-letter-routing-key", c.name("again")}))
	c.puts("again", "m")
	for range 5 {
		c.eventually("1 0", func() string { return c.depth("again") })
		c.get("again")
		c.nack(0, "m")
	}
	c.eventually("1 0", func() string { return c.depth("again") })
}

// CC and BCC after a death, with a key of the queue (rabbitmq-server#8670,
// lavinmq#1552) and without.
func TestCarbonCopiesOfDeadLetters(t *testing.T) {
	c := connect(t)
	c.ok(c.exchange("dlx", "direct", "", nil))
	for _, k := range []string{"newrk", "a", "b", "c"} {
		c.ok(c.declare("to-"+k, "x", nil))
		c.ok(c.bind("to-"+k, "dlx", k, nil))
	}
	c.ok(c.exchange("x", "direct", "", nil))
	c.ok(c.declare("with", "x", table{"x-dead-letter-exchange", c.name("dlx"), "x-dead-letter-routing-key", "newrk"}))
	c.ok(c.declare("without", "x", table{"x-dead-letter-exchange", c.name("dlx")}))
	c.ok(c.bind("with", "x", "a", nil))
	send := func() {
		c.is(c.put("x", "a", "m", props{headers: table{"CC", array{"b"}, "BCC", array{"c"}}}, ""), "ack")
	}
	send()
	c.get("with")
	c.reject(1, "")
	c.is(c.waitFor("to-newrk"), `dlx/newrk "m" left 0`)
	c.is(c.deathProps(), `headers={CC:["b"] x-death:[{count:l1 reason:"rejected" queue:"with" time:T exchange:"x" routing-keys:["a" "b"]}] `+
		`x-first-death-exchange:"x" x-first-death-queue:"with" x-first-death-reason:"rejected" `+
		`x-last-death-exchange:"x" x-last-death-queue:"with" x-last-death-reason:"rejected"}`)
	c.is(c.depth("to-a")+"/"+c.depth("to-b")+"/"+c.depth("to-c"), "0 0/0 0/0 0")
	c.ok(c.unbind("with", "x", "a", nil))
	c.ok(c.bind("without", "x", "a", nil))
	send()
	c.get("without")
	c.nack(0, "m")
	for _, k := range []string{"a", "b", "c"} {
		c.is(c.waitFor("to-"+k), `dlx/a "m" left 0`)
	}
}

// What has no dead-letter exchange, or a missing one, is dropped.
func TestMissingDeadLetterExchange(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", table{"x-dead-letter-exchange", c.name("later")}))
	c.ok(c.declare("dead", "x", nil))
	c.puts("q", "1")
	c.get("q")
	c.reject(1, "")
	c.is(c.sync(), "ok")
	c.ok(c.exchange("later", "fanout", "", nil))
	c.ok(c.bind("dead", "later", "", nil))
	c.puts("q", "2")
	c.get("q")
	c.reject(2, "")
	c.is(c.waitFor("dead"), `later/q "2" left 0`)
}

// reject-publish-dlx refuses and dead-letters; reject-publish only refuses.
func TestRefusedPublishesAsDeadLetters(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("dead", "x", nil))
	c.ok(c.declare("q", "x", c.toDead("x-max-length", 1, "x-overflow", "reject-publish-dlx")))
	c.is(c.put("", "q", "1", props{}, ""), "ack")
	c.is(c.put("", "q", "2", props{}, "m"), "nack")
	c.is(c.waitFor("dead"), `/dead "2" left 0`)
	c.is(c.deathProps(), `headers={x-death:[{count:l1 reason:"maxlen" queue:"q" time:T exchange:"" routing-keys:["q"]}] `+
		`x-first-death-exchange:"" x-first-death-queue:"q" x-first-death-reason:"maxlen" `+
		`x-last-death-exchange:"" x-last-death-queue:"q" x-last-death-reason:"maxlen"}`)
	c.is(c.bodies("q"), "1")
}

// On a priority queue the head of the highest priority alone is looked at.
func TestExpiryOfAPriorityQueue(t *testing.T) {
	t.Parallel()
	c := connect(t)
	c.ok(c.declare("q", "x", table{"x-max-priority", 5}))
	c.is(c.put("", "q", "low", props{priority: 1, expiration: "100"}, ""), "ack")
	c.is(c.put("", "q", "high", props{priority: 5}, ""), "ack")
	c.pause(400 * time.Millisecond)
	c.is(c.depth("q"), "2 0")
	c.is(c.take("q")[3:], `/q "high" left 0`)
	c.eventually("0 0", func() string { return c.depth("q") })
}
