package broker

import (
	"runtime"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/leveretmq/leveret/config"
	"github.com/leveretmq/leveret/vhost"
)

func channel(t *testing.T, b *Broker) *amqp091.Channel {
	t.Helper()
	conn, err := dial(t, b, "guest:guest", "/")
	if err != nil {
		t.Fatal(err)
	}
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

func wantText(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: error %v, want %q in it", what, err, want)
	}
}

func TestNodeLimits(t *testing.T) {
	b := start(t, func(c *config.Config) {
		c.NodeName = "rabbit@h"
		c.Limits.MaxConnections, c.Limits.MaxNodeChannels, c.Limits.MaxQueues = 2, 3, 1
	})
	first, err := dial(t, b, "guest:guest", "/")
	if err != nil {
		t.Fatal(err)
	}
	second, err := dial(t, b, "guest:guest", "/")
	if err != nil {
		t.Fatal(err)
	}
	_, err = dial(t, b, "guest:guest", "/")
	wantText(t, "third connection", err, "NOT_ALLOWED - connection refused: node connection limit (2) is reached")
	for range 2 {
		if _, err := first.Channel(); err != nil {
			t.Fatal(err)
		}
	}
	ch, err := second.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare("q", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	_, err = second.Channel()
	wantText(t, "fourth channel", err, "NOT_ALLOWED - number of channels opened on node 'rabbit@h' has reached the maximum allowed limit of (3)")
	// Those of a connection that was closed are free again, once its client has said
	// goodbye.
	third, err := dial(t, b, "guest:guest", "/")
	for deadline := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(deadline); {
		runtime.Gosched()
		third, err = dial(t, b, "guest:guest", "/")
	}
	if err != nil {
		t.Fatal(err)
	}
	if ch, err = third.Channel(); err != nil {
		t.Fatal(err)
	}
	_, err = ch.QueueDeclare("q2", true, false, false, false, nil)
	wantText(t, "second queue", err, "PRECONDITION_FAILED - cannot declare queue 'q2': queue limit in cluster (1) is reached")
}

// What new vhosts are given, the default one too.
func TestSeedOfVHosts(t *testing.T) {
	b := start(t, func(c *config.Config) {
		c.DefaultUsers = []config.DefaultUser{
			{Name: "alice", Password: "pw", VHosts: ".*", Permissions: config.Permissions{Configure: "a.*", Write: "b.*", Read: "c.*"}, Tags: []string{"monitoring"}},
			{Name: "bob", Password: "pw", VHosts: "^lim", Permissions: config.Permissions{Configure: ".*", Write: ".*", Read: ".*"}},
		}
		c.DefaultLimits = []config.DefaultLimits{{ID: "1", VHosts: "^lim", MaxConnections: 5, MaxQueues: 0}, {ID: "2", VHosts: ".*", MaxConnections: 9, MaxQueues: -1}}
		c.DefaultPolicies = []config.DefaultPolicy{{Name: "op", VHosts: "^lim", Queues: "^q", ApplyTo: "queues", Definition: map[string]int64{"max-length": 7}}}
	})
	if conn, err := dial(t, b, "alice:pw", "/"); err != nil {
		t.Errorf("alice in /: %v", err)
	} else if ch, err := conn.Channel(); err != nil {
		t.Error(err)
	} else {
		_, err := ch.QueueDeclare("x", true, false, false, false, nil)
		wantText(t, "declare x", err, "ACCESS_REFUSED")
	}
	if _, err := dial(t, b, "bob:pw", "/"); err == nil {
		t.Error("bob may enter / before there is a vhost that he is for")
	}
	if err := b.vhosts.Create("lim1", vhost.Options{}); err != nil {
		t.Fatal(err)
	}
	conn, err := dial(t, b, "bob:pw", "lim1")
	if err != nil {
		t.Fatal(err)
	}
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	_, err = ch.QueueDeclare("q", true, false, false, false, nil)
	wantText(t, "declare q", err, "queue limit in vhost 'lim1' (0) is reached")
	v, _ := b.vhosts.Get("lim1")
	if l := v.Limits(); l.MaxConnections != 5 {
		t.Errorf("limits %+v, want those of the first pattern that matches", l)
	}
	policies := v.Policies(true)
	if len(policies) != 1 || policies[0].Name != "op" || policies[0].Pattern != "^q" || policies[0].ApplyTo != "queues" || policies[0].Definition["max-length"] != 7.0 {
		t.Errorf("operator policies %+v", policies)
	}
}

func TestInterceptedMessages(t *testing.T) {
	stamp := time.Unix(1_000_000, 0)
	for _, tt := range []struct {
		add    config.Intercept
		sent   amqp091.Publishing
		kept   bool // the timestamp that was sent
		stamps bool // header timestamp_in_ms
		node   any
	}{
		{config.Intercept{}, amqp091.Publishing{Timestamp: stamp}, true, false, nil},
		{config.Intercept{Timestamp: config.Missing}, amqp091.Publishing{Timestamp: stamp}, true, true, nil},
		{config.Intercept{Timestamp: config.Overwrite}, amqp091.Publishing{Timestamp: stamp}, false, true, nil},
		{config.Intercept{Timestamp: config.Missing, RoutingNode: config.Missing}, amqp091.Publishing{Headers: amqp091.Table{"a": "b", "x-routed-by": "me"}}, false, true, "me"},
		{config.Intercept{RoutingNode: config.Overwrite}, amqp091.Publishing{Timestamp: stamp, Headers: amqp091.Table{"x-routed-by": "me"}}, true, false, "rabbit@h"},
	} {
		b := start(t, func(c *config.Config) { c.Intercept, c.NodeName = tt.add, "rabbit@h" })
		ch := channel(t, b)
		q, err := ch.QueueDeclare("", false, false, true, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		tt.sent.Body = []byte("body")
		if err := ch.PublishWithContext(t.Context(), "", q.Name, false, false, tt.sent); err != nil {
			t.Fatal(err)
		}
		d, ok, err := ch.Get(q.Name, true)
		if err != nil || !ok {
			t.Fatalf("no message: %v", err)
		}
		_, stamps := d.Headers["timestamp_in_ms"].(int64)
		if d.Timestamp.Equal(stamp) != tt.kept || stamps != tt.stamps || d.Headers["x-routed-by"] != tt.node || string(d.Body) != "body" {
			t.Errorf("%+v: got timestamp %v, headers %v", tt.add, d.Timestamp, d.Headers)
		}
		if tt.add != (config.Intercept{}) && tt.sent.Headers["a"] != d.Headers["a"] {
			t.Errorf("%+v: headers %v, want those that were sent as well", tt.add, d.Headers)
		}
	}
}

func TestDeprecatedFeatures(t *testing.T) {
	b := start(t, func(c *config.Config) { c.Deprecated = config.Deprecated{TransientQueues: true, GlobalQoS: true} })
	ch := channel(t, b)
	if err := ch.Qos(1, 0, true); err != nil { // taken as without global
		t.Fatal(err)
	}
	if list := b.server.Channels(); len(list) != 1 || list[0].GlobalPrefetch != 0 || list[0].Prefetch != 1 {
		t.Errorf("channels %+v, want a prefetch of 1 that is not global", list)
	}
	_, err := ch.QueueDeclare("t", false, false, false, false, nil)
	wantText(t, "a transient queue", err, "INTERNAL_ERROR - Feature `transient_nonexcl_queues` is deprecated.")
}

func TestUncommittedIsCounted(t *testing.T) {
	b := start(t, func(*config.Config) {})
	ch := channel(t, b)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := ch.QueueDeclare("tx", false, false, true, false, nil)
	must(err)
	publish := func() { must(ch.Publish("", "tx", false, false, amqp091.Publishing{})) }
	publish()
	publish()
	want := func(what string, messages, acks int) {
		t.Helper()
		_, err := ch.QueueDeclarePassive("tx", false, false, true, false, nil) // what came before it is handled then
		must(err)
		if list := b.server.Channels(); len(list) != 1 || list[0].Uncommitted != messages || list[0].AcksWaiting != acks {
			t.Errorf("%s: channels %+v, want %d messages and %d acks uncommitted", what, list, messages, acks)
		}
	}
	must(ch.Tx())
	for range 2 {
		d, _, err := ch.Get("tx", false)
		must(err)
		must(d.Ack(false))
	}
	publish()
	want("in a transaction", 1, 2)
	must(ch.TxRollback())
	want("rolled back", 0, 0)
	publish()
	want("in the next", 1, 0)
	must(ch.TxCommit())
	want("committed", 0, 0)
}
