package management

import (
	"slices"

	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/vhost"
)

// A metric is one figure of an object that has a rate: a counter, or from
// messages on a level.
type metric uint8

const (
	mPublish metric = iota
	mPublishIn
	mPublishOut
	mConfirm
	mReturnUnroutable
	mDropUnroutable
	mAck
	mDeliver
	mDeliverGet
	mDeliverNoAck
	mGet
	mGetEmpty
	mGetNoAck
	mRedeliver
	mDiskReads
	mDiskWrites
	mReceived
	mSent
	mConnectionCreated
	mConnectionClosed
	mChannelCreated
	mChannelClosed
	mQueueDeclared
	mQueueCreated
	mQueueDeleted
	mCollections // of garbage
	mReclaimed
	mSwitches
	mWrites // to the store's files
	mSyncs
	mRecords

	mMessages // this and those below are levels
	mReady
	mUnacked
	mMemory
	mFiles
	mSockets
	mProcesses
	mDiskFree

	metricCount
)

// level says that the figure goes up and down.
func (m metric) level() bool { return m >= mMessages }

// metricNames are the members of JSON objects (RabbitMQ 4.0), by metric.
var metricNames = [metricCount]string{
	"publish", "publish_in", "publish_out", "confirm", "return_unroutable", "drop_unroutable",
	"ack", "deliver", "deliver_get", "deliver_no_ack", "get", "get_empty", "get_no_ack", "redeliver",
	"disk_reads", "disk_writes", "recv_oct", "send_oct",
	"connection_created", "connection_closed", "channel_created", "channel_closed",
	"queue_declared", "queue_created", "queue_deleted", "gc_num", "gc_bytes_reclaimed", "context_switches",
	"io_write_count", "io_sync_count", "queue_index_write_count",
	"messages", "messages_ready", "messages_unacknowledged",
	"mem_used", "fd_used", "sockets_used", "proc_used", "disk_free",
}

// detailNames are the members with the rates.
var detailNames = func() (names [metricCount]string) {
	for m, name := range metricNames {
		names[m] = name + "_details"
	}
	return names
}()

// Groups of metrics that are shown together.
var (
	consumerMetrics = []metric{mAck, mDeliver, mDeliverGet, mDeliverNoAck, mGet, mGetEmpty, mGetNoAck, mRedeliver}
	overviewMetrics = []metric{mAck, mConfirm, mDeliver, mDeliverGet, mDeliverNoAck, mDiskReads, mDiskWrites, mDropUnroutable,
		mGet, mGetEmpty, mGetNoAck, mPublish, mRedeliver, mReturnUnroutable}
	levelMetrics = []metric{mMessages, mReady, mUnacked}
	octetMetrics = []metric{mReceived, mSent}
	churnMetrics = []metric{mChannelClosed, mChannelCreated, mConnectionClosed, mConnectionCreated, mQueueCreated, mQueueDeclared, mQueueDeleted}
	nodeMetrics  = []metric{mMemory, mFiles, mSockets, mProcesses, mDiskFree, mCollections, mReclaimed, mSwitches, mWrites, mSyncs, mRecords}
)

// counters are the figures of an object, by metric.
type counters [metricCount]int64

// plus adds another object's figures.
func (c *counters) plus(o *counters) {
	for m, n := range o {
		c[m] += n
	}
}

// minus takes another object's counters away, but not its levels.
func (c *counters) minus(o *counters) {
	for m, n := range o {
		if !metric(m).level() {
			c[m] -= n
		}
	}
}

// any says whether one of the metrics is not 0.
func (c *counters) any(metrics []metric) bool {
	for _, m := range metrics {
		if c[m] != 0 {
			return true
		}
	}
	return false
}

func queueCounters(st *queue.Status) counters {
	var c counters
	c[mPublish] = int64(st.Published)
	c[mAck] = int64(st.Acked)
	c[mDeliver] = int64(st.Delivered)
	c[mDeliverNoAck] = int64(st.DeliveredNoAck)
	c[mGet] = int64(st.Got)
	c[mGetNoAck] = int64(st.GotNoAck)
	c[mGetEmpty] = int64(st.GetEmpty)
	c[mDeliverGet] = int64(st.Delivered + st.DeliveredNoAck + st.Got + st.GotNoAck)
	c[mRedeliver] = int64(st.Redelivered)
	c[mReady] = int64(st.Ready)
	c[mUnacked] = int64(st.Unacked)
	c[mMessages] = int64(st.Messages())
	return c
}

func exchangeCounters(info *vhost.ExchangeInfo) counters {
	var c counters
	c[mPublishIn] = int64(info.Published)
	c[mPublishOut] = int64(info.Routed)
	return c
}

func connectionCounters(i *Connection) counters {
	var c counters
	c[mReceived] = int64(i.Received)
	c[mSent] = int64(i.Sent)
	return c
}

func channelCounters(i *Channel) counters {
	var c counters
	c[mPublish] = int64(i.Published)
	c[mConfirm] = int64(i.Confirmed)
	c[mReturnUnroutable] = int64(i.Returned)
	c[mDropUnroutable] = int64(i.Dropped)
	c[mAck] = int64(i.Acked)
	c[mDeliver] = int64(i.Delivered)
	c[mDeliverNoAck] = int64(i.DeliveredNoAck)
	c[mGet] = int64(i.Got)
	c[mGetNoAck] = int64(i.GotNoAck)
	c[mGetEmpty] = int64(i.GetEmpty)
	c[mDeliverGet] = int64(i.Delivered + i.DeliveredNoAck + i.Got + i.GotNoAck)
	c[mRedeliver] = int64(i.Redelivered)
	return c
}

// A part is an object as the sampler knows it: what kind, and which one.
type part struct {
	kind        kind
	vhost, name string
}

type kind uint8

const (
	theOverview kind = iota
	theNode
	aVHost
	aQueue
	anExchange
	aConnection
	aChannel
)

// metrics are what is sampled of the kind.
func (k kind) metrics() []metric {
	switch k {
	case theOverview, aVHost:
		return brokerSampled
	case theNode:
		return nodeMetrics
	case aQueue:
		return queueSampled
	case anExchange:
		return exchangeSampled
	case aConnection:
		return octetMetrics
	}
	return channelSampled
}

var (
	queueSampled    = []metric{mPublish, mAck, mDeliver, mDeliverGet, mDeliverNoAck, mGet, mGetEmpty, mGetNoAck, mRedeliver, mMessages, mReady, mUnacked}
	readySampled    = slices.Index(queueSampled, mReady)
	exchangeSampled = []metric{mPublishIn, mPublishOut}
	channelSampled  = []metric{mPublish, mConfirm, mReturnUnroutable, mDropUnroutable, mAck, mDeliver, mDeliverGet, mDeliverNoAck, mGet, mGetEmpty, mGetNoAck, mRedeliver}
	brokerSampled   = []metric{mPublish, mConfirm, mReturnUnroutable, mDropUnroutable, mAck, mDeliver, mDeliverGet, mDeliverNoAck, mGet, mGetEmpty,
		mGetNoAck, mRedeliver, mDiskReads, mDiskWrites, mReceived, mSent, mConnectionCreated, mConnectionClosed, mChannelCreated, mChannelClosed,
		mQueueDeclared, mQueueCreated, mQueueDeleted, mMessages, mReady, mUnacked}
)
