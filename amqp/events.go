package amqp

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/vhost"
)

// Events of connections, channels and consumers for amq.rabbitmq.event. Names,
// fields and value types are RabbitMQ 4.0's. None is built while nobody listens.

func field(name string, v any) frames.Field { return frames.Field{Name: name, Value: v} }

// event publishes an event if anybody listens.
func (s *Server) event(key string, build func() frames.Table) {
	if s.cfg.VHosts.Listening() {
		s.cfg.VHosts.Event(key, build())
	}
}

// pid stands for the Erlang process that RabbitMQ shows.
func (c *conn) pid() string { return fmt.Sprintf("<%s.%d.0>", c.srv.cfg.Node, c.id) }

func (ch *channel) pid() string {
	return fmt.Sprintf("<%s.%d.%d>", ch.conn.srv.cfg.Node, ch.conn.id, ch.id)
}

// erlangAddr prints an address as Erlang does: {127,0,0,1}.
func erlangAddr(a netip.Addr) string {
	var parts []string
	if a.Is4() {
		for _, b := range a.As4() {
			parts = append(parts, fmt.Sprint(b))
		}
	} else {
		b := a.As16()
		for i := 0; i < len(b); i += 2 {
			parts = append(parts, fmt.Sprint(int(b[i])<<8|int(b[i+1])))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (c *conn) createdEvent() frames.Table {
	i := c.start
	t := frames.Table{
		field("name", i.Name), field("node", c.srv.cfg.Node), field("pid", c.pid()),
		field("user", i.User), field("vhost", i.VHost), field("user_who_performed_action", i.User),
		field("host", erlangAddr(i.Host.Addr())), field("port", int64(i.Host.Port())),
		field("peer_host", erlangAddr(i.Peer.Addr())), field("peer_port", int64(i.Peer.Port())),
		field("protocol", "{0,9,1}"), field("auth_mechanism", i.Mechanism), field("ssl", i.TLS),
		field("timeout", int64(i.Heartbeat.Seconds())), field("frame_max", int64(i.FrameMax)), field("channel_max", int64(i.ChannelMax)),
		field("client_properties", vhost.ArgumentTexts(i.ClientProperties)), field("connected_at", i.ConnectedAt.UnixMilli()),
		field("type", "network"),
	}
	return i.withProvidedName(append(t, i.securityFields()...))
}

// securityFields describe the TLS of a connection; all are "" without. The hash and
// the key exchange are part of the cipher's name.
func (i *ConnectionInfo) securityFields() frames.Table {
	var subject, issuer, validity string
	if cert := i.PeerCertificate; cert != nil {
		subject, issuer = cert.Subject.String(), cert.Issuer.String()
		validity = cert.NotBefore.UTC().Format(time.RFC3339) + " - " + cert.NotAfter.UTC().Format(time.RFC3339)
	}
	return frames.Table{
		field("ssl_protocol", i.TLSVersion), field("ssl_cipher", i.TLSCipher),
		field("ssl_hash", ""), field("ssl_key_exchange", ""),
		field("peer_cert_subject", subject), field("peer_cert_issuer", issuer), field("peer_cert_validity", validity),
	}
}

func (i *ConnectionInfo) withProvidedName(t frames.Table) frames.Table {
	if i.UserProvidedName != "" {
		t = append(t, field("user_provided_name", i.UserProvidedName))
	}
	return t
}

func (c *conn) closedEvent() frames.Table {
	return c.start.withProvidedName(frames.Table{
		field("name", c.name), field("node", c.srv.cfg.Node), field("pid", c.pid()),
		field("client_properties", vhost.ArgumentTexts(c.start.ClientProperties)),
	})
}

func (ch *channel) createdEvent() frames.Table {
	return frames.Table{
		field("name", fmt.Sprintf("%s (%d)", ch.conn.name, ch.id)), field("number", int64(ch.id)), field("pid", ch.pid()),
		field("connection", ch.conn.pid()), field("user", ch.User()), field("vhost", ch.conn.vhost.Name()),
		field("user_who_performed_action", ch.User()),
	}
}

func (ch *channel) closedEvent(consumers int) frames.Table {
	return frames.Table{field("pid", ch.pid()), field("consumer_count", int64(consumers)), field("user_who_performed_action", ch.User())}
}

func (c *consumer) createdEvent() frames.Table {
	return append(c.deletedEvent(), field("ack_required", !c.sub.NoAck), field("exclusive", c.sub.Exclusive),
		field("prefetch_count", int64(c.sub.Prefetch)), field("arguments", vhost.ArgumentTexts(c.sub.Arguments)))
}

func (c *consumer) deletedEvent() frames.Table {
	return frames.Table{field("consumer_tag", c.sub.Tag), field("queue", c.queue.Name()), field("vhost", c.ch.conn.vhost.Name()),
		field("channel", c.ch.pid()), field("user_who_performed_action", c.ch.User())}
}

// loginEvent is user.authentication.success, or with an error .failure.
func (c *conn) loginEvent(name, mechanism string, err error) frames.Table {
	t := frames.Table{
		field("name", name), field("auth_mechanism", mechanism), field("connection_name", c.name), field("connection_type", "network"),
		field("host", erlangAddr(c.start.Host.Addr())), field("peer_host", erlangAddr(c.start.Peer.Addr())),
		field("peer_port", int64(c.start.Peer.Port())), field("protocol", "{0,9,1}"), field("ssl", c.start.TLS),
	}
	if err != nil {
		name, why := auth.RefusedUser(err)
		t[0].Value = name
		t = append(t, field("error", why))
	}
	return t
}
