//go:build soak && linux && !foreign

package interop_test

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

var soak = flag.Duration("soak", 10*time.Minute, "how long to keep the broker busy")

// TestSoak keeps a broker busy with persistent and transient messages, kills it
// every now and then, and counts: nothing confirmed may be lost, nothing
// acknowledged may return, and memory may not creep up.
func TestSoak(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir)
	c := p.client()
	c.must(c.ch.ExchangeDeclare("x", "fanout", true, false, false, false, nil))
	for _, q := range []string{"one", "two"} {
		_, err := c.ch.QueueDeclare(q, true, false, false, false, nil)
		c.must(err)
		c.must(c.ch.QueueBind(q, "", "x", false, nil))
	}
	l := &ledger{confirmed: map[int]bool{}}
	taken := map[string]map[int]bool{"one": {}, "two": {}}
	began := time.Now()
	for round := 1; time.Since(began) < *soak; round++ {
		noise := p.client()
		go noise.chatter()
		l.client = p.client()
		l.run("x", 500+rand.IntN(20_000), func() { _ = p.cmd.Process.Kill() })
		p.wait()
		p = start(t, dir)
		c = p.client()
		for q := range taken {
			checkSurvivors(t, c, q, l, taken[q], true)
			c.takeAll(q, l, taken[q])
		}
		memory := p.anonymousMemory()
		t.Logf("round %d: %d published, %d confirmed, %d MiB in use", round, l.next, len(l.confirmed), memory>>20)
		if memory > 512<<20 {
			t.Errorf("%d MiB in use, want less than 512", memory>>20)
		}
	}
	p.stop()
}

// TestSoakDisk sends messages through a queue for as long and looks at the disk.
func TestSoakDisk(t *testing.T) {
	for name, args := range map[string][]string{"tiny": small, "server": {"--profile", "server"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			extra := map[string]int64{"tiny": tinyDisk, "server": serverDisk}[name]
			began := time.Now()
			churn(t, args, extra, func(int) bool { return time.Since(began) < *soak })
		})
	}
}

// takeAll acknowledges what is left of the queue, so that it does not grow from
// round to round, and waits until that is on disk.
func (c *client) takeAll(queue string, l *ledger, taken map[int]bool) {
	c.Helper()
	for {
		d, ok, err := c.ch.Get(queue, false)
		c.must(err)
		if !ok {
			break
		}
		_, n := parse(c.T, &d)
		c.must(d.Ack(false))
		taken[n] = true
	}
	waitDurable(c.T, c)
}

// chatter sends transient messages to itself, some at once, until the broker is gone.
// It gets what it has sent: the broker uses the memory of what has come for what comes.
func (c *client) chatter() {
	q, err := c.ch.QueueDeclare("", false, false, true, false, nil)
	if err != nil {
		return
	}
	ds, err := c.ch.ConsumeWithContext(c.Context(), q.Name, "", true, false, false, false, nil)
	if err != nil {
		return
	}
	for sent, got := 0, 0; ; {
		for range 1 + rand.IntN(20) {
			err := c.ch.PublishWithContext(c.Context(), "", q.Name, false, false, amqp.Publishing{Body: lettered(0, sent, rand.IntN(5000))})
			if err != nil {
				return
			}
			sent++
		}
		for got < sent {
			d, ok := <-ds
			if !ok {
				return
			}
			if _, n := parse(c.T, &d); n != got {
				c.Errorf("transient message %d came after %d", n, got-1)
			}
			got++
		}
	}
}
