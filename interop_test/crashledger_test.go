//go:build !foreign

package interop_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// What is known of one message in one queue.
const (
	isConfirmed = 1 << iota // it must be there
	isAcked                 // it may be there, until the next crash has shown
	isGone                  // it must not be there
)

// A crashLedger is what is known of one publisher's messages in one queue.
type crashLedger struct {
	base  int    // all below are gone
	known []byte // by number, from base
}

func (l *crashLedger) at(n int) byte {
	switch {
	case n < l.base:
		return isGone
	case n-l.base < len(l.known):
		return l.known[n-l.base]
	}
	return 0
}

func (l *crashLedger) set(n int, bits byte) {
	if n < l.base {
		return
	}
	for n-l.base >= len(l.known) {
		l.known = append(l.known, 0)
	}
	l.known[n-l.base] |= bits
}

// trim forgets the start of the ledger as far as it is gone.
func (l *crashLedger) trim() {
	n := 0
	for n < len(l.known) && l.known[n]&isGone != 0 {
		n++
	}
	l.base += n
	l.known = append([]byte(nil), l.known[n:]...)
}

// A crashPublisher sends numbered messages to an exchange.
type crashPublisher struct {
	id            int // immutable
	exchange, key string
	queues        []*crashQueue // where they go
	next          int           // owned by run
	confirmed     int           // the same
}

// run publishes until the broker is gone, with up to 200 messages unconfirmed.
func (p *crashPublisher) run(ch *amqp.Channel) {
	first := p.next
	confirms := ch.NotifyPublish(make(chan amqp.Confirmation, 1000))
	window := make(chan struct{}, 200)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c := range confirms {
			if c.Ack {
				p.confirmed++
				for _, q := range p.queues {
					q.note(p.id, first+int(c.DeliveryTag)-1, isConfirmed)
				}
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
		n := p.next
		p.next++
		body := lettered(p.id, n, bodySize())
		err := ch.Publish(p.exchange, p.key, false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Priority: uint8(n % 5), Body: body})
		if err != nil {
			break
		}
	}
	<-done
}

// bodySize is mostly small and now and then large, in bytes.
func bodySize() int {
	if rand.IntN(50) == 0 {
		return rand.IntN(100_000)
	}
	return rand.IntN(1500)
}

// A crashQueue is a queue and what is known of it.
type crashQueue struct {
	name      string // immutable, as all up to mu
	priority  bool
	consumers int

	mu   sync.Mutex
	of   map[int]*crashLedger // guarded by mu; by publisher
	lost int                  // owned by the test, as back
	back int
}

func (q *crashQueue) note(publisher, n int, bits byte) {
	q.mu.Lock()
	q.of[publisher].set(n, bits)
	q.mu.Unlock()
}

func (q *crashQueue) known(publisher, n int) byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.of[publisher].at(n)
}

// lettered is the body of a publisher's message n: those two numbers, and size bytes
// that are not those of its neighbours.
func lettered(publisher, n, size int) []byte {
	body := fmt.Appendf(nil, "%d %d %d ", publisher, n, size)
	return append(body, bytes.Repeat([]byte{'a' + byte(n%26)}, size)...)
}

// parse finds the publisher and the number of a message, whose body must be the one
// that was published.
func parse(t *testing.T, d *amqp.Delivery) (publisher, n int) {
	t.Helper()
	var size int
	if _, err := fmt.Sscan(string(d.Body[:min(len(d.Body), 40)]), &publisher, &n, &size); err != nil {
		t.Errorf("message of %d bytes: %v", len(d.Body), err)
		return 0, 0
	}
	if size < 0 || size > len(d.Body) || !bytes.Equal(d.Body, lettered(publisher, n, size)) {
		t.Errorf("message %d of publisher %d, of %d bytes: the body of %d is not what was published: %.60q", n, publisher, size, len(d.Body), d.Body)
	}
	return publisher, n
}

