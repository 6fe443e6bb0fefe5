package interop_test

import (
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The tests here are the recipe of docs/partitions.md: a consistent hash exchange
// cuts a flow into queues with a single active consumer, and workers that know
// nothing of each other share the queues out.

const (
	partitionCount = 8
	entityCount    = 40
)

// rank is the priority of a worker for a partition: the highest is active. As
// every worker has its own order of partitions, they share them evenly, and one
// that comes or goes moves only the partitions it gets or had.
func rank(worker, partition string) int32 {
	h := fnv.New32a()
	h.Write([]byte(worker + "/" + partition))
	return int32(h.Sum32() % 10_000)
}

// expectedOwners says which worker has which partition.
func expectedOwners(partitions []string, workers ...string) map[string]string {
	owners := make(map[string]string)
	for _, p := range partitions {
		best := workers[0]
		for _, w := range workers[1:] {
			if rank(w, p) > rank(best, p) {
				best = w
			}
		}
		owners[p] = best
	}
	return owners
}

// A journal is what all workers together have done.
type journal struct {
	mu     sync.Mutex
	last   map[string]int    // of each entity: its last step that was processed
	owners map[string]string // of each partition: who processed its last message
	faults []string
	moved  chan struct{} // has a token after a change
}

// record notes a delivery. A step may come again after a worker has gone, but
// none may be left out or overtaken.
func (j *journal) record(worker, partition string, d amqp.Delivery) {
	entity := d.RoutingKey
	step, err := strconv.Atoi(string(d.Body))
	j.mu.Lock()
	defer j.mu.Unlock()
	again := d.Redelivered && step <= j.last[entity]
	if err != nil || step != j.last[entity]+1 && !again {
		j.faults = append(j.faults, fmt.Sprintf("%s: step %q of %s after %d", worker, d.Body, entity, j.last[entity]))
	}
	if !again {
		j.last[entity] = step
	}
	j.owners[partition] = worker
	select {
	case j.moved <- struct{}{}:
	default:
	}
}

// await returns who has the partitions when all entities have come to this step.
func (j *journal) await(t *testing.T, step int) map[string]string {
	t.Helper()
	for deadline := time.After(patience); ; {
		j.mu.Lock()
		done := len(j.last) == entityCount
		for _, last := range j.last {
			done = done && last >= step
		}
		owners, faults := maps.Clone(j.owners), j.faults
		j.mu.Unlock()
		if len(faults) > 0 {
			t.Fatalf("out of order: %q", faults)
		}
		if done {
			return owners
		}
		select {
		case <-j.moved:
		case <-deadline:
			t.Fatalf("not all entities came to step %d: %v", step, j.last)
		}
	}
}

// work starts a worker on all partitions; closing its connection ends it.
func (j *journal) work(t *testing.T, name string, partitions []string) *amqp.Connection {
	c := newClient(t)
	for _, p := range partitions {
		ch, err := c.conn.Channel()
		c.must(err)
		c.must(ch.Qos(10, 0, false))
		ds, err := ch.ConsumeWithContext(t.Context(), p, name, false, false, false, false, amqp.Table{"x-priority": rank(name, p)})
		c.must(err)
		go func() {
			for d := range ds {
				j.record(name, p, d)
				_ = d.Ack(false) // fails when the connection was closed: it comes again
			}
		}()
	}
	return c.conn
}

func TestPartitionsByEntity(t *testing.T) {
	c := newClient(t)
	x := c.exchange("x-consistent-hash", nil)
	var partitions []string
	for range partitionCount {
		q := c.durableQueue(amqp.Table{"x-queue-type": "quorum", "x-single-active-consumer": true})
		c.must(c.ch.QueueBind(q, "1", x, false, nil))
		partitions = append(partitions, q)
	}
	j := &journal{last: make(map[string]int), owners: make(map[string]string), moved: make(chan struct{}, 1)}
	step := 0
	// settles publishes steps of every entity until the workers have shared the
	// partitions out as expected.
	settles := func(workers ...string) {
		t.Helper()
		want := expectedOwners(partitions, workers...)
		for deadline := time.Now().Add(patience); ; {
			step++
			for i := range entityCount {
				c.put(x, fmt.Sprintf("order-%d", i), strconv.Itoa(step))
			}
			got := j.await(t, step)
			if maps.Equal(got, want) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("with %v the partitions are at %v, want %v", workers, got, want)
			}
		}
	}
	one := j.work(t, "one", partitions)
	settles("one")
	two := j.work(t, "two", partitions)
	settles("one", "two")
	j.work(t, "three", partitions)
	settles("one", "two", "three")
	c.must(two.Close())
	settles("one", "three")
	c.must(one.Close())
	settles("three")
}
