package management

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/vhost"
)

// A totalsCollector is the prometheus.Collector of /metrics. What it keeps
// between two scrapes makes that counters never fall: what goes while it looks is
// missed until the next scrape.
type totalsCollector struct {
	s *Server // immutable

	mu     sync.Mutex // guards the fields below; held for one scrape
	recent *tally
	sample queueSample        // scratch
	peaks  map[string]float64 // the highest value of each counter so far
}

// A burial is where messages ended: in what type of queue, and with what strategy
// for dead letters.
type burial struct{ typ, strategy string }

// sums are the totals of figures over objects.
type sums[T any] struct {
	figures []figure[T]
	values  []float64
}

func newSums[T any](figures []figure[T]) sums[T] {
	return sums[T]{figures, make([]float64, len(figures))}
}

func (s *sums[T]) add(o *T) {
	for i := range s.figures {
		s.values[i] += s.figures[i].value(o)
	}
}

// A tally is what a scrape has added up.
type tally struct {
	at, done time.Time

	queues      queueSample
	exchanges   sums[exchangeSample]
	channels    sums[Channel]
	connections sums[Connection]

	queueCount, consumerCount, channelCount, connectionCount, publishers int

	byType     map[string]*queue.Status // counters of queues, also of those that are gone
	ends       map[burial]endings       // of all queues ever
	unroutable uint64                   // publishes
	churn      counters
	gone       pastFigures
	routed     float64 // by the exchanges there are
	dead       deadTargets
	// confirmable is how many publishes of open channels are or were to be confirmed.
	confirmable float64
}

// queueTypes are the types of queue that totals are told apart by.
var queueTypes = []string{queue.Classic, queue.Quorum, queue.Stream}

func newTotalsCollector(s *Server) *totalsCollector {
	return &totalsCollector{s: s, peaks: make(map[string]float64)}
}

// Describe describes nothing: the metrics are checked when they are collected.
func (c *totalsCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *totalsCollector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &emitter{ch: ch, prefix: "rabbitmq_", peaks: c.peaks}
	t := c.tally()
	e.identity(c.s)
	e.totals(t)
	e.broker(c.s, t)
	e.exchangeTotals(t)
	e.nodeCoarse(c.s)
	e.nodeLimits(c.s)
	e.persister(c.s)
	e.alarms(c.s)
	e.store(c.s)
}

// collectBroker emits what cannot be told by object.
func (c *totalsCollector) collectBroker(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &emitter{ch: ch, prefix: "rabbitmq_", peaks: c.peaks}
	e.broker(c.s, c.tally())
	e.persister(c.s)
	e.store(c.s)
}

// broker emits the totals that have no objects.
func (e *emitter) broker(s *Server, t *tally) {
	e.globals(t)
	e.churn(t)
	e.authAttempts(s)
	e.distributions(s)
}

// tally adds up what there is. c.mu must be held.
func (c *totalsCollector) tally() *tally {
	if t := c.recent; t != nil {
		if took := t.done.Sub(t.at); took > quickScrape && time.Since(t.at) < min(maxShare*took, maxStale) {
			return t
		}
	}
	t := &tally{at: time.Now(), dead: make(deadTargets), byType: make(map[string]*queue.Status), ends: make(map[burial]endings),
		queues: noQueues(), exchanges: newSums(exchangeMetrics()), channels: newSums(channelMetrics()), connections: newSums(connectionMetrics())}
	for _, typ := range queueTypes {
		t.byType[typ] = &queue.Status{}
	}
	// What is gone comes first: an object that goes meanwhile is then missed
	// once, which the peaks hide, and never counted twice.
	t.gone, t.churn = readPast(&c.s.cfg), churnCounters(&c.s.cfg)
	t.unroutable = c.s.cfg.VHosts.Unroutable()
	t.addPast()
	for _, name := range c.s.cfg.VHosts.Names() {
		if v, ok := c.s.cfg.VHosts.Get(name); ok {
			c.addVHost(t, v)
		}
	}
	t.addConnections(c.s.cfg.Connections)
	t.done = time.Now()
	c.recent = t
	return t
}

