package management

import "github.com/leveretmq/leveret/queue"

// A family is metrics that /metrics/detailed shows together. The names are
// RabbitMQ 4.0's, but for the last one.
const (
	queueCoarse     = "queue_coarse_metrics"
	queueConsumers  = "queue_consumer_count"
	queueFigures    = "queue_metrics"
	queueDelivery   = "queue_delivery_metrics"
	queuePublish    = "channel_queue_exchange_metrics"
	exchangeFamily  = "exchange_metrics"
	channelFamily   = "channel_metrics"
	channelPublish  = "channel_exchange_metrics"
	channelDelivery = "channel_queue_metrics"
	connectionBytes = "connection_coarse_metrics"
	connectionOther = "connection_metrics"
	churnFamily     = "connection_churn_metrics"
	authFamily      = "auth_attempt_metrics"
	nodeCoarse      = "node_coarse_metrics"
	nodeFamily      = "node_metrics"
	nodePersister   = "node_persister_metrics"
	queueExtras     = "leveret_queue_metrics"
)

// A figure is one metric that objects of a sort have.
type figure[T any] struct {
	family, name, help string
	also               string // another family that has it, too
	// count is what a counter counts: what objects that are gone had counted
	// still counts in the total. Zero is a gauge.
	count countOf
	value func(*T) float64
}

// A countOf is the sampler's metric and one, or from countsEnds on an end of
// messages.
type countOf uint8

const countsEnds countOf = 200

func counted(m metric) countOf { return countOf(m) + 1 }

// An end is what became of messages that were not consumed.
type end uint8

const (
	deadLettered end = iota
	expired
	dropped
	refused
	rejected  // by consumers
	overLimit // of deliveries
	confirmed // dead letters, by their targets
	endCount
)

// endings are how many messages of a queue, or of several, came to each end.
type endings [endCount]uint64

func endsOf(st *queue.Status) endings {
	return endings{st.DeadLettered, st.Expired, st.Dropped, st.Refused, st.Rejected, st.OverLimit, st.DeadConfirmed}
}

func (e *endings) plus(o endings) {
	for i, n := range o {
		e[i] += n
	}
}

// typ is the metric's type as the text format has it.
func (f *figure[T]) typ() string {
	if f.count == 0 {
		return "gauge"
	}
	return "counter"
}

type (
	queueFigure      = figure[queueSample]
	exchangeFigure   = figure[exchangeSample]
	channelFigure    = figure[Channel]
	connectionFigure = figure[Connection]
)

type exchangeSample struct{ published, routed uint64 }

