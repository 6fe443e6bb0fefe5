package interop_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestServerProperties(t *testing.T) {
	conn := dial(t, amqp.Config{})
	if conn.Major != 0 || conn.Minor != 9 {
		t.Errorf("protocol version %d-%d, want 0-9", conn.Major, conn.Minor)
	}
	for _, key := range []string{"product", "version", "platform", "copyright", "information", "cluster_name"} {
		if s, _ := conn.Properties[key].(string); s == "" {
			t.Errorf("server property %s is %v, want text", key, conn.Properties[key])
		}
	}
	if v, _ := conn.Properties["version"].(string); !strings.HasPrefix(v, "4.") {
		t.Errorf("version %q, want one that means RabbitMQ 4", v)
	}
	capabilities, _ := conn.Properties["capabilities"].(amqp.Table)
	for _, key := range []string{
		"publisher_confirms", "exchange_exchange_bindings", "basic.nack", "consumer_cancel_notify", "connection.blocked",
		"consumer_priorities", "authentication_failure_close", "per_consumer_qos", "direct_reply_to",
	} {
		if capabilities[key] != true {
			t.Errorf("capability %s is %v, want true", key, capabilities[key])
		}
	}
}

func TestTune(t *testing.T) {
	conn := dial(t, amqp.Config{ChannelMax: 7, FrameSize: 8192, Heartbeat: 42 * time.Second})
	if conn.Config.ChannelMax != 7 || conn.Config.FrameSize != 8192 || conn.Config.Heartbeat != 42*time.Second {
		t.Errorf("tuned channels %d, frame %d, heartbeat %v, want 7, 8192, 42s",
			conn.Config.ChannelMax, conn.Config.FrameSize, conn.Config.Heartbeat)
	}
	conn = dial(t, amqp.Config{ChannelMax: 65535, FrameSize: 1 << 20})
	if conn.Config.ChannelMax != 2047 || conn.Config.FrameSize != 131072 {
		t.Errorf("the broker offers channels %d, frame %d, want 2047, 131072", conn.Config.ChannelMax, conn.Config.FrameSize)
	}
}

func TestLoginRefused(t *testing.T) {
	for _, tt := range []struct{ name, response string }{
		{"wrong password", "\x00guest\x00wrong"},
		{"unknown user", "\x00nobody\x00guest"},
		{"empty password", "\x00guest\x00"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := dialRaw(t)
			r.send([]byte("AMQP\x00\x00\x09\x01"))
			r.expect(connectionStart)
			r.method(0, connectionStartOk, table(authenticationFailureClose), shortstr("PLAIN"), longstr(tt.response), shortstr("en_US"))
			r.wantConnectionClose(403, "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the broker logfile.")
		})
	}
}

// Clients that do not know authentication_failure_close would take a close
// frame for something else: RabbitMQ 4.0 keeps silent for 3 s and hangs up.
func TestLoginRefusedSilentlyForOldClients(t *testing.T) {
	t.Parallel()
	_, err := amqp.DialConfig(brokerURL, amqp.Config{SASL: []amqp.Authentication{&amqp.PlainAuth{Username: "guest", Password: "wrong"}}})
	if !errors.Is(err, amqp.ErrCredentials) {
		t.Errorf("error %v, want %v", err, amqp.ErrCredentials)
	}
}

func TestAMQPlain(t *testing.T) {
	conn := dial(t, amqp.Config{SASL: []amqp.Authentication{&amqp.AMQPlainAuth{Username: "guest", Password: "guest"}}})
	if _, err := conn.Channel(); err != nil {
		t.Error(err)
	}
}

func TestUnknownVHost(t *testing.T) {
	_, err := amqp.DialConfig(brokerURL, amqp.Config{Vhost: "nope"})
	wantError(t, err, amqp.NotAllowed, "NOT_ALLOWED - vhost nope not found")
}

