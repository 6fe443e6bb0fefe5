//go:build !foreign

package interop_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The promises here go beyond one queue: they hold across a kill because one
// place has a message on disk before another one forgets it.

// crashRounds is how often a broker is killed; LEVERET_CRASH_ROUNDS says how often
// instead.
func crashRounds(usual int) int {
	if n, err := strconv.Atoi(os.Getenv("LEVERET_CRASH_ROUNDS")); err == nil {
		return n
	}
	return usual
}

// killLater kills the broker at a random moment, while clients are at work.
func (p *process) killLater() {
	timer := time.AfterFunc(time.Duration(20+rand.IntN(400))*time.Millisecond, func() { _ = p.cmd.Process.Kill() })
	p.Cleanup(func() { timer.Stop() })
}

// A sequence is a publisher of the numbers 1, 2, ... It remembers which were
// confirmed; the rest is published again, in order, by the next run.
type sequence struct {
	key       string
	producer  string            // x-producer-id, if not ""
	delay     func(n int) int64 // in milliseconds, if not nil
	next      int               // the first number that was not published
	confirmed map[int]bool
}

// run publishes until the broker is gone or all numbers up to last are confirmed.
func (s *sequence) run(addr string, last int) {
	conn, err := amqp.Dial("amqp://guest:guest@" + addr + "/")
	if err != nil {
		return // killed already
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil || ch.Confirm(false) != nil {
		return
	}
	confirms := ch.NotifyPublish(make(chan amqp.Confirmation, 1000))
	var sent []int
	take := func() bool {
		c, ok := <-confirms
		if ok && c.Ack {
			s.confirmed[sent[c.DeliveryTag-1]] = true
		}
		return ok
	}
	for _, n := range s.missing(last) {
		if len(sent) >= 100 && !take() {
			return
		}
		sent = append(sent, n)
		s.next = max(s.next, n+1)
		if s.publish(ch, n) != nil {
			break
		}
	}
	for len(s.confirmed) < last && take() {
	}
}

// missing are the numbers that are not confirmed yet, lowest first.
func (s *sequence) missing(last int) (list []int) {
	for n := 1; n <= last; n++ {
		if !s.confirmed[n] {
			list = append(list, n)
		}
	}
	return list
}

func (s *sequence) publish(ch *amqp.Channel, n int) error {
	m := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(strconv.Itoa(n))}
	if s.producer != "" {
		m.Headers = amqp.Table{"x-producer-id": s.producer, "x-producer-sequence": int64(n)}
	}
	if s.delay != nil {
		m.Headers = amqp.Table{"x-delivery-delay": s.delay(n)}
	}
	return ch.Publish("", s.key, false, false, m)
}

// all takes what is in a queue, as numbers.
func (c *client) all(queue string) (list []int) {
	c.Helper()
	for _, body := range c.drain(queue) {
		n, err := strconv.Atoi(body)
		c.must(err)
		list = append(list, n)
	}
	return list
}

// TestCrashDeadLetters kills a broker whose consumer rejects all it gets: what a
// publisher was told to be safe must be where dead letters go, or still in the
// queue.
func TestCrashDeadLetters(t *testing.T) {
	t.Run("at least once", func(t *testing.T) {
		testCrashDeadLetters(t, amqp.Table{"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"})
	})
	t.Run("at most once", func(t *testing.T) { testCrashDeadLetters(t, amqp.Table{}) })
}

func testCrashDeadLetters(t *testing.T, extra amqp.Table) {
	const perRound = 6000
	extra["x-queue-type"], extra["x-dead-letter-exchange"], extra["x-dead-letter-routing-key"] = "quorum", "", "dead"
	dir := t.TempDir()
	p := start(t, dir)
	c := p.client()
	for name, args := range map[string]amqp.Table{
		"dead": {"x-queue-type": "quorum"},
		"work": extra,
	} {
		_, err := c.ch.QueueDeclare(name, true, false, false, false, args)
		c.must(err)
	}
	p.stop()
	s := &sequence{key: "work", next: 1, confirmed: make(map[int]bool)}
	rounds := crashRounds(3)
	for round := range rounds {
		p := start(t, dir)
		p.killLater()
		var rejecter sync.WaitGroup
		rejecter.Go(func() { rejectAll(p.addr) })
		s.run(p.addr, (round+1)*perRound)
		rejecter.Wait()
		p.wait()
	}
	c = start(t, dir).client()
	work, dead := c.consume("work", "", false), c.consume("dead", "", false)
	copies, twice, missing := make(map[int]int), 0, len(s.confirmed)
	for late := time.After(patience); missing > 0; {
		select {
		case d := <-work:
			c.must(d.Reject(false))
		case d := <-dead:
			n, err := strconv.Atoi(string(d.Body))
			c.must(err)
			if copies[n]++; copies[n] > 1 {
				twice++
			} else if s.confirmed[n] {
				missing--
			}
			c.must(d.Ack(false))
		case <-late:
			t.Fatalf("of %d confirmed messages %d are lost", len(s.confirmed), missing)
		}
	}
	t.Logf("%d rounds, %d confirmed, %d dead, %d copies more", rounds, len(s.confirmed), len(copies), twice)
}

