package vhost

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// newSequenced returns a persistent message with a producer's number.
func newSequenced(key, producer string, number int64) *message.Message {
	m := newHeld("", key, fmt.Sprint(producer, number), true, "x-producer-id", producer, "x-producer-sequence", number)
	return m
}

// outcome remembers what it was told of a receipt.
type outcome struct {
	settled int
	refused []uint64
	failed  bool
}

func (o *outcome) Settled(r *message.Receipt) {
	o.settled++
	o.refused, o.failed = r.Outcome()
}

// publishNumber publishes one message with a number, and returns what becomes of it.
func publishNumber(t *testing.T, v *VHost, key, producer string, number int64) *outcome {
	t.Helper()
	var o outcome
	p := v.NewPublisher()
	r := message.NewReceipt(&o, 7, 7)
	r.Hold(1)
	p.Add(route(t, p, "", key), newSequenced(key, producer, number), r, 7)
	p.Flush()
	r.Release()
	return &o
}

func TestRetriesAreNotStoredTwice(t *testing.T) {
	v := newVHost(t)
	q := declareQueue(t, v, QueueDeclare{Name: "q", Durable: true})
	for _, number := range []int64{0, 1, 1, 3, 2, 0, 4} { // 2 is a number that was passed over
		if o := publishNumber(t, v, "q", "p", number); o.settled != 1 || o.refused != nil || o.failed {
			t.Errorf("number %d: %+v, want it confirmed", number, *o)
		}
	}
	publishNumber(t, v, "q", "other", 1)
	wantBodies(t, q, "p0", "p1", "p3", "p4", "other1")
}

func TestProducerHeaders(t *testing.T) {
	for _, tt := range []struct {
		headers []any
		number  int64
		ok      bool
	}{
		{[]any{"x-producer-id", "p", "x-producer-sequence", int32(5)}, 5, true},
		{[]any{"x-producer-sequence", "18", "a", true, "x-producer-id", "p"}, 18, true},
		{[]any{"x-producer-id", "p", "x-producer-sequence", int32(-1)}, 0, false},
		{[]any{"x-producer-id", "p", "x-producer-sequence", "x"}, 0, false},
		{[]any{"x-producer-id", "p"}, 0, false},
		{[]any{"x-producer-sequence", int32(5)}, 0, false},
		{[]any{"x-producer-id", "", "x-producer-sequence", int32(5)}, 0, false},
		{[]any{"x-producer-id", int32(1), "x-producer-sequence", int32(5)}, 0, false},
	} {
		_, number, ok := producerOf(headerFields(newHeld("", "", "", false, tt.headers...)))
		if ok != tt.ok || ok && number != tt.number {
			t.Errorf("%v: number %d, %v; want %d, %v", tt.headers, number, ok, tt.number, tt.ok)
		}
	}
}

func TestRetryWaitsForTheFirstCopy(t *testing.T) {
	for _, fail := range []bool{false, true} {
		store := newFakeStore()
		v, _ := open(t, store).Get("/")
		q := declareQueue(t, v, QueueDeclare{Name: "q", Durable: true})
		p := v.NewPublisher()
		var first, second outcome
		a, b := message.NewReceipt(&first, 1, 1), message.NewReceipt(&second, 9, 9)
		a.Hold(1)
		b.Hold(1)
		p.Add(route(t, p, "", "q"), newSequenced("q", "p", 1), a, 1)
		other := v.NewPublisher()
		other.Add(route(t, other, "", "q"), newSequenced("q", "p", 1), b, 9)
		other.Flush()
		b.Release()
		if second.settled != 0 {
			t.Fatal("the retry was confirmed before the first copy was in the queue")
		}
		if fail {
			p.flights[0].r.Fail()
		}
		p.Flush()
		a.Release()
		if first.settled != 1 || second.settled != 1 || first.failed != fail || second.failed != fail {
			t.Errorf("fail %v: first copy %+v, retry %+v", fail, first, second)
		}
		wantBodies(t, q, "p1")
		publishNumber(t, v, "q", "p", 1)
		if fail {
			wantBodies(t, q, "p1", "p1") // this queue has kept it although the store failed
		} else {
			wantBodies(t, q, "p1")
		}
	}
}

// refusingQueue refuses everything while it is full.
type refusingQueue struct {
	fakeQueue
	full bool
}

