//go:build !foreign

package interop_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// queueTypes are the types that count deliveries.
var queueTypes = [2]string{"classic", "quorum"}

// retryQueue declares a durable queue of a type whose dead letters go to the
// queue dead.
func (c *client) retryQueue(queueType, name, dead string, args amqp.Table) {
	c.Helper()
	all := amqp.Table{"x-queue-type": queueType, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
	for k, v := range args {
		all[k] = v
	}
	_, err := c.ch.QueueDeclare(dead, true, false, false, false, nil)
	c.must(err)
	_, err = c.ch.QueueDeclare(name, true, false, false, false, all)
	c.must(err)
	c.Cleanup(func() { // of no use where the broker or the channel has ended
		_, _ = c.ch.QueueDelete(name, false, false, false)
		_, _ = c.ch.QueueDelete(dead, false, false, false)
	})
}

// putPersistent publishes a persistent message and waits for its confirm.
func (c *client) putPersistent(queue, body string, headers amqp.Table) {
	c.Helper()
	c.put("", queue) // makes the confirming channel
	d, err := c.confirmed.PublishWithDeferredConfirmWithContext(c.Context(), "", queue, false, false,
		amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(body), Headers: headers})
	c.must(err)
	if ok, err := d.WaitContext(c.Context()); err != nil || !ok {
		c.Fatalf("message %q was not confirmed: %v", body, err)
	}
}

// death is the newest entry of x-death, as "queue reason count".
func death(d amqp.Delivery) string {
	list, _ := d.Headers["x-death"].([]any)
	if len(list) == 0 {
		return ""
	}
	t, _ := list[0].(amqp.Table)
	return fmt.Sprint(t["queue"], " ", t["reason"], " ", t["count"])
}

func TestBackoffAndDeliveryLimit(t *testing.T) {
	for _, queueType := range queueTypes {
		t.Run(queueType, func(t *testing.T) {
			c := newClient(t)
			q, dead := unique(t), unique(t)+".dead"
			c.retryQueue(queueType, q, dead, amqp.Table{"x-delivery-limit": int32(2), "x-redelivery-delay": int32(150), "x-redelivery-delay-multiplier": 2.0})
			buried := c.consume(dead, "dead", true)
			ds := c.consume(q, "", false)
			c.putPersistent(q, "job", nil)
			last := time.Now()
			for n, wait := range []time.Duration{0, 150, 300} {
				d := receive(t, ds)
				if took := time.Since(last); took < wait*time.Millisecond-5*time.Millisecond {
					t.Errorf("delivery %d came after %v, want %d ms", n, took, wait)
				}
				count, _ := d.Headers["x-delivery-count"].(int64)
				if d.Redelivered != (n > 0) || int(count) != n {
					t.Errorf("delivery %d: redelivered %t, x-delivery-count %d", n, d.Redelivered, count)
				}
				if n == 0 {
					c.putPersistent(q, "behind", nil) // is not held up
				}
				last = time.Now()
				c.must(d.Nack(false, true))
				if n == 0 {
					b := receive(t, ds)
					if string(b.Body) != "behind" {
						t.Errorf("after the first nack came %q", b.Body)
					}
					c.must(b.Ack(false))
				}
			}
			d := receive(t, buried)
			if string(d.Body) != "job" || death(d) != q+" delivery_limit 1" || d.Headers["x-delivery-count"] != nil {
				t.Errorf("dead letter %q, %s, headers %v", d.Body, death(d), d.Headers)
			}
		})
	}
}

// Whatever way a message comes back, it waits and is counted.
func TestEveryReturnWaits(t *testing.T) {
	for _, queueType := range queueTypes {
		for name, giveBack := range map[string]func(c *client, d amqp.Delivery){
			"reject":     func(c *client, d amqp.Delivery) { c.must(d.Reject(true)) },
			"recover":    func(c *client, d amqp.Delivery) { c.must(c.recover(true)) },
			"channel":    func(c *client, d amqp.Delivery) { c.must(c.ch.Close()); c.reopen() },
			"connection": func(c *client, d amqp.Delivery) { c.must(c.conn.Close()) },
		} {
			t.Run(queueType+"/"+name, func(t *testing.T) {
				c, other := newClient(t), newClient(t)
				q := unique(t)
				other.retryQueue(queueType, q, q+".dead", amqp.Table{"x-redelivery-delay": int32(300), "x-delivery-limit": int32(9)})
				other.putPersistent(q, "m", nil)
				began := time.Now()
				giveBack(c, c.get(q, false))
				d := receive(t, other.consume(q, "", true))
				if took := time.Since(began); took < 300*time.Millisecond || !d.Redelivered || d.Headers["x-delivery-count"] != int64(1) {
					t.Errorf("came back after %v, redelivered %t, headers %v", took, d.Redelivered, d.Headers)
				}
			})
		}
	}
}

