package amqp

import (
	"cmp"
	"crypto/x509"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leveretmq/leveret/frames"
)

// channelCounts count what a channel has done since it was opened. Each is
// raised once per batch.
type channelCounts struct {
	published, returned                      atomic.Uint64
	confirmable, confirmed, nacked           atomic.Uint64 // published with a number; acked; refused
	dropped                                  atomic.Uint64 // neither routed nor to be returned
	delivered, deliveredNoAck, got, gotNoAck atomic.Uint64
	getEmpty, acked, redelivered             atomic.Uint64
	uncommitted, acksUncommitted             atomic.Int64 // of the transaction
}

// A ConnectionInfo is a snapshot of one open connection.
type ConnectionInfo struct {
	Name             string // "peer:port -> host:port"
	UserProvidedName string // the client property connection_name
	User, VHost      string
	Mechanism        string
	Peer, Host       netip.AddrPort
	ConnectedAt      time.Time
	ClientProperties frames.Table
	ChannelMax       uint16
	FrameMax         uint32 // in bytes
	Heartbeat        time.Duration
	Received, Sent   uint64 // bytes
	Reads, Writes    uint64 // of the socket
	Pending          int    // bytes that wait to be written, about
	Channels         int
	TLS              bool
	TLSVersion       string            // "tlsv1.3"; "" without TLS
	TLSCipher        string            // the suite's name; "" without TLS
	PeerCertificate  *x509.Certificate // the client's, verified; nil if there is none
	Blocked          bool              // not read, because of an alarm
}

// A ChannelInfo is a snapshot of one open channel.
type ChannelInfo struct {
	Connection     string // its name
	Number         uint16
	User, VHost    string
	Prefetch       int // of consumers started from now on; 0 is no limit
	GlobalPrefetch int // of the whole channel; 0 is no limit
	Confirm, Tx    bool
	Closing        bool // the broker has closed it, and the client not said so yet
	Consumers      int
	Unacked        int
	Unconfirmed    int
	Uncommitted    int // published in a transaction that is not committed
	AcksWaiting    int // deliveries settled in it

	// Counters since the channel was opened.
	Published, Confirmed, Returned           uint64
	Confirmable                              uint64 // published since the channel confirms
	Dropped                                  uint64 // neither routed nor to be returned
	Delivered, DeliveredNoAck, Got, GotNoAck uint64
	GetEmpty, Acked, Redelivered             uint64
}

// A ConsumerInfo is a snapshot of one consumer.
type ConsumerInfo struct {
	Connection, User string
	VHost, Queue     string
	Channel          uint16
	Tag              string
	AckRequired      bool
	Exclusive        bool
	Prefetch         int
	Arguments        frames.Table
}

// running are the connections that have been opened and that the broker does not
// want closed, oldest first.
func (s *Server) running() []*conn {
	list := slices.DeleteFunc(s.connections(), func(c *conn) bool { return c.info.Load() == nil || c.forced.Load() != nil })
	slices.SortFunc(list, func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
	return list
}

// Connections is a snapshot of the open connections, oldest first.
func (s *Server) Connections() []ConnectionInfo {
	var list []ConnectionInfo
	for _, c := range s.running() {
		list = append(list, c.snapshot())
	}
	return list
}

func (c *conn) snapshot() ConnectionInfo {
	i := *c.info.Load()
	i.Received, i.Sent = c.received.Load(), c.sent.Load()
	i.Reads, i.Writes = c.reads.Load(), c.writes.Load()
	i.Blocked = c.blocked.Load()
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	i.Channels, i.Pending = len(c.channels), c.out.bytes
	return i
}

// Channels is a snapshot of the open channels.
func (s *Server) Channels() []ChannelInfo {
	var list []ChannelInfo
	for _, c := range s.running() {
		for _, ch := range c.openChannels() {
			list = append(list, ch.snapshot())
		}
	}
	return list
}

// openChannels is a snapshot of the connection's channels by number.
func (c *conn) openChannels() []*channel {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	var list []*channel
	for _, ch := range c.channels {
		list = append(list, ch)
	}
	slices.SortFunc(list, func(a, b *channel) int { return cmp.Compare(a.id, b.id) })
	return list
}

func (ch *channel) snapshot() ChannelInfo {
	i := ch.conn.info.Load()
	n := &ch.counts
	s := ChannelInfo{
		Connection: ch.conn.name, Number: ch.id, User: i.User, VHost: i.VHost,
		Prefetch: int(ch.prefetch.Load()), GlobalPrefetch: ch.window.Limit(),
		Confirm: ch.confirming.Load(), Tx: ch.transactional.Load(),
		Published: n.published.Load(), Confirmed: n.confirmed.Load(), Confirmable: n.confirmable.Load(),
		Returned: n.returned.Load(), Dropped: n.dropped.Load(),
		Delivered: n.delivered.Load(), DeliveredNoAck: n.deliveredNoAck.Load(), Got: n.got.Load(), GotNoAck: n.gotNoAck.Load(),
		GetEmpty: n.getEmpty.Load(), Acked: n.acked.Load(), Redelivered: n.redelivered.Load(),
		Uncommitted: int(n.uncommitted.Load()), AcksWaiting: int(n.acksUncommitted.Load()),
	}
	if s.Confirm {
		s.Unconfirmed = int(max(0, int64(s.Confirmable-s.Confirmed-n.nacked.Load())))
	}
	out := ch.conn.out
	out.mu.Lock()
	defer out.mu.Unlock()
	for _, c := range ch.consumers {
		if !c.gone {
			s.Consumers++
		}
	}
	s.Unacked, s.Closing = ch.unacked.count(), ch.closed
	return s
}

// Consumers is a snapshot of the consumers of all channels.
func (s *Server) Consumers() []ConsumerInfo {
	var list []ConsumerInfo
	for _, c := range s.running() {
		for _, ch := range c.openChannels() {
			list = ch.appendConsumers(list)
		}
	}
	return list
}

func (ch *channel) appendConsumers(list []ConsumerInfo) []ConsumerInfo {
	i := ch.conn.info.Load()
	out := ch.conn.out
	out.mu.Lock()
	defer out.mu.Unlock()
	for tag, c := range ch.consumers {
		if c.gone {
			continue // the reader has not forgotten it yet
		}
		list = append(list, ConsumerInfo{
			Connection: ch.conn.name, User: i.User, VHost: i.VHost, Queue: c.queue.Name(), Channel: ch.id, Tag: tag,
			AckRequired: !c.sub.NoAck, Exclusive: c.sub.Exclusive, Prefetch: c.sub.Prefetch, Arguments: c.sub.Arguments,
		})
	}
	return list
}

// CloseConnection closes the connection with this name: its client gets a 320
// with the reason. It says whether there was one.
func (s *Server) CloseConnection(name, reason string) bool {
	e := frames.Unboundf(frames.ConnectionForced, "%s", reason)
	for _, c := range s.running() {
		if c.name == name {
			c.force(e)
			return true
		}
	}
	return false
}
