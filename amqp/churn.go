package amqp

import (
	"sync/atomic"

	"github.com/leveretmq/leveret/message"
)

// Churn counts the connections and channels that were opened and closed since
// the server was made. A connection counts once its vhost is open.
type Churn struct {
	ConnectionsOpened, ConnectionsClosed uint64
	ChannelsOpened, ChannelsClosed       uint64
}

// churnCounts are the counters of Churn.
type churnCounts struct {
	connectionsOpened, connectionsClosed, channelsOpened, channelsClosed atomic.Uint64
}

// Churn is a snapshot.
func (s *Server) Churn() Churn {
	n := &s.users.churn
	return Churn{
		ConnectionsOpened: n.connectionsOpened.Load(), ConnectionsClosed: n.connectionsClosed.Load(),
		ChannelsOpened: n.channelsOpened.Load(), ChannelsClosed: n.channelsClosed.Load(),
	}
}

// ConfirmLatency says how long it took from reading a batch of publishes until
// it was confirmed or refused, in nanoseconds.
func (s *Server) ConfirmLatency() message.Distribution { return s.users.confirms.Snapshot() }
