package amqp

import "github.com/leveretmq/leveret/frames"

// NodeLimits are what all connections together may have; 0 is no limit.
type NodeLimits struct{ Connections, Channels int }

// nodeCounts counts the connections and channels of all users for the limits of
// the node. The lock of userCounts guards the counts.
type nodeCounts struct {
	limits                NodeLimits // immutable
	name                  string     // the node's; immutable
	connections, channels int
}

// mayConnect says why there may be no more connections (RabbitMQ 4.0:
// connection_max).
func (n *nodeCounts) mayConnect() error {
	if limit := n.limits.Connections; limit > 0 && n.connections >= limit {
		return frames.Errorf(frames.NotAllowed, "connection refused: node connection limit (%d) is reached", limit)
	}
	return nil
}

// mayOpenChannel says why there may be no more channels (RabbitMQ 4.0:
// channel_max_per_node).
func (n *nodeCounts) mayOpenChannel() error {
	if limit := n.limits.Channels; limit > 0 && n.channels >= limit {
		return frames.Unboundf(frames.NotAllowed,
			"number of channels opened on node '%s' has reached the maximum allowed limit of (%d)", n.name, limit)
	}
	return nil
}
