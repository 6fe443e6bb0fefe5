package vhost

import (
	"slices"
	"testing"

	"github.com/leveretmq/leveret/message"
)

func declareQueue(t testing.TB, v *VHost, d QueueDeclare) *fakeQueue {
	t.Helper()
	q, err := v.DeclareQueue(System, d)
	if err != nil {
		t.Fatal(err)
	}
	return q.(*fakeQueue)
}

func declareExchange(t testing.TB, v *VHost, d ExchangeDeclare) {
	t.Helper()
	if err := v.DeclareExchange(System, d); err != nil {
		t.Fatal(err)
	}
}

func bindQueue(t testing.TB, v *VHost, queue, exchange, key string) {
	t.Helper()
	if err := v.BindQueue(System, queue, exchange, key, nil); err != nil {
		t.Fatal(err)
	}
}

// publish publishes one message and says whether it was routed.
func publish(t testing.TB, v *VHost, exchange, key, body string) bool {
	t.Helper()
	p := v.NewPublisher()
	rt, err := p.Route([]byte(exchange), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	m := message.New(2, len(body))
	copy(m.Body, body)
	m.Exchange, m.RoutingKey = rt.Exchange, rt.Key
	routed := p.Add(rt, m, nil, 0)
	p.Flush()
	return routed
}

func TestPublish(t *testing.T) {
	v := newVHost(t)
	q := declareQueue(t, v, QueueDeclare{Name: "q"})
	declareExchange(t, v, ExchangeDeclare{Name: "x", Type: "direct"})
	bindQueue(t, v, "q", "x", "k")
	for _, tt := range []struct {
		exchange, key, body string
		routed              bool
	}{
		{"", "q", "a", true},
		{"", "none", "b", false},
		{"x", "k", "c", true},
		{"x", "other", "d", false},
	} {
		if got := publish(t, v, tt.exchange, tt.key, tt.body); got != tt.routed {
			t.Errorf("publish to %q key %q: routed %v, want %v", tt.exchange, tt.key, got, tt.routed)
		}
	}
	if got, want := q.bodies(), []string{"a", "c"}; !slices.Equal(got, want) {
		t.Errorf("queue has %q, want %q", got, want)
	}
}
