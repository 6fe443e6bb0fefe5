package amqp

import (
	"testing"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
)

func TestAChannelIsClosedOnceInTheEvents(t *testing.T) {
	s := newTestServer(t, zap.NewNop())
	listener := dialTCP(t, s)
	listener.call(&frames.QueueDeclare{Queue: "events"}, frames.QueueDeclareOkID)
	listener.call(&frames.QueueBind{Queue: "events", Exchange: "amq.rabbitmq.event", RoutingKey: "channel.closed"}, frames.QueueBindOkID)

	c := dialPipe(t, s)
	c.login()
	c.method(1, &frames.QueueDeclare{Queue: "no such queue", Passive: true})
	c.wantClose(1, frames.NotFound, "NOT_FOUND - no queue 'no such queue' in vhost '/'")
	c.method(0, &frames.ConnectionClose{ReplyCode: 200}) // with the channel.close unanswered
	c.want(frames.ConnectionCloseOkID)

	listener.method(1, &frames.QueueDeclare{Queue: "events", Passive: true})
	if m := listener.want(frames.QueueDeclareOkID).(*frames.QueueDeclareOk); m.MessageCount != 1 {
		t.Errorf("%d channel.closed events for one channel, want 1", m.MessageCount)
	}
}

// What the events about a connection and its consumer say (RabbitMQ 4.0).
func TestEventFields(t *testing.T) {
	s := newTestServer(t, zap.NewNop())
	listener := dialTCP(t, s)
	listener.call(&frames.QueueDeclare{Queue: "events"}, frames.QueueDeclareOkID)
	for _, key := range []string{"connection.created", "consumer.deleted", "user.authentication.failure"} {
		listener.call(&frames.QueueBind{Queue: "events", Exchange: "amq.rabbitmq.event", RoutingKey: key}, frames.QueueBindOkID)
	}
	c := dialTCP(t, s)
	c.call(&frames.QueueDeclare{Queue: "q"}, frames.QueueDeclareOkID)
	c.call(&frames.BasicConsume{Queue: "q", ConsumerTag: "t"}, frames.BasicConsumeOkID)
	c.call(&frames.BasicCancel{ConsumerTag: "t"}, frames.BasicCancelOkID)
	refused := dialPipe(t, s)
	refused.write([]byte(frames.ProtocolHeader))
	refused.want(frames.ConnectionStartID)
	refused.method(0, &frames.ConnectionStartOk{Mechanism: "PLAIN", Response: []byte("\x00joe\x00wrong"), Locale: "en_US",
		ClientProperties: frames.Table{{Name: "capabilities", Value: frames.Table{{Name: "authentication_failure_close", Value: true}}}}})
	refused.wantClose(0, frames.AccessRefused, "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the broker logfile.")
	for _, want := range []map[string]any{
		{"user": "guest", "ssl": false, "ssl_protocol": "", "ssl_cipher": "", "ssl_hash": "", "ssl_key_exchange": "",
			"peer_cert_subject": "", "peer_cert_issuer": "", "peer_cert_validity": ""},
		{"consumer_tag": "t", "queue": "q", "user_who_performed_action": "guest"},
		{"name": "joe", "error": "user 'joe' - invalid credentials", "auth_mechanism": "PLAIN"},
	} {
		listener.method(1, &frames.BasicGet{Queue: "events", NoAck: true})
		listener.want(frames.BasicGetOkID)
		_, _, _, props, _ := frames.ParseContentHeader(listener.next().Payload)
		var p frames.Properties
		if err := p.Parse(props); err != nil {
			t.Fatal(err)
		}
		headers, err := p.Table()
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range want {
			if got, _ := headers.Lookup(name); got != value {
				t.Errorf("%s is %v, want %v, in %v", name, got, value, headers)
			}
		}
	}
}