func TestBackoffSurvivesRestart(t *testing.T) {
	const delay = 4 * time.Second
	dir := t.TempDir()
	p := start(t, dir)
	c := p.client()
	nacked := make(map[string]time.Time)
	for _, queueType := range queueTypes {
		c.retryQueue(queueType, queueType, queueType+".dead", amqp.Table{"x-redelivery-delay": int32(delay.Milliseconds()), "x-delivery-limit": int32(1)})
		c.putPersistent(queueType, "waits", nil)
		d := c.get(queueType, false)
		nacked[queueType] = time.Now()
		c.must(d.Nack(false, true))
		c.putPersistent(queueType, "ready", nil)
		if n, _ := c.counts(queueType); n != 1 && time.Since(nacked[queueType]) < delay {
			t.Errorf("%s: %d ready, want 1", queueType, n)
		}
	}
	p.kill()
	p = start(t, dir)
	c = p.client()
	consumers := make(map[string]<-chan amqp.Delivery)
	for _, queueType := range queueTypes {
		if n, _ := c.counts(queueType); n != 1 && time.Since(nacked[queueType]) < delay {
			t.Errorf("%s: %d ready after the restart, want 1", queueType, n)
		}
		consumers[queueType] = c.consume(queueType, queueType, false)
	}
	for _, queueType := range queueTypes {
		d := receive(t, consumers[queueType])
		if string(d.Body) == "ready" { // it comes second if the start took so long
			d = receive(t, consumers[queueType])
		}
		if took := time.Since(nacked[queueType]); string(d.Body) != "waits" || took < delay-50*time.Millisecond || d.Headers["x-delivery-count"] != int64(1) {
			t.Errorf("%s: %q came in %v, headers %v", queueType, d.Body, took, d.Headers)
		}
		c.must(d.Nack(false, true)) // once too often
		dead := receive(t, c.consume(queueType+".dead", "", true))
		if death(dead) != queueType+" delivery_limit 1" {
			t.Errorf("%s: died of %s", queueType, death(dead))
		}
	}
	p.stop()
}

func TestVisibilityTimeout(t *testing.T) {
	for _, queueType := range queueTypes {
		t.Run(queueType, func(t *testing.T) {
			c := newClient(t)
			q, dead := unique(t), unique(t)+".dead"
			c.retryQueue(queueType, q, dead, amqp.Table{"x-consumer-timeout": int32(400), "x-consumer-timeout-action": "requeue", "x-delivery-limit": int32(1)})
			closed := c.watchChannel()
			ds := c.consume(q, "", false)
			c.putPersistent(q, "slow", nil)
			first, second := receive(t, ds), receive(t, ds)
			if !second.Redelivered || second.Headers["x-delivery-count"] != int64(1) {
				t.Errorf("redelivered %t, headers %v", second.Redelivered, second.Headers)
			}
			c.must(first.Ack(false)) // too late: to no effect
			d := receive(t, c.consume(dead, "", true))
			if string(d.Body) != "slow" || death(d) != q+" delivery_limit 1" {
				t.Errorf("dead letter %q, %s", d.Body, death(d))
			}
			c.must(second.Nack(true, true))
			if n, _ := c.counts(q); n != 0 {
				t.Errorf("%d ready, want none", n)
			}
			select {
			case err := <-closed:
				t.Errorf("the channel was closed: %v", err)
			default:
			}
		})
	}
}

func TestQueueHoldsNoDuplicates(t *testing.T) {
	for _, queueType := range queueTypes {
		t.Run(queueType, func(t *testing.T) {
			dir := t.TempDir()
			p := start(t, dir)
			c := p.client()
			args := amqp.Table{"x-queue-type": queueType, "x-message-deduplication": true}
			_, err := c.ch.QueueDeclare("q", true, false, false, false, args)
			c.must(err)
			put := func(id string) { c.putPersistent("q", id, amqp.Table{"x-deduplication-header": id}) }
			for range 2 {
				for i := range 300 { // more than were ever remembered by number
					put(fmt.Sprint(i))
				}
			}
			if n, _ := c.counts("q"); n != 300 {
				t.Errorf("%d ready, want 300", n)
			}
			c.must(c.get("q", false).Ack(false)) // 0 leaves
			c.counts("q")                        // the broker has read the ack
			p.stop()
			p = start(t, dir)
			c = p.client()
			for i := range 300 {
				put(fmt.Sprint(i))
			}
			if got := c.drain("q"); len(got) != 300 || got[0] != "1" || got[299] != "0" {
				t.Errorf("%d messages from %s to %s, want 300 from 1 to 0", len(got), got[0], got[len(got)-1])
			}
			put("5")
			c.wantReady("q", "5")
			p.stop()
		})
	}
}

