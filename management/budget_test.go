package management

import (
	"math"
	"testing"
	"time"
)

// Adding up 10,000 queues allocates what adding up none does, and no more when
// there are messages in them.
func TestScrapeAllocatesNothingPerQueue(t *testing.T) {
	s := newBenchServer(t)
	v, _ := s.cfg.VHosts.Get("/")
	for i, ref := range v.QueueRefs() {
		if i%10 == 0 {
			ref.Queue.Get(true) // counts as empty: the queue's counters are not all 0
		}
	}
	c := newTotalsCollector(s)
	const budget = 120   // of the tally itself
	least := math.Inf(1) // what goroutines of an earlier test allocate that are ending is counted, too
	for range 3 {
		least = min(least, testing.AllocsPerRun(5, func() { c.recent = nil; c.tally() }))
	}
	if least > budget {
		t.Errorf("a tally of 10,000 queues allocates %v times, want at most %d", least, budget)
	}
	if n := c.recent.queueCount; n != 10_000 {
		t.Errorf("%d queues counted, want 10,000", n)
	}
	if n := c.recent.byType["classic"].GetEmpty; n != 1000 {
		t.Errorf("%d empty gets counted, want 1000", n)
	}
}

// What is added up is what the queues' own samples say.
func TestSumOfQueueSamples(t *testing.T) {
	a := newAPI(t, nil)
	for _, q := range []string{"a", "b", "c"} {
		a.do("PUT", "/queues/%2F/"+q, "", 201)
	}
	a.do("POST", "/exchanges/%2F/amq.default/publish", `{"routing_key":"a","payload":"12345","payload_encoding":"string","properties":{"timestamp":1000000}}`, 200)
	a.publish("a", "123")
	a.publish("b", "1")
	a.do("POST", "/queues/%2F/b/get", `{"count":2,"ackmode":"ack_requeue_false","encoding":"auto"}`, 200)
	v, _ := a.vhosts.Get("/")
	sum, now := noQueues(), time.Now().Add(time.Minute)
	var one queueSample
	for _, ref := range v.QueueRefs() {
		st := ref.Queue.Status()
		one.fill(&st, now, float64(st.Ready))
		sum.plus(&one)
	}
	if sum.st.Ready != 2 || sum.st.ReadyBytes != 8 || sum.st.Published != 3 || sum.st.GotNoAck != 1 || sum.inMemory != 8 {
		t.Errorf("sum = %+v", sum)
	}
	if sum.drain != 2 || sum.age < 59 || sum.age > 61 || sum.head != 1e6 {
		t.Errorf("drain %v, age %v, head %v; want the worst of all: 2, about 60, 1e6", sum.drain, sum.age, sum.head)
	}
}

// A list of queues that is kept goes with each queue that comes or goes.
func TestQueuesAreCountedAtOnce(t *testing.T) {
	a := newAPI(t, nil)
	for range 2 {
		wantLines(t, a.scrape("/metrics"), "rabbitmq_queues 0")
		a.do("PUT", "/queues/%2F/q", "", 201)
		wantLines(t, a.scrape("/metrics"), "rabbitmq_queues 1")
		a.do("DELETE", "/queues/%2F/q", "", 204)
	}
	wantLines(t, a.scrape("/metrics"), "rabbitmq_queues 0")
}
