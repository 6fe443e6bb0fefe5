package amqp

import (
	"sync"

	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/vhost"
)

// A channel acts for its connection's user.
var _ vhost.Actor = (*channel)(nil)

// User implements vhost.Actor.
func (ch *channel) User() string { return ch.conn.user.Name }

// Owner implements vhost.Actor: exclusive queues belong to the connection.
func (ch *channel) Owner() any { return ch.conn }

// MayExchange implements vhost.Actor.
func (ch *channel) MayExchange(p vhost.Permission, name string) error {
	return ch.may(auth.Resource{Kind: auth.Exchange, Name: name}, p)
}

// MayQueue implements vhost.Actor.
func (ch *channel) MayQueue(p vhost.Permission, name string) error {
	return ch.may(auth.Resource{Kind: auth.Queue, Name: name}, p)
}

// MayTopic implements vhost.Actor.
func (ch *channel) MayTopic(p vhost.Permission, exchange, key string) error {
	return ch.conn.grants.CheckTopic(exchange, permission(p), key)
}

func (ch *channel) may(r auth.Resource, p vhost.Permission) error {
	return ch.conn.grants.Check(r, permission(p))
}

func permission(p vhost.Permission) auth.Permission {
	switch p {
	case vhost.Configure:
		return auth.Configure
	case vhost.Write:
		return auth.Write
	}
	return auth.Read
}

// userCounts counts each user's connections and channels for the user limits.
type userCounts struct {
	auth     *auth.Authority
	churn    churnCounts       // atomic
	confirms message.Latencies // see Server.ConfirmLatency
	past     pastCounts        // has a lock of its own; see Server.Past

	mu     sync.Mutex // guards the map and node; a leaf
	counts map[string]*userCount
	node   nodeCounts
}

type userCount struct{ connections, channels int }

func (u *userCounts) get(user string) *userCount {
	n := u.counts[user]
	if n == nil {
		n = &userCount{}
		u.counts[user] = n
	}
	return n
}

// connectionOpened counts a connection, or says why the user may have no more.
func (u *userCounts) connectionOpened(user string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.node.mayConnect(); err != nil {
		return err
	}
	n := u.get(user)
	if limit, ok := u.auth.Limit(user, auth.MaxConnections); ok && limit >= 0 && n.connections >= limit {
		return frames.Errorf(frames.NotAllowed, "connection refused for user '%s': user connection limit (%d) is reached", user, limit)
	}
	n.connections++
	u.churn.connectionsOpened.Add(1)
	u.node.connections++
	return nil
}

func (u *userCounts) connectionClosed(user string) {
	u.churn.connectionsClosed.Add(1)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.node.connections--
	n := u.get(user)
	if n.connections--; n.connections <= 0 && n.channels <= 0 {
		delete(u.counts, user)
	}
}

// channelOpened counts a channel, or says why the user may have no more.
func (u *userCounts) channelOpened(user string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.node.mayOpenChannel(); err != nil {
		return err
	}
	n := u.get(user)
	if limit, ok := u.auth.Limit(user, auth.MaxChannels); ok && limit >= 0 && n.channels >= limit {
		return frames.Unboundf(frames.NotAllowed,
			"number of channels opened for user '%s' has reached the maximum allowed user limit of (%d)", user, limit)
	}
	n.channels++
	u.churn.channelsOpened.Add(1)
	u.node.channels++
	return nil
}

func (u *userCounts) channelClosed(user string) {
	u.churn.channelsClosed.Add(1)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.get(user).channels--
	u.node.channels--
}