func (c *totalsCollector) addVHost(t *tally, v *vhost.VHost) {
	q, refs := &c.sample, v.QueueRefs()
	for i := range refs {
		ref := &refs[i]
		st, drain := ref.Queue.Status(), math.NaN()
		if st.Ready > 0 {
			drain = c.s.sampler.drain(v.Name(), ref.Spec.Name, st.Ready)
		}
		q.fill(&st, t.at, drain)
		t.queueCount++
		t.consumerCount += st.Consumers
		t.queues.plus(q)
		t.ofType(ref.Type).AddCounters(&st)
		t.noteEnds(ref, &st)
		t.dead.note(v, ref, &st)
	}
	for info := range v.Exchanges() {
		if hidden(v, &info) {
			continue
		}
		x := exchangeSample{published: info.Published, routed: info.Routed}
		t.exchanges.add(&x)
		t.routed += float64(x.routed)
	}
}

func (t *tally) addConnections(from Connections) {
	connections, channels := from.Connections(), from.Channels()
	t.connectionCount, t.channelCount = len(connections), len(channels)
	for i := range connections {
		t.connections.add(&connections[i])
	}
	for i := range channels {
		i := &channels[i]
		t.confirmable += float64(i.Confirmable)
		t.channels.add(i)
		if i.Published > 0 {
			t.publishers++
		}
	}
}

// ofType is where a queue's counters go. A type that is not known is one of a
// queue that went before it was looked at.
func (t *tally) ofType(typ string) *queue.Status {
	if c := t.byType[typ]; c != nil {
		return c
	}
	return t.byType[queue.Classic]
}

// noteEnds adds the ends of messages in a queue.
func (t *tally) noteEnds(ref *vhost.QueueRef, st *queue.Status) {
	ends := endsOf(st)
	if ends == (endings{}) {
		return
	}
	of := burial{ref.Type, queue.DeadLetterStrategy(*ref.Spec.Arguments, st.Policy)}
	sum := t.ends[of]
	sum.plus(ends)
	t.ends[of] = sum
}

// endTotal is how many messages came to an end in all queues ever.
func (t *tally) endTotal(e end) (n float64) {
	for _, sum := range t.ends {
		n += float64(sum[e])
	}
	return n
}

// totals emits the figures of objects without saying which.
func (e *emitter) totals(t *tally) {
	emitQueues(e, t, queueMetrics())
	emitTotals(e, t, &t.exchanges, anExchange)
	emitTotals(e, t, &t.channels, aChannel)
	emitTotals(e, t, &t.connections, aConnection)
	ours := *e
	ours.prefix = "leveret_"
	ours.gauge("dead_letter_messages", "Messages in the queues that dead letters go to", float64(t.dead.messages()))
	emitQueues(&ours, t, ownQueueMetrics())
}

func emitTotals[T any](e *emitter, t *tally, s *sums[T], k kind) {
	for i := range s.figures {
		emitTotal(e, t, &s.figures[i], s.values[i], k)
	}
}

func emitQueues(e *emitter, t *tally, figures []queueFigure) {
	for i := range figures {
		emitTotal(e, t, &figures[i], figures[i].value(&t.queues), aQueue)
	}
}

// emitTotal emits the total of a figure: its sum over the objects there are, and
// for a counter what those that are gone had counted.
func emitTotal[T any](e *emitter, t *tally, f *figure[T], sum float64, k kind) {
	switch {
	case f.count == 0:
		e.gauge(f.name, f.help, sum)
	case f.count >= countsEnds:
		e.counter(f.name, f.help, t.endTotal(end(f.count-countsEnds)))
	default:
		e.counter(f.name, f.help, sum+float64(t.gone.of(k)[f.count-1]))
	}
}

// globals emits what RabbitMQ counts of each protocol.
func (e *emitter) globals(t *tally) {
	amqp := labels{names: []string{"protocol"}, values: []string{"amqp091"}}
	mayConfirm := float64(t.gone.confirmable) + t.confirmable
	returned, dropped := t.unrouted()
	for _, m := range []struct {
		name, help string
		value      float64
	}{
		{"received", "Messages received from publishers", t.ever(anExchange, mPublishIn, t.exchanges.value("exchange_messages_published_total"))},
		{"received_confirm", "Messages received on channels that confirm", mayConfirm},
		{"routed", "Messages that went into queues, once for each queue", t.ever(anExchange, mPublishOut, t.routed)},
		{"confirmed", "Messages confirmed to publishers", t.confirmed()},
		{"unroutable_returned", "Messages that reached no queue and were returned", returned},
		{"unroutable_dropped", "Messages that reached no queue and were dropped", dropped},
	} {
		e.counter("global_messages_"+m.name+"_total", m.help, m.value, amqp)
	}
	e.gauge("global_publishers", "Channels that have published", float64(t.publishers), amqp)
	e.gauge("global_consumers", "Consumers", float64(t.consumerCount), amqp)
	for _, typ := range queueTypes {
		e.ofType(t, typ)
	}
	e.deadLetters(t)
}

