package vhost

import "testing"

// A message that is moved is neither a retry of its producer nor a duplicate.
func TestAgainPassesProducersAndFilters(t *testing.T) {
	v := newVHost(t)
	declareExchange(t, v, ExchangeDeclare{Name: "front", Type: "x-message-deduplication", Arguments: args("x-cache-size", int32(9))})
	declareExchange(t, v, ExchangeDeclare{Name: "behind", Type: "fanout"})
	declareQueue(t, v, QueueDeclare{Name: "remembers", Arguments: args("x-message-deduplication", true, "x-cache-size", int32(9))})
	if err := v.BindExchange(System, "front", "behind", "", nil); err != nil {
		t.Fatal(err)
	}
	bindQueue(t, v, "remembers", "front", "")
	q := declareQueue(t, v, QueueDeclare{Name: "q"})
	bindQueue(t, v, "q", "front", "")
	for _, again := range []bool{false, true, true} {
		p := v.NewPublisher()
		p.Again = again
		for _, exchange := range []string{"front", "behind"} {
			addID(t, p, exchange, "", "id", "x-producer-id", exchange, "x-producer-sequence", int64(1))
		}
		p.Flush()
	}
	wantBodies(t, q, "id", "id", "id", "id", "id")
	other, _ := v.Queue(System, "remembers")
	wantBodies(t, other.(*fakeQueue), "id", "id", "id", "id", "id")
}