// queueMetrics are the metrics of queues.
func queueMetrics() []queueFigure {
	level := func(family, name, help string, v func(*queue.Status) int64) queueFigure {
		return queueFigure{family: family, name: "queue_" + name, help: help, value: func(q *queueSample) float64 { return float64(v(&q.st)) }}
	}
	count := func(family, name, help string, m metric, v func(*queue.Status) uint64) queueFigure {
		return queueFigure{family: family, name: "queue_" + name + "_total", help: help, count: counted(m),
			value: func(q *queueSample) float64 { return float64(v(&q.st)) }}
	}
	estimate := func(name, help string, v func(*queueSample) int64) queueFigure {
		return queueFigure{family: queueFigures, name: "queue_" + name, help: help, value: func(q *queueSample) float64 { return float64(v(q)) }}
	}
	return []queueFigure{
		level(queueCoarse, "messages", "Messages in queues, ready and unacknowledged", func(st *queue.Status) int64 { return int64(st.Messages()) }),
		level(queueCoarse, "messages_ready", "Messages that wait for a consumer", func(st *queue.Status) int64 { return int64(st.Ready) }),
		level(queueCoarse, "messages_unacked", "Messages delivered and not acknowledged yet", func(st *queue.Status) int64 { return int64(st.Unacked) }),
		level(queueFigures, "messages_delayed", "Messages that came back and wait to be delivered again", func(st *queue.Status) int64 { return int64(st.Delayed) }),
		{family: queueConsumers, also: queueFigures, name: "queue_consumers", help: "Consumers of queues", value: func(q *queueSample) float64 { return float64(q.st.Consumers) }},
		level(queueFigures, "messages_ram", "Messages whose body is in memory", func(st *queue.Status) int64 { return int64(st.InMemory + st.Unacked) }),
		level(queueFigures, "messages_ready_ram", "Ready messages whose body is in memory", func(st *queue.Status) int64 { return int64(st.InMemory) }),
		level(queueFigures, "messages_unacked_ram", "Unacknowledged messages whose body is in memory", func(st *queue.Status) int64 { return int64(st.Unacked) }),
		level(queueFigures, "messages_persistent", "Messages that are stored on disk", func(st *queue.Status) int64 { return int64(st.Persistent) }),
		level(queueFigures, "messages_paged_out", "Messages whose body is on disk only", func(st *queue.Status) int64 { return int64(st.Ready - st.InMemory) }),
		level(queueFigures, "messages_bytes", "Bytes of message bodies", (*queue.Status).Bytes),
		level(queueFigures, "messages_ready_bytes", "Bytes of the bodies of ready messages", func(st *queue.Status) int64 { return st.ReadyBytes }),
		level(queueFigures, "messages_unacked_bytes", "Bytes of the bodies of unacknowledged messages", func(st *queue.Status) int64 { return st.UnackedBytes }),
		estimate("messages_ram_bytes", "Bytes of message bodies in memory, estimated", func(q *queueSample) int64 { return q.inMemory }),
		estimate("messages_persistent_bytes", "Bytes of the bodies of stored messages, estimated", func(q *queueSample) int64 { return q.stored }),
		estimate("messages_paged_out_bytes", "Bytes of message bodies that are on disk only, estimated",
			func(q *queueSample) int64 { return q.st.ReadyBytes + q.st.UnackedBytes - q.inMemory }),
		estimate("process_memory_bytes", "Memory that queues take in bytes, estimated", func(q *queueSample) int64 { return q.memory }),
		estimate("consumer_capacity", "How much of the time consumers could take messages, from 0 to 1", func(q *queueSample) int64 { return q.keepUp }),
		estimate("consumer_utilisation", "The same as consumer capacity", func(q *queueSample) int64 { return q.keepUp }),
		{family: queueFigures, name: "queue_head_message_timestamp", help: "Property timestamp of the oldest ready message; NaN if it has none",
			value: func(q *queueSample) float64 { return q.head }},
		count(queueDelivery, "get_ack", "Messages got with basic.get, to be acknowledged", mGet, func(st *queue.Status) uint64 { return st.Got }),
		count(queueDelivery, "get", "Messages got with basic.get without acknowledgement", mGetNoAck, func(st *queue.Status) uint64 { return st.GotNoAck }),
		count(queueDelivery, "get_empty", "basic.get of an empty queue", mGetEmpty, func(st *queue.Status) uint64 { return st.GetEmpty }),
		count(queueDelivery, "messages_delivered_ack", "Messages delivered to consumers that acknowledge", mDeliver, func(st *queue.Status) uint64 { return st.Delivered }),
		count(queueDelivery, "messages_delivered", "Messages delivered to consumers that do not acknowledge", mDeliverNoAck, func(st *queue.Status) uint64 { return st.DeliveredNoAck }),
		count(queueDelivery, "messages_redelivered", "Messages delivered again", mRedeliver, func(st *queue.Status) uint64 { return st.Redelivered }),
		count(queueDelivery, "messages_acked", "Messages acknowledged", mAck, func(st *queue.Status) uint64 { return st.Acked }),
		count(queuePublish, "messages_published", "Messages that came into queues", mPublish, func(st *queue.Status) uint64 { return st.Published }),
	}
}

// ownQueueMetrics are those that RabbitMQ does not have.
func ownQueueMetrics() []queueFigure {
	count := func(name, help string, e end) queueFigure {
		return queueFigure{family: queueExtras, name: "queue_" + name + "_total", help: help, count: countsEnds + countOf(e),
			value: func(q *queueSample) float64 { return float64(endsOf(&q.st)[e]) }}
	}
	return []queueFigure{
		{family: queueExtras, name: "queue_oldest_message_age_seconds", help: "Age of the oldest ready message; 0 if there is none",
			value: func(q *queueSample) float64 { return q.age }},
		{family: queueExtras, name: "queue_drain_seconds", help: "Time in which the ready messages will be gone at the present rate; NaN if they do not become fewer",
			value: func(q *queueSample) float64 { return q.drain }},
		count("dead_lettered", "Messages that queues have sent to their dead-letter exchange", deadLettered),
		count("expired", "Messages whose time to live ran out", expired),
		count("dropped", "Messages that went because a queue was at its maximum length", dropped),
		count("refused", "Messages that a full queue has refused", refused),
	}
}

