package management

import (
	"fmt"
	"time"
)

// figures are the totals of a vhost or of the broker.
type figures struct {
	counters
	connections, channels, queues, exchanges, consumers int
}

func (f *figures) plus(o *figures) {
	f.counters.plus(&o.counters)
	f.connections += o.connections
	f.channels += o.channels
	f.queues += o.queues
	f.exchanges += o.exchanges
	f.consumers += o.consumers
}

// totals are the figures of all vhosts at one time.
type totals struct {
	at     time.Time
	took   time.Duration
	vhosts map[string]*figures
	past   pastFigures // of what is gone
	churn  counters    // what has come and gone since the start
	// unroutable is how many publishes have reached no queue, returned or not.
	unroutable uint64
}

func (t *totals) of(vhost string) *figures {
	f := t.vhosts[vhost]
	if f == nil {
		f = &figures{}
		t.vhosts[vhost] = f
	}
	return f
}

// orNone is of, but what is of a vhost that is no more goes under "".
func (t *totals) orNone(vhost string) *figures {
	if f := t.vhosts[vhost]; f != nil {
		return f
	}
	return t.of("")
}

// collect adds up what there is now. If each is not nil it gets every object
// with its figures, which it may not keep.
func collect(cfg *Config, each func(p part, c *counters)) *totals {
	t := &totals{at: time.Now(), vhosts: make(map[string]*figures), past: readPast(cfg), churn: churnCounters(cfg),
		unroutable: cfg.VHosts.Unroutable()} // before what was returned of them is read
	if each == nil {
		each = func(part, *counters) {}
	}
	for _, name := range cfg.VHosts.Names() {
		t.vhost(cfg, name, each)
	}
	t.open(cfg.Connections, each)
	t.took = time.Since(t.at)
	return t
}

// open adds up what clients have open.
func (t *totals) open(from Connections, each func(p part, c *counters)) {
	connections, channels := from.Connections(), from.Channels()
	var c counters // one for all: each gets its address
	for n := range connections {
		i := &connections[n]
		f := t.of(i.VHost)
		c = connectionCounters(i)
		f.connections++
		f.counters.plus(&c)
		each(part{aConnection, i.VHost, i.Name}, &c)
	}
	for n := range channels {
		i := &channels[n]
		f := t.of(i.VHost)
		c = channelCounters(i)
		f.channels++
		f.counters[mConfirm] += c[mConfirm]
		f.counters[mReturnUnroutable] += c[mReturnUnroutable]
		f.counters[mDropUnroutable] += c[mDropUnroutable]
		each(part{aChannel, i.VHost, channelName(i.Connection, i.Number)}, &c)
	}
}

// vhost adds up a vhost's queues and exchanges. Publishes are counted where
// they come in, at the exchanges; deliveries at the queues.
func (t *totals) vhost(cfg *Config, name string, each func(p part, c *counters)) {
	v, ok := cfg.VHosts.Get(name)
	if !ok {
		return // deleted meanwhile
	}
	f := t.of(name)
	var c counters // one for all: each gets its address
	for _, q := range v.QueueRefs() {
		st := q.Queue.Status()
		c = queueCounters(&st)
		f.queues++
		f.consumers += st.Consumers
		each(part{aQueue, name, q.Spec.Name}, &c)
		c[mPublish] = 0
		if !cfg.Options.aggregates(q.Spec.Name) {
			c[mMessages], c[mReady], c[mUnacked] = 0, 0, 0
		}
		f.counters.plus(&c)
	}
	for info := range v.Exchanges() {
		if hidden(v, &info) {
			continue
		}
		c = exchangeCounters(&info)
		f.exchanges++
		f.counters[mPublish] += c[mPublishIn]
		each(part{anExchange, name, info.X.Name}, &c)
	}
}

// churnCounters are how many connections, channels and queues have come and gone
// since the start.
func churnCounters(cfg *Config) (c counters) {
	n, q := cfg.Connections.Churn(), cfg.VHosts.QueueTotals()
	c[mConnectionCreated], c[mConnectionClosed] = int64(n.ConnectionsOpened), int64(n.ConnectionsClosed)
	c[mChannelCreated], c[mChannelClosed] = int64(n.ChannelsOpened), int64(n.ChannelsClosed)
	c[mQueueDeclared], c[mQueueCreated], c[mQueueDeleted] = int64(q.Declared), int64(q.Created), int64(q.Deleted)
	return c
}

// sum adds up all vhosts.
func (t *totals) sum() (sum figures) {
	for _, f := range t.vhosts {
		sum.plus(f)
	}
	sum.counters.plus(&t.churn)
	return sum
}

func channelName(connection string, number uint16) string {
	return fmt.Sprintf("%s (%d)", connection, number)
}
