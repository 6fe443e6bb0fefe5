package vhost

import (
	"testing"

	"github.com/leveretmq/leveret/message"
)

// TestSoleMessages: only of a message that went to one queue and nowhere else may
// a publisher say that nobody else has it.
func TestSoleMessages(t *testing.T) {
	v := newVHost(t)
	q := declareQueue(t, v, QueueDeclare{Name: "q"})
	declareQueue(t, v, QueueDeclare{Name: "other"})
	for _, x := range []ExchangeDeclare{
		{Name: "one", Type: "direct"},
		{Name: "both", Type: "fanout"},
		{Name: "history", Type: "x-recent-history"},
		{Name: "before", Type: "fanout"}, // the history
		{Name: "hash", Type: "x-consistent-hash"},
	} {
		declareExchange(t, v, x)
	}
	for _, x := range []string{"one", "both", "history"} {
		bindQueue(t, v, "q", x, "k")
	}
	bindQueue(t, v, "q", "hash", "1")
	bindQueue(t, v, "other", "both", "")
	if err := v.BindExchange(System, "history", "before", "", nil); err != nil {
		t.Fatal(err)
	}
	if err := v.BindExchange(System, "history", "one", "kept", nil); err != nil {
		t.Fatal(err)
	}
	more := &message.More{CC: []string{"kept"}}
	for _, tt := range []struct {
		name, exchange, key string
		owns, traced        bool
		more                *message.More
		want                bool
	}{
		{"default exchange", "", "q", true, false, nil, true},
		{"direct exchange", "one", "k", true, false, nil, true},
		{"consistent hash", "hash", "k", true, false, nil, true},
		{"publisher that does not own it", "", "q", false, false, nil, false},
		{"two queues", "both", "k", true, false, nil, false},
		{"kept in a history", "history", "k", true, false, nil, false},
		{"kept in a history behind", "before", "k", true, false, nil, false},
		{"traced", "", "q", true, true, nil, false},
		{"kept in a history by a further key", "one", "k", true, false, more, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v.SetTracing(tt.traced)
			defer v.SetTracing(false)
			p := v.NewPublisher()
			p.Owns = tt.owns
			p.Add(route(t, p, tt.exchange, tt.key), largeMessage(tt.exchange, tt.key), nil, 0) // now the route is known
			p.Flush()
			q.Purge()
			for range 3 {
				m := largeMessage(tt.exchange, tt.key)
				m.More = tt.more
				p.Add(route(t, p, tt.exchange, tt.key), m, nil, 0)
			}
			p.Flush()
			q.mu.Lock()
			defer q.mu.Unlock()
			if len(q.got) != 3 {
				t.Fatalf("the queue got %d messages, want 3", len(q.got))
			}
			for i, e := range q.got {
				if e.Sole != tt.want {
					t.Errorf("message %d: sole is %v, want %v", i, e.Sole, tt.want)
				}
			}
		})
	}
}

func largeMessage(exchange, key string) *message.Message {
	m := newMessage(exchange, key)
	m.Body = make([]byte, message.MaxInline+1)
	return m
}