// consume takes messages until the broker is gone. It acknowledges most, one
// by one or several at once, and returns some; now and then it makes sure that
// what it acknowledged is committed.
func (q *crashQueue) consume(t *testing.T, ch *amqp.Channel) {
	if ch.Qos(50, 0, false) != nil {
		return
	}
	ds, err := ch.Consume(q.name, "", false, false, false, false, nil)
	if err != nil {
		return
	}
	last := map[int]int{}    // by publisher, of those that came the first time
	var acked, held [][2]int // publisher and number; held is delivered and not acknowledged
	for d := range ds {
		pub, n := parse(t, &d)
		if q.known(pub, n)&(isAcked|isGone) != 0 {
			t.Errorf("queue %s: message %d of publisher %d was acknowledged and came again", q.name, n, pub)
		}
		if before, ok := last[pub]; ok && !d.Redelivered && !q.priority && n <= before {
			t.Errorf("queue %s: message %d of publisher %d came after %d", q.name, n, pub, before)
		}
		if !d.Redelivered {
			last[pub] = n
		}
		switch held = append(held, [2]int{pub, n}); {
		case len(held) == 20 && rand.IntN(3) == 0:
			err = d.Nack(true, true)
			held = held[:0]
		case len(held) == 20:
			for _, m := range held {
				q.note(m[0], m[1], isAcked)
			}
			acked, held = append(acked, held...), held[:0]
			err = d.Ack(true)
		case rand.IntN(10) == 0:
			held = held[:len(held)-1]
			err = d.Reject(true)
		case rand.IntN(4) == 0:
			held = held[:len(held)-1]
			acked = append(acked, [2]int{pub, n})
			q.note(pub, n, isAcked)
			err = d.Ack(false)
		}
		if err == nil && len(acked) > 200 {
			if err = passMarkers(t, ch); err == nil {
				for _, m := range acked {
					q.note(m[0], m[1], isGone)
				}
				acked = acked[:0]
			}
		}
		if err != nil {
			return // the broker is gone
		}
	}
}

// compare checks all messages of the queue after a crash. The first of them
// are about to be acknowledged.
func (q *crashQueue) compare(s *crashSuite, all []amqp.Delivery, taken int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	found := map[[2]int]bool{}
	last := map[[2]int]int{} // by publisher and priority
	for i := range all {
		d := &all[i]
		pub, n := parse(s.T, d)
		lane := [2]int{pub, 0}
		if q.priority {
			lane[1] = min(int(d.Priority), 4)
			if i > 0 && d.Priority > all[i-1].Priority {
				s.Errorf("round %d: queue %s: priority %d came after %d", s.round, q.name, d.Priority, all[i-1].Priority)
			}
		}
		if before, ok := last[lane]; ok && n <= before {
			s.Errorf("round %d: queue %s: message %d of publisher %d came after %d", s.round, q.name, n, pub, before)
		}
		last[lane] = n
		found[[2]int{pub, n}] = true
		if q.of[pub].at(n)&isGone != 0 {
			q.back++
			s.Errorf("round %d: queue %s: message %d of publisher %d was settled and is back", s.round, q.name, n, pub)
		}
		q.of[pub].set(n, isConfirmed) // what is there once stays
		if i < taken {
			q.of[pub].set(n, isAcked)
		}
	}
	for pub, l := range q.of {
		for i, known := range l.known {
			n := l.base + i
			if found[[2]int{pub, n}] || known&isGone != 0 {
				continue
			}
			if known&(isConfirmed|isAcked) == isConfirmed {
				q.lost++
				s.Errorf("round %d: queue %s: message %d of publisher %d was confirmed and is lost", s.round, q.name, n, pub)
			}
			l.set(n, isGone) // it must never come back
		}
		// Neither may what was sent, never confirmed and not written.
		for n := l.base + len(l.known); n < s.publishers[pub].next; n++ {
			l.set(n, isGone)
		}
	}
}

// settle notes that what was acknowledged is committed.
func (q *crashQueue) settle() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.of {
		for i, known := range l.known {
			if known&isAcked != 0 {
				l.known[i] |= isGone
			}
		}
		l.trim()
	}
}