func TestPrioritiesAreRedeliveredAfterRestart(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir)
	c := p.client()
	args := amqp.Table{"x-max-priority": int32(9)}
	_, err := c.ch.QueueDeclare("q", true, false, false, false, args)
	c.must(err)
	for _, priority := range []uint8{1, 9} {
		c.put("", "q")
		d, err := c.confirmed.PublishWithDeferredConfirmWithContext(t.Context(), "", "q", false, false,
			amqp.Publishing{DeliveryMode: amqp.Persistent, Priority: priority, Body: fmt.Append(nil, priority)})
		c.must(err)
		d.Wait()
	}
	c.get("q", false) // the one of 9
	c.must(c.conn.Close())
	p.stop()
	c = start(t, dir).client()
	for _, want := range []string{"9 true", "1 false"} {
		d := c.get("q", true)
		if got := fmt.Sprint(string(d.Body), " ", d.Redelivered); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestRetryArgumentsAreChecked(t *testing.T) {
	for _, tt := range []struct {
		key   string
		value any
		term  string
	}{
		{"x-redelivery-delay", int32(-1), "{value_negative,-1}"},
		{"x-redelivery-delay", "1s", `"expected integer, got longstr"`},
		{"x-redelivery-delay-multiplier", 0.5, "{value_too_small,0.5}"},
		{"x-redelivery-delay-max", int32(0), "{value_zero,0}"},
		{"x-redelivery-jitter", int32(2), "{value_too_large,2}"},
		{"x-consumer-timeout-action", "shrug", "invalid_consumer_timeout_action"},
	} {
		c := newClient(t)
		q := unique(t)
		_, err := c.ch.QueueDeclare(q, false, false, true, false, amqp.Table{tt.key: tt.value})
		wantError(t, err, amqp.PreconditionFailed, fmt.Sprintf("PRECONDITION_FAILED - invalid arg '%s' for queue '%s' in vhost '/': %s", tt.key, q, tt.term))
	}
	c := newClient(t)
	q := unique(t)
	_, err := c.ch.QueueDeclare(q, false, false, true, false, amqp.Table{"x-redelivery-delay": int32(5)})
	c.must(err)
	_, err = c.ch.QueueDeclare(q, false, false, true, false, amqp.Table{"x-redelivery-delay": int64(5)})
	c.must(err)
	_, err = c.ch.QueueDeclare(q, false, false, true, false, amqp.Table{"x-redelivery-delay": int32(6)})
	wantError(t, err, amqp.PreconditionFailed, fmt.Sprintf("PRECONDITION_FAILED - inequivalent arg 'x-redelivery-delay' for queue '%s' in vhost '/': received '6' but current is '5'", q))
}

var httpLine = regexp.MustCompile(`HTTP[^0-9]*([0-9.]+:[0-9]+)`)

// putPolicy sets a policy of the vhost "/" by the HTTP API.
func (p *process) putPolicy(name string, body any) {
	p.Helper()
	m := httpLine.FindStringSubmatch(p.lines())
	if m == nil {
		p.Fatalf("no HTTP listener: %s", p.lines())
	}
	b, err := json.Marshal(body)
	if err != nil {
		p.Fatal(err)
	}
	req, err := http.NewRequestWithContext(p.Context(), http.MethodPut, "http://"+m[1]+"/api/policies/%2F/"+name, bytes.NewReader(b))
	if err != nil {
		p.Fatal(err)
	}
	req.SetBasicAuth("guest", "guest")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		p.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		p.Fatalf("PUT of policy %s: %s", name, answer.Status)
	}
}

// One policy makes job queues of queues that are there: the example of
// docs/queues.md.
func TestJobQueuesByPolicy(t *testing.T) {
	p := start(t, t.TempDir(), "--management-listen", "127.0.0.1:0")
	c := p.client()
	for _, name := range []string{"jobs.mail", "failed"} {
		_, err := c.ch.QueueDeclare(name, true, false, false, false, nil)
		c.must(err)
	}
	closed := c.watchChannel()
	ds := c.consume("jobs.mail", "worker", false)
	p.putPolicy("jobs", map[string]any{"pattern": `^jobs\.`, "apply-to": "queues", "definition": map[string]any{
		"consumer-timeout": 500, "consumer-timeout-action": "requeue",
		"delivery-limit": 2, "redelivery-delay": 200, "redelivery-delay-multiplier": 2, "redelivery-delay-max": 300, "redelivery-jitter": 0.5,
		"dead-letter-exchange": "", "dead-letter-routing-key": "failed",
	}})
	c.putPersistent("jobs.mail", "poison", nil)
	c.putPersistent("jobs.mail", "good", nil)
	var log []string
	for range 4 {
		d := receive(t, ds)
		log = append(log, fmt.Sprint(string(d.Body), " ", d.Headers["x-delivery-count"]))
		switch {
		case string(d.Body) == "good":
			c.must(d.Ack(false))
		case d.Headers["x-delivery-count"] == int64(1):
			c.must(d.Nack(false, true)) // it fails
		} // else it hangs
	}
	if want := []string{"poison <nil>", "good <nil>", "poison 1", "poison 2"}; !slices.Equal(log, want) {
		t.Errorf("deliveries %q, want %q", log, want)
	}
	d := receive(t, c.consume("failed", "failed", true))
	if string(d.Body) != "poison" || death(d) != "jobs.mail delivery_limit 1" {
		t.Errorf("failed: %q, %s", d.Body, death(d))
	}
	select {
	case err := <-closed:
		t.Errorf("the channel was closed: %v", err)
	default:
	}
	p.stop()
}