func TestManyChannels(t *testing.T) {
	conn := dial(t, amqp.Config{})
	for round := range 2 { // the second takes the numbers of the first again
		var open []*amqp.Channel
		for range 200 {
			ch, err := conn.Channel()
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			open = append(open, ch)
		}
		for _, ch := range open {
			if err := ch.Close(); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
	}
}

func TestTooManyChannels(t *testing.T) {
	r := dialRaw(t)
	r.handshake(rawTune{channelMax: 1, frameMax: 131072})
	r.openChannel(1)
	r.method(2, channelOpen, shortstr(""))
	r.wantConnectionClose(530, "NOT_ALLOWED - number of channels opened (1) has reached the negotiated channel_max (1)")
}

func TestChannelErrorKeepsConnectionAndOtherChannels(t *testing.T) {
	c := newClient(t)
	q := c.privateQueue(nil)
	other, err := c.conn.Channel()
	c.must(err)
	_, err = other.QueueDeclarePassive("no-such-queue", false, false, false, false, nil)
	wantError(t, err, amqp.NotFound, "NOT_FOUND - no queue 'no-such-queue' in vhost '/'")
	c.publish("", q, "still here")
	c.wantReady(q, "still here")
	for range 3 { // the number is free again at once
		c.reopen()
		_, err = c.ch.QueueDeclarePassive("no-such-queue", false, false, false, false, nil)
		wantError(t, err, amqp.NotFound, "NOT_FOUND - no queue 'no-such-queue' in vhost '/'")
	}
}

func TestConnectionErrorEndsAllChannels(t *testing.T) {
	c := newClient(t)
	q := c.privateQueue(nil)
	second, err := c.conn.Channel()
	c.must(err)
	secondClosed := second.NotifyClose(make(chan *amqp.Error, 1))
	connClosed := c.watchConnection()
	c.consume(q, "tag", true)
	_, err = c.ch.ConsumeWithContext(t.Context(), q, "tag", true, false, false, false, nil)
	wantError(t, err, amqp.NotAllowed, "NOT_ALLOWED - attempt to reuse consumer tag 'tag'")
	c.wantClosed(connClosed, amqp.NotAllowed, "NOT_ALLOWED - attempt to reuse consumer tag 'tag'")
	c.wantClosed(secondClosed, amqp.NotAllowed, "NOT_ALLOWED - attempt to reuse consumer tag 'tag'")
	if _, err := c.conn.Channel(); !errors.Is(err, amqp.ErrClosed) {
		t.Errorf("a channel of a closed connection: error %v, want %v", err, amqp.ErrClosed)
	}
}

func TestUpdateSecret(t *testing.T) {
	conn := dial(t, amqp.Config{})
	if err := conn.UpdateSecret("new", "rotation"); err != nil {
		t.Error(err)
	}
}

func TestHeartbeatsKeepAnIdleConnection(t *testing.T) {
	t.Parallel()
	conn := dial(t, amqp.Config{Heartbeat: time.Second})
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	select {
	case err := <-closed:
		t.Fatalf("closed while heartbeats went both ways: %v", err)
	case <-time.After(4 * time.Second): // longer than two missed intervals
	}
	if _, err := conn.Channel(); err != nil {
		t.Error(err)
	}
}

func TestSilentClientIsCutOff(t *testing.T) {
	t.Parallel()
	r := dialRaw(t)
	began := time.Now() // no later than the last byte
	r.handshake(rawTune{channelMax: 10, frameMax: 131072, heartbeat: 1})
	beats := 0
	for {
		f, err := r.read()
		if err != nil {
			break // cut, without a close frame
		}
		if f.kind != frameHeartbeat {
			t.Fatalf("frame of type %d, want heartbeats only", f.kind)
		}
		beats++
	}
	if took := time.Since(began); took < 1900*time.Millisecond || took > 20*time.Second {
		t.Errorf("cut off after %v, want between 2 and 3 intervals of 1 s, or little more on a busy machine", took)
	}
	if beats < 2 {
		t.Errorf("%d heartbeats came, want at least 2", beats)
	}
}