func (q *refusingQueue) Enqueue(batch []queue.Entry) queue.Writes {
	for _, e := range batch {
		if q.full && e.Receipt != nil {
			e.Receipt.Refuse(e.Seq)
		}
	}
	if q.full {
		batch = slices.Clone(batch)
		for i := range batch {
			batch[i].Msg = &message.Message{Envelope: &message.Envelope{}, Body: []byte("refused")}
		}
	}
	return q.fakeQueue.Enqueue(batch)
}

func TestWhatWasNotStoredMayBePublishedAgain(t *testing.T) {
	store := newFakeStore()
	var q *refusingQueue
	cfg := Config{Store: store, Factories: map[string]queue.Factory{queue.Classic: func(env queue.Env, spec queue.Spec) (queue.Queue, error) {
		made, err := fakeFactory(env, spec)
		q = &refusingQueue{fakeQueue: fakeQueue{name: spec.Name, env: env, spec: spec, logID: made.(*fakeQueue).logID}}
		return q, err
	}}}
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	v, _ := s.Get("/")
	publishNumber(t, v, "q", "p", 1) // unroutable
	if _, err := v.DeclareQueue(System, QueueDeclare{Name: "q", Durable: true}); err != nil {
		t.Fatal(err)
	}
	publishNumber(t, v, "q", "p", 2)
	q.full = true
	if o := publishNumber(t, v, "q", "p", 3); !slices.Equal(o.refused, []uint64{7}) {
		t.Errorf("refused are %v, want the publisher's number 7", o.refused)
	}
	q.full = false
	publishNumber(t, v, "q", "p", 4)
	p := v.NewPublisher()
	p.Add(route(t, p, "", "q"), newSequenced("q", "p", 5), nil, 0)
	p.Discard()
	publishNumber(t, v, "q", "p", 6)
	for _, number := range []int64{1, 3, 5, 6} {
		publishNumber(t, v, "q", "p", number)
	}
	wantBodies(t, &q.fakeQueue, "p2", "refused", "p4", "p6", "p1", "p3", "p5")
}

func TestConfirmWaitsForTheRecordOfTheProducer(t *testing.T) {
	store := newFakeStore()
	v, _ := open(t, store).Get("/")
	declareQueue(t, v, QueueDeclare{Name: "q", Durable: true})
	log := store.logs[v.producers.log.ID()]
	growing := &growingLog{fakeLog: store.logs[v.queueEntry("q").log.ID()]}
	v.queueEntry("q").log = growing
	log.manual = true
	o := publishNumber(t, v, "q", "p", 1)
	if o.settled != 0 || log.len() != 1 {
		t.Fatalf("settled %d times with %d records, before the record was durable", o.settled, log.len())
	}
	log.commit()
	if o.settled != 1 {
		t.Error("not confirmed when the record was durable")
	}
	log.commit()
	if got := log.len(); got != 1 {
		t.Errorf("%d records, want the complete one only", got)
	}
}

// growingLog has one record more each time it is asked.
type growingLog struct {
	*fakeLog
	n uint64
}

func (l *growingLog) LastID() uint64 {
	l.n++
	return l.n
}

func TestNumbersSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	store := openDisk(t, dir)
	s := openClassic(t, store)
	v, _ := s.Get("/")
	declareClassic(t, v, "q", true, nil)
	send := func(number int64, more ...any) {
		headers := args(append([]any{"x-producer-id", "p", "x-producer-sequence", number}, more...)...)
		publishConfirmed(t, v, "", "q", fmt.Sprint(number), headers)
	}
	for number := range int64(20) {
		send(number)
	}
	if got := len(drain(t, v, "q")); got != 20 {
		t.Fatalf("%d messages, want 20", got)
	}
	send(20)
	send(21, "x-delivery-delay", int64(1e9))
	restart := func() {
		t.Helper()
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		store = openDisk(t, dir)
		s = openClassic(t, store)
		v, _ = s.Get("/")
	}
	restart()
	for _, number := range []int64{0, 19, 20, 21, 22} {
		send(number)
	}
	restart()
	send(22)
	if got, want := bodiesOf(drain(t, v, "q")), []string{"20", "22"}; !slices.Equal(got, want) {
		t.Errorf("queue has %q, want %q", got, want)
	}
	if got := v.held.len(); got != 1 {
		t.Errorf("%d messages are held, want 1", got)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// recoverProducer recovers the producer p from its log, with what the log of a queue
// has, and returns it with the numbers that are free.
func recoverProducer(t *testing.T, log *fakeLog, queueLog []persistence.Record) (pr *producer, free []int64) {
	t.Helper()
	l := &fakeLog{id: 9, records: queueLog, lanes: true}
	return recoverProducerFrom(t, log, map[persistence.LogID]persistence.Log{9: l}, false)
}

// recoverProducerFrom does so from logs of which some are missing if incomplete.
func recoverProducerFrom(t *testing.T, log *fakeLog, logs map[persistence.LogID]persistence.Log, incomplete bool) (pr *producer, free []int64) {
	t.Helper()
	producers := &producers{byID: make(map[string]*producer), log: log, lastID: log.LastID()}
	if err := producers.recover(logs, incomplete); err != nil {
		t.Fatal(err)
	}
	pr = producers.byID["p"]
	return pr, slices.Sorted(maps.Keys(pr.holes))
}

func TestRecordOfAProducerAfterAKill(t *testing.T) {
	held := func(n int64) persistence.Record {
		return persistence.Record{ID: uint64(n), Header: newSequenced("q", "p", n).Header}
	}
	for _, tt := range []struct {
		name  string
		log   []persistence.Record // of the queue, as found
		later []persistence.Record // the same after another kill
		free  []int64
	}{
		{"nothing got there, then others did", nil, []persistence.Record{{ID: 4}}, []int64{0, 2, 3, 4}},
		{"one got there", []persistence.Record{held(1), held(2)}, nil, []int64{0, 3, 4}},
		{"the last one got there, others were consumed, then it was", []persistence.Record{held(4)}, nil, []int64{0}},
	} {
		stored := storedProducer{Last: 4, Free: []int64{0}, Pending: []storedPending{{Numbers: []int64{2, 3, 4}, Places: []place{{9, 1, 4}, {8, 1, 5}}}}}
		log := &fakeLog{records: []persistence.Record{
			{ID: 1, Key: "p", Body: encode(&storedProducer{Last: 1})}, {ID: 2, Key: "p", Body: encode(&stored)}}}
		for _, found := range [][]persistence.Record{tt.log, tt.later} {
			if pr, free := recoverProducer(t, log, found); !slices.Equal(free, tt.free) || pr.last != 4 || !slices.Equal(pr.records, []uint64{3}) {
				t.Errorf("%s: free are %v, last %d, records %v; want %v, 4 and record 3", tt.name, free, pr.last, pr.records, tt.free)
			}
		}
		if len(log.records) != 1 {
			t.Errorf("%s: the log has %d records, want 1", tt.name, len(log.records))
		}
	}
}

// What is said of a queue that could not be read holds only until it can be.
func TestProducersOfAQueueThatIsLeftOut(t *testing.T) {
	stored := storedProducer{Last: 3, Pending: []storedPending{{Numbers: []int64{3}, Places: []place{{9, 1, 4}}}}}
	log := &fakeLog{records: []persistence.Record{{ID: 1, Key: "p", Body: encode(&stored)}}}
	if _, free := recoverProducerFrom(t, log, nil, true); len(free) != 0 {
		t.Errorf("without the queue, free are %v, want none", free)
	}
	if _, free := recoverProducer(t, log, nil); !slices.Equal(free, []int64{3}) {
		t.Errorf("with the queue, free are %v, want 3", free)
	}
}

func TestUnreadableRecordsOfProducersAreLeftOut(t *testing.T) {
	store := newFakeStore()
	v, _ := open(t, store).Get("/")
	declareQueue(t, v, QueueDeclare{Name: "q", Durable: true})
	v.producers.log.(*fakeLog).records = []persistence.Record{
		{ID: 1, Key: "known", Body: encode(&storedProducer{Last: 7})},
		{ID: 2, Key: "known", Body: []byte("{")},
		{ID: 3, Key: "unknown", Body: []byte(`{"last":"x"}`)},
		{ID: 4, Key: "p", Body: encode(&storedProducer{Last: 5})},
	}
	core, logged := observer.New(zap.ErrorLevel)
	s, err := Open(Config{Store: store, Factories: map[string]queue.Factory{queue.Classic: fakeFactory}, Log: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	v, _ = s.Get("/")
	last := make(map[string]int64)
	for id, pr := range v.producers.byID {
		last[id] = pr.last
	}
	if want := map[string]int64{"known": 7, "unknown": -1, "p": 5}; !maps.Equal(last, want) {
		t.Errorf("last numbers are %v, want %v", last, want)
	}
	for i, producer := range []string{"known", "unknown"} {
		if logged.Len() != 2 || logged.All()[i].ContextMap()["producer"] != producer || logged.All()[i].ContextMap()["vhost"] != "/" {
			t.Fatalf("logged %v, want a line for each of the two", logged.All())
		}
	}
	// The next record of a producer replaces all of them.
	if known, unknown := v.producers.byID["known"].records, v.producers.byID["unknown"].records; !slices.Equal(known, []uint64{1, 2}) || !slices.Equal(unknown, []uint64{3}) {
		t.Errorf("records are %v and %v, want 1 and 2, and 3", known, unknown)
	}
}

func TestProducersAreBounded(t *testing.T) {
	v := newVHost(t)
	p := v.NewPublisher()
	id := func(i int) []byte { return fmt.Append(nil, i) }
	for i := range maxProducers + 10 {
		e := queue.Entry{Msg: newMessage("", "q")}
		if p.claim(&e, id(i), 1) {
			t.Fatalf("message of producer %d is a retry", i)
		}
		p.Flush()
	}
	if got, want := len(v.producers.byID), maxProducers-maxProducers/16+10; got != want {
		t.Errorf("%d producers, want %d", got, want)
	}
	if v.producers.byID["0"] != nil || v.producers.byID[string(id(maxProducers/16))] == nil {
		t.Error("not those unused for longest were forgotten")
	}
	pr := newProducer("p")
	for n := range int64(maxHoles + 5) {
		pr.freeLocked(n)
	}
	if _, ok := pr.holes[4]; len(pr.holes) != maxHoles || ok {
		t.Errorf("%d numbers are free, 4 is %v", len(pr.holes), ok)
	}
}

func BenchmarkPublishSequenced(b *testing.B) {
	v := newBenchVHost(b, 1)
	p := v.NewPublisher()
	rt := route(b, p, "", "a")
	m := newSequenced("a", "p", 0)
	h := frames.Properties{}
	b.ReportAllocs()
	n := int64(0)
	for b.Loop() {
		b.StopTimer()
		m.Header = header(h, args("x-producer-id", "p", "x-producer-sequence", n))
		n++
		b.StartTimer()
		p.Add(rt, m, nil, 0)
		if n%64 == 0 {
			p.Flush()
		}
	}
}

// An appendingQueue has something to do after each batch, which must not be done
// within Store.Together.
type appendingQueue struct {
	*fakeQueue
	then func()
}

func (q *appendingQueue) Enqueue(batch []queue.Entry) queue.Writes {
	defer q.then()
	return q.fakeQueue.Enqueue(batch)
}

func (q *appendingQueue) EnqueueOnly(batch []queue.Entry) (queue.Writes, func()) {
	return q.fakeQueue.Enqueue(batch), q.then
}

// togetherStore knows when Together is under way.
type togetherStore struct {
	*fakeStore
	together bool
}

func (s *togetherStore) Together(fn func()) {
	s.together = true
	fn()
	s.together = false
}

func TestQueuesOnlyAppendTogether(t *testing.T) {
	store := &togetherStore{fakeStore: newFakeStore()}
	var v *VHost
	done := 0
	then := func() {
		done++
		if store.together || !v.producers.order.TryLock() {
			t.Error("a queue works while nothing can be committed, or no other producer can publish")
			return
		}
		v.producers.order.Unlock()
	}
	s, err := Open(Config{Store: store, Factories: map[string]queue.Factory{
		queue.Classic: func(env queue.Env, spec queue.Spec) (queue.Queue, error) {
			q, err := fakeFactory(env, spec)
			return &appendingQueue{q.(*fakeQueue), then}, err
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	v, _ = s.Get("/")
	for _, name := range []string{"a", "b"} {
		if _, err := v.DeclareQueue(System, QueueDeclare{Name: name, Durable: true}); err != nil {
			t.Fatal(err)
		}
		bindQueue(t, v, name, "amq.fanout", "")
	}
	for number := range int64(2) {
		p := v.NewPublisher()
		m := newSequenced("", "p", number)
		m.Exchange = "amq.fanout"
		if add(t, p, m, nil); p.Flush() == 0 {
			t.Error("nothing is to be written")
		}
	}
	if done != 4 {
		t.Errorf("the queues were let work %d times, want 4", done)
	}
}
