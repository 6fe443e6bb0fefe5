//go:build !foreign

package interop_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A ledger is a publisher of numbered messages that knows which of them were
// confirmed.
type ledger struct {
	*client
	next      int // the number of the next message
	confirmed map[int]bool
}

// run publishes to the exchange until the broker is gone, with up to 200
// messages unconfirmed. enough is called once so many are confirmed.
func (l *ledger) run(exchange string, count int, enough func()) {
	l.must(l.ch.Confirm(false))
	first := l.next
	confirms := l.ch.NotifyPublish(make(chan amqp.Confirmation, 1000))
	window := make(chan struct{}, 200)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c := range confirms {
			if c.Ack {
				l.confirmed[first+int(c.DeliveryTag)-1] = true
			}
			if c.DeliveryTag == uint64(count) {
				enough()
			}
			<-window
		}
	}()
	for {
		select {
		case window <- struct{}{}:
		case <-done: // the broker is gone
			return
		}
		body := lettered(0, l.next, rand.IntN(3000))
		err := l.ch.PublishWithContext(l.Context(), exchange, "", false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body})
		if err != nil {
			break
		}
		l.next++
	}
	<-done
}

// Whatever was confirmed when the broker was killed is there after the
// restart, once and in order, and again after the next.
func TestKilledBrokerKeepsWhatItConfirmed(t *testing.T) {
	const rounds, perRound = 3, 1500
	dir := t.TempDir()
	queues := []string{"one", "two"}
	p := start(t, dir)
	c := p.client()
	c.must(c.ch.ExchangeDeclare("x", "fanout", true, false, false, false, nil))
	for _, q := range queues {
		_, err := c.ch.QueueDeclare(q, true, false, false, false, nil)
		c.must(err)
		c.must(c.ch.QueueBind(q, "", "x", false, nil))
	}
	l := &ledger{confirmed: map[int]bool{}}
	taken := map[string]map[int]bool{"one": {}, "two": {}}
	for range rounds {
		l.client = p.client()
		l.run("x", perRound, func() { _ = p.cmd.Process.Kill() })
		p.wait()
		p = start(t, dir)
		c = p.client()
		for _, q := range queues {
			// queue one is half emptied each time
			checkSurvivors(t, c, q, l, taken[q], q == "one")
		}
	}
	p.stop()
	p = start(t, dir)
	c = p.client()
	for _, q := range queues {
		checkSurvivors(t, c, q, l, taken[q], false)
	}
	p.stop()
}

// checkSurvivors reads all of the queue and compares it with the ledger. taken
// is what was acknowledged before and must not return. With take it
// acknowledges the first half; else all stays.
func checkSurvivors(t *testing.T, c *client, q string, l *ledger, taken map[int]bool, take bool) {
	t.Helper()
	ready, _ := c.counts(q)
	ds := c.consume(q, q, false)
	last := -1
	found := map[int]bool{}
	var acked uint64
	for i := range ready {
		d := receive(t, ds)
		_, n := parse(t, &d)
		if n <= last {
			t.Errorf("queue %s: %d came after %d", q, n, last)
		}
		if taken[n] {
			t.Errorf("queue %s: %d was acknowledged and is back", q, n)
		}
		last, found[n] = n, true
		if take && i < ready/2 {
			taken[n] = true
			acked = d.DeliveryTag
		}
	}
	for n := range l.confirmed {
		if !found[n] && !taken[n] {
			t.Errorf("queue %s: %d was confirmed and is lost", q, n)
		}
	}
	if acked > 0 {
		c.must(c.ch.Ack(acked, true))
	}
	if rest := c.stop(q, ds); rest != nil {
		t.Errorf("queue %s: %d messages more than it counted", q, len(rest))
	}
	c.must(c.conn.Close())
	*c = *(&process{T: t, addr: c.conn.RemoteAddr().String()}).client()
	waitDurable(t, c)
}

// waitDurable returns when all that was acknowledged before is on disk: a
// persistent message of the same store has been confirmed since.
func waitDurable(t *testing.T, c *client) {
	t.Helper()
	q, err := c.ch.QueueDeclare("marker", true, false, false, false, nil)
	c.must(err)
	c.must(c.ch.Confirm(false))
	d, err := c.ch.PublishWithDeferredConfirmWithContext(t.Context(), "", q.Name, false, false, amqp.Publishing{DeliveryMode: amqp.Persistent})
	c.must(err)
	if !d.Wait() {
		t.Error("the marker was refused")
	}
}