// exchangeMetrics are the metrics of exchanges.
func exchangeMetrics() []exchangeFigure {
	return []exchangeFigure{
		{family: exchangeFamily, name: "exchange_messages_published_total", help: "Messages published to exchanges", count: counted(mPublishIn),
			value: func(x *exchangeSample) float64 { return float64(x.published) }},
	}
}

// channelMetrics are the metrics of channels.
func channelMetrics() []channelFigure {
	level := func(name, help string, v func(*Channel) int) channelFigure {
		return channelFigure{family: channelFamily, name: name, help: help, value: func(c *Channel) float64 { return float64(v(c)) }}
	}
	count := func(family, name, help string, m metric, v func(*Channel) uint64) channelFigure {
		return channelFigure{family: family, name: "channel_" + name + "_total", help: help, count: counted(m),
			value: func(c *Channel) float64 { return float64(v(c)) }}
	}
	return []channelFigure{
		level("channel_consumers", "Consumers on channels", func(c *Channel) int { return c.Consumers }),
		level("channel_messages_unacked", "Messages delivered on channels and not acknowledged yet", func(c *Channel) int { return c.Unacked }),
		level("channel_messages_unconfirmed", "Messages published on channels and not confirmed yet", func(c *Channel) int { return c.Unconfirmed }),
		level("channel_messages_uncommitted", "Messages published in transactions and not committed yet", func(c *Channel) int { return c.Uncommitted }),
		level("channel_acks_uncommitted", "Acknowledgements in transactions that are not committed yet", func(c *Channel) int { return c.AcksWaiting }),
		level("channel_prefetch", "Limit of unacknowledged messages of a whole channel; 0 is none", func(c *Channel) int { return c.GlobalPrefetch }),
		level("consumer_prefetch", "Limit of unacknowledged messages of each new consumer of a channel; 0 is none", func(c *Channel) int { return c.Prefetch }),
		count(channelPublish, "messages_published", "Messages published on channels", mPublish, func(c *Channel) uint64 { return c.Published }),
		count(channelPublish, "messages_confirmed", "Messages confirmed to publishers", mConfirm, func(c *Channel) uint64 { return c.Confirmed }),
		count(channelPublish, "messages_unroutable_returned", "Unroutable messages returned to publishers", mReturnUnroutable, func(c *Channel) uint64 { return c.Returned }),
		count(channelDelivery, "get_ack", "Messages got with basic.get, to be acknowledged", mGet, func(c *Channel) uint64 { return c.Got }),
		count(channelDelivery, "get", "Messages got with basic.get without acknowledgement", mGetNoAck, func(c *Channel) uint64 { return c.GotNoAck }),
		count(channelDelivery, "get_empty", "basic.get of an empty queue", mGetEmpty, func(c *Channel) uint64 { return c.GetEmpty }),
		count(channelDelivery, "messages_delivered_ack", "Messages delivered to consumers that acknowledge", mDeliver, func(c *Channel) uint64 { return c.Delivered }),
		count(channelDelivery, "messages_delivered", "Messages delivered to consumers that do not acknowledge", mDeliverNoAck, func(c *Channel) uint64 { return c.DeliveredNoAck }),
		count(channelDelivery, "messages_redelivered", "Messages delivered again", mRedeliver, func(c *Channel) uint64 { return c.Redelivered }),
		count(channelDelivery, "messages_acked", "Messages acknowledged", mAck, func(c *Channel) uint64 { return c.Acked }),
	}
}

// connectionMetrics are the metrics of connections.
func connectionMetrics() []connectionFigure {
	return []connectionFigure{
		{family: connectionBytes, name: "connection_incoming_bytes_total", help: "Bytes received from clients", count: counted(mReceived),
			value: func(c *Connection) float64 { return float64(c.Received) }},
		{family: connectionBytes, name: "connection_outgoing_bytes_total", help: "Bytes sent to clients", count: counted(mSent),
			value: func(c *Connection) float64 { return float64(c.Sent) }},
		{family: connectionOther, name: "connection_channels", help: "Channels on connections",
			value: func(c *Connection) float64 { return float64(c.Channels) }},
	}
}