// rejectAll consumes until the broker is gone.
func rejectAll(addr string) {
	conn, err := amqp.Dial("amqp://guest:guest@" + addr + "/")
	if err != nil {
		return
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil || ch.Qos(50, 0, false) != nil {
		return
	}
	ds, err := ch.Consume("work", "", false, false, false, false, nil)
	if err != nil {
		return
	}
	for d := range ds {
		_ = d.Reject(false) // fails when the broker is gone
	}
}

// TestCrashProducers kills a broker under a publisher that numbers its messages
// and publishes again what was not confirmed: each is there once.
func TestCrashProducers(t *testing.T) {
	const perRound = 6000
	dir := t.TempDir()
	p := start(t, dir)
	c := p.client()
	_, err := c.ch.QueueDeclare("once", true, false, false, false, nil)
	c.must(err)
	p.stop()
	s := &sequence{key: "once", producer: "p", next: 1, confirmed: make(map[int]bool)}
	rounds := crashRounds(3)
	for round := range rounds {
		p := start(t, dir)
		p.killLater()
		s.run(p.addr, (round+1)*perRound)
		p.wait()
	}
	p = start(t, dir)
	s.run(p.addr, s.next-1)
	if left := s.missing(s.next - 1); len(left) > 0 {
		t.Errorf("%d numbers were not confirmed in the end, the first is %d", len(left), left[0])
	}
	got := p.client().all("once")
	slices.Sort(got)
	for i, n := range got {
		if n != i+1 {
			t.Fatalf("message %d of %d is number %d", i+1, len(got), n)
		}
	}
	if len(got) != s.next-1 {
		t.Errorf("%d messages, want %d", len(got), s.next-1)
	}
	t.Logf("%d rounds, %d messages", rounds, len(got))
}

// TestCrashDelays kills a broker under a publisher whose messages are held for as
// long as a commit takes: what was confirmed must be in the queue in the end.
func TestCrashDelays(t *testing.T) {
	const perRound = 6000
	dir := t.TempDir()
	p := start(t, dir)
	c := p.client()
	_, err := c.ch.QueueDeclare("late", true, false, false, false, nil)
	c.must(err)
	p.stop()
	s := &sequence{key: "late", delay: func(n int) int64 { return int64(n%20) + 1 }, next: 1, confirmed: make(map[int]bool)}
	rounds := crashRounds(3)
	for round := range rounds {
		p := start(t, dir)
		p.killLater()
		s.run(p.addr, (round+1)*perRound)
		p.wait()
	}
	if len(s.confirmed) == 0 {
		t.Fatal("nothing was confirmed")
	}
	c = start(t, dir).client()
	deliveries := c.consume("late", "", true)
	copies, missing := make(map[int]int), len(s.confirmed)
	for late := time.After(patience); missing > 0; {
		select {
		case d := <-deliveries:
			n, err := strconv.Atoi(string(d.Body))
			c.must(err)
			if copies[n]++; copies[n] == 1 && s.confirmed[n] {
				missing--
			}
		case <-late:
			t.Fatalf("of %d confirmed messages %d are lost", len(s.confirmed), missing)
		}
	}
	t.Logf("%d rounds, %d confirmed, %d came", rounds, len(s.confirmed), len(copies))
}

// TestStopReleasesDelaysOnce stops a broker in an orderly way while it releases
// messages: none comes twice.
func TestStopReleasesDelaysOnce(t *testing.T) {
	const messages = 8000
	dir := t.TempDir()
	p := start(t, dir)
	c := p.client()
	_, err := c.ch.QueueDeclare("late", true, false, false, false, nil)
	c.must(err)
	c.must(c.ch.Qos(1, 0, false))
	first := c.consume("late", "", false)
	due := time.Now().Add(1500 * time.Millisecond)
	s := &sequence{key: "late", delay: func(int) int64 { return time.Until(due).Milliseconds() }, next: 1, confirmed: make(map[int]bool)}
	s.run(p.addr, messages)
	<-first
	p.stop()
	c = start(t, dir).client()
	deliveries := c.consume("late", "", true)
	copies := make(map[int]int)
	for late := time.After(patience); len(copies) < messages; {
		select {
		case d := <-deliveries:
			n, err := strconv.Atoi(string(d.Body))
			c.must(err)
			if copies[n]++; copies[n] > 1 {
				t.Fatalf("message %d came twice", n)
			}
		case <-late:
			t.Fatalf("%d of %d messages came", len(copies), messages)
		}
	}
}