func TestDefinitionsSurviveAKill(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir)
	c := p.client()
	c.must(c.ch.ExchangeDeclare("durable", "topic", true, false, false, false, amqp.Table{"alternate-exchange": "amq.fanout"}))
	c.must(c.ch.ExchangeDeclare("second", "headers", true, false, true, false, nil))
	c.must(c.ch.ExchangeDeclare("transient", "direct", false, false, false, false, nil))
	c.must(c.ch.ExchangeDeclare("deleted", "direct", true, false, false, false, nil))
	args := amqp.Table{"x-max-length": int32(3), "x-overflow": "reject-publish", "x-mine": amqp.Table{"deep": []any{int32(1)}}}
	for name, durable := range map[string]bool{"kept": true, "forgotten": false, "dropped": true} {
		_, err := c.ch.QueueDeclare(name, durable, false, false, false, args)
		c.must(err)
	}
	c.must(c.ch.QueueBind("kept", "a.*", "durable", false, nil))
	c.must(c.ch.QueueBind("kept", "", "second", false, amqp.Table{"x-match": "any", "h": "1"}))
	c.must(c.ch.QueueBind("kept", "unbound", "durable", false, nil))
	c.must(c.ch.QueueBind("dropped", "a.*", "durable", false, nil))
	c.must(c.ch.ExchangeBind("second", "b.*", "durable", false, nil))
	c.must(c.ch.QueueUnbind("kept", "unbound", "durable", nil))
	c.must(c.ch.ExchangeDelete("deleted", false, false))
	_, err := c.ch.QueueDelete("dropped", false, false, false)
	c.must(err)
	p.kill()

	for range 2 { // the second time after a start that changed nothing
		p = start(t, dir)
		c = p.client()
		c.must(c.ch.ExchangeDeclare("durable", "topic", true, false, false, false, amqp.Table{"alternate-exchange": "amq.fanout"}))
		c.must(c.ch.ExchangeDeclare("second", "headers", true, false, true, false, nil))
		_, err = c.ch.QueueDeclare("kept", true, false, false, false, args)
		c.must(err)
		c.publish("durable", "a.1", "by topic")
		c.publish("durable", "unbound", "to the alternate")
		c.must(c.ch.PublishWithContext(t.Context(), "durable", "b.1", false, false, amqp.Publishing{Headers: amqp.Table{"h": "1"}, Body: []byte("by header")}))
		c.wantReady("kept", "by topic", "by header")
		for _, gone := range []string{"forgotten", "dropped"} {
			_, err := c.ch.QueueDeclarePassive(gone, true, false, false, false, nil)
			wantError(t, err, amqp.NotFound, "NOT_FOUND - no queue '"+gone+"' in vhost '/'")
			c.reopen()
		}
		for _, gone := range []string{"transient", "deleted"} {
			err := c.ch.ExchangeDeclarePassive(gone, "direct", true, false, false, false, nil)
			wantError(t, err, amqp.NotFound, "NOT_FOUND - no exchange '"+gone+"' in vhost '/'")
			c.reopen()
		}
		p.kill()
	}
}

func TestOrderlyRestart(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir)
	c := p.client()
	_, err := c.ch.QueueDeclare("q", true, false, false, false, nil)
	c.must(err)
	for i := range 10 {
		mode := uint8(amqp.Persistent)
		if i%2 == 1 {
			mode = amqp.Transient
		}
		c.must(c.ch.PublishWithContext(t.Context(), "", "q", false, false, amqp.Publishing{DeliveryMode: mode, Body: []byte(strconv.Itoa(i))}))
	}
	held := []amqp.Delivery{c.get("q", false), c.get("q", false), c.get("q", false)}
	c.must(held[2].Ack(false)) // 2 is done, 0 and 1 are not; none was ever confirmed
	c.counts("q")
	p.stop()

	p = start(t, dir)
	p.client().wantReady("q", "0", "4", "6", "8")
	p.stop()
	p = start(t, dir)
	p.client().wantReady("q")
	p.stop()
}