// ever is a counter's total over the objects that there are, and those that are gone.
func (t *tally) ever(k kind, m metric, live float64) float64 { return live + float64(t.gone.of(k)[m]) }

func (t *tally) confirmed() float64 {
	return t.ever(aChannel, mConfirm, t.channels.value("channel_messages_confirmed_total"))
}

// unrouted is what became of publishes that reached no queue.
func (t *tally) unrouted() (returned, dropped float64) {
	returned = t.ever(aChannel, mReturnUnroutable, t.channels.value("channel_messages_unroutable_returned_total"))
	return returned, max(0, float64(t.unroutable)-returned)
}

// exchangeTotals emits what is known of all exchanges and channels together, and not
// of each.
func (e *emitter) exchangeTotals(t *tally) {
	returned, dropped := t.unrouted()
	e.counter("exchange_messages_confirmed_total", "Messages confirmed to publishers", t.confirmed())
	e.counter("exchange_messages_unroutable_returned_total", "Messages that reached no queue and were returned", returned)
	e.counter("exchange_messages_unroutable_dropped_total", "Messages that reached no queue and were dropped", dropped)
	e.counter("channel_messages_unroutable_dropped_total", "Messages that reached no queue and were dropped", dropped)
	e.counter("queue_exchange_messages_published_total", "Messages that exchanges have routed into queues, once for each queue",
		t.ever(anExchange, mPublishOut, t.routed))
}

// value is the total of a figure by its name; 0 if there is none.
func (s *sums[T]) value(name string) float64 {
	i := slices.IndexFunc(s.figures, func(f figure[T]) bool { return f.name == name })
	if i < 0 {
		return 0
	}
	return s.values[i]
}

// ofType emits what RabbitMQ counts of each protocol and type of queue.
func (e *emitter) ofType(t *tally, typ string) {
	c := queueCounters(t.byType[typ])
	l := labels{[]string{"protocol", "queue_type"}, []string{"amqp091", typeLabel(typ)}}
	for _, m := range []struct {
		name, help string
		metric     metric
	}{
		{"delivered", "Messages delivered in any way", mDeliverGet},
		{"delivered_consume_manual_ack", "Messages delivered to consumers that acknowledge", mDeliver},
		{"delivered_consume_auto_ack", "Messages delivered to consumers that do not acknowledge", mDeliverNoAck},
		{"delivered_get_manual_ack", "Messages got with basic.get, to be acknowledged", mGet},
		{"delivered_get_auto_ack", "Messages got with basic.get without acknowledgement", mGetNoAck},
		{"get_empty", "basic.get of an empty queue", mGetEmpty},
		{"redelivered", "Messages delivered again", mRedeliver},
		{"acknowledged", "Messages acknowledged", mAck},
	} {
		e.counter("global_messages_"+m.name+"_total", m.help, float64(c[m.metric]), l)
	}
}

// typeLabel is a type of queue as labels have it (RabbitMQ 4.0).
func typeLabel(typ string) string { return "rabbit_" + typ + "_queue" }

// deaths are the reasons for which messages die.
var deaths = []struct {
	name, help string
	end        end
}{
	{"delivery_limit", "Messages that were delivered too often", overLimit},
	{"expired", "Messages whose time to live ran out", expired},
	{"maxlen", "Messages that went because a queue was at its maximum length", dropped},
	{"rejected", "Messages that consumers have rejected", rejected},
}

// deadLetters emits the ends of messages. In streams nothing dies.
func (e *emitter) deadLetters(t *tally) {
	for _, typ := range []string{queue.Classic, queue.Quorum} {
		for _, strategy := range []string{queue.StrategyDisabled, queue.StrategyAtMostOnce, queue.StrategyAtLeastOnce} {
			if strategy == queue.StrategyAtLeastOnce && typ != queue.Quorum {
				continue
			}
			n, l := t.ends[burial{typ, strategy}], with("queue_type", typeLabel(typ), "dead_letter_strategy", strategy)
			for _, d := range deaths {
				e.counter("global_messages_dead_lettered_"+d.name+"_total", d.help, float64(n[d.end]), l)
			}
		}
	}
	n := t.ends[burial{queue.Quorum, queue.StrategyAtLeastOnce}]
	e.counter("global_messages_dead_lettered_confirmed_total", "Dead letters that their target queues have confirmed", float64(n[confirmed]),
		with("queue_type", typeLabel(queue.Quorum), "dead_letter_strategy", queue.StrategyAtLeastOnce))
}