func TestQueueDeletedWithMessagesStaysDeleted(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir)
	c := p.client()
	for _, q := range []string{"deleted", "purged"} {
		_, err := c.ch.QueueDeclare(q, true, false, false, false, nil)
		c.must(err)
	}
	c.must(c.ch.Confirm(false))
	var last *amqp.DeferredConfirmation
	for i := range 200 {
		var err error
		q := []string{"deleted", "purged"}[i%2]
		last, err = c.ch.PublishWithDeferredConfirmWithContext(t.Context(), "", q, false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: make([]byte, 2000)})
		c.must(err)
	}
	if !last.Wait() {
		t.Fatal("refused")
	}
	_, err := c.ch.QueueDelete("deleted", false, false, false)
	c.must(err)
	_, err = c.ch.QueuePurge("purged", false)
	c.must(err)
	waitDurable(t, p.client())
	p.kill()

	p = start(t, dir)
	c = p.client()
	q, err := c.ch.QueueDeclare("deleted", true, false, false, false, nil)
	c.must(err)
	if q.Messages != 0 {
		t.Errorf("the deleted queue is back with %d messages", q.Messages)
	}
	if got := c.drain("purged"); len(got) > 0 {
		t.Errorf("%d purged messages are back", len(got))
	}
	p.stop()
}

// The default user is made once, at the first start, and is there after a kill.
func TestUsersSurviveAKill(t *testing.T) {
	dir := t.TempDir()
	start(t, dir, "--default-user", "first", "--default-pass", "secret").kill()
	p := start(t, dir, "--default-user", "second", "--default-pass", "other") // only the first start makes a user
	conn, err := amqp.Dial("amqp://first:secret@" + p.addr + "/")
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	_, err = amqp.DialConfig("amqp://second:other@"+p.addr+"/", amqp.Config{})
	if err == nil {
		t.Error("a second default user was made")
	}
	p.stop()
}

func TestRedeclaringAfterRestartComparesArguments(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir)
	c := p.client()
	_, err := c.ch.QueueDeclare("q", true, false, false, false, amqp.Table{"x-max-length": int32(5)})
	c.must(err)
	p.kill()
	p = start(t, dir)
	c = p.client()
	_, err = c.ch.QueueDeclare("q", true, false, false, false, amqp.Table{"x-max-length": int32(6)})
	wantError(t, err, amqp.PreconditionFailed,
		"PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue 'q' in vhost '/': received '6' but current is '5'")
	p.stop()
}

func TestRequeuedOrderSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir)
	c := p.client()
	_, err := c.ch.QueueDeclare("q", true, false, false, false, nil)
	c.must(err)
	for i := range 6 {
		c.must(c.ch.PublishWithContext(t.Context(), "", "q", false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(strconv.Itoa(i))}))
	}
	var held []amqp.Delivery
	for range 6 {
		held = append(held, c.get("q", false))
	}
	slices.Reverse(held)
	for _, d := range held {
		c.must(d.Nack(false, true))
	}
	c.counts("q")
	p.stop()
	p = start(t, dir)
	p.client().wantReady("q", numbers(0, 6)...)
	p.stop()
}

// TestKeysStayWithTheirQueues restarts a broker whose consistent hash exchange had
// its queues bound in another order than that of their names, and one more.
func TestKeysStayWithTheirQueues(t *testing.T) {
	const queues, keys = 16, 200
	dir := t.TempDir()
	p := start(t, dir)
	c := p.client()
	c.must(c.ch.ExchangeDeclare("x", "x-consistent-hash", true, false, false, false, nil))
	name := func(i int) string { return fmt.Sprint("part.", i) }
	for i := range queues + 1 {
		_, err := c.ch.QueueDeclare(name(i), true, false, false, false, nil)
		c.must(err)
		c.must(c.ch.QueueBind(name(i), "1", "x", false, nil))
	}
	c.must(c.ch.QueueUnbind(name(3), "1", "x", nil))
	where := func(c *client) map[string]string {
		for i := range keys {
			c.put("x", fmt.Sprint("key.", i), fmt.Sprint(i))
		}
		of := make(map[string]string)
		for i := range queues + 1 {
			for _, body := range c.drain(name(i)) {
				of[body] = name(i)
			}
		}
		return of
	}
	before := where(c)
	p.stop()
	after := where(start(t, dir).client())
	if len(before) != keys || !maps.Equal(before, after) {
		t.Errorf("%d keys went to queues\n%v\nand after a restart to\n%v", len(before), before, after)
	}
}
