package exchange

import (
	"fmt"
	"slices"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
)

// shares routes n keys and counts where they go.
func shares(t *testing.T, x *Exchange, n int) (count map[string]int, of map[string]string) {
	t.Helper()
	count, of = map[string]int{}, map[string]string{}
	for i := range n {
		key := fmt.Sprint("key.", i)
		got := routed(x, keyed(key))
		if len(got) != 1 {
			t.Fatalf("%s routes %q to %v, want one queue", x.Type, key, got)
		}
		count[got[0]]++
		of[key] = got[0]
	}
	return count, of
}

func wantShare(t *testing.T, count map[string]int, name string, want int) {
	t.Helper()
	if got := count[name]; got < want*85/100 || got > want*115/100 {
		t.Errorf("%s got %d messages, want about %d", name, got, want)
	}
}

func TestConsistentHashShares(t *testing.T) {
	x := newExchange(t, "x-consistent-hash")
	for i, weight := range []string{"1", "2", "1"} {
		bind(t, x, newQueue(fmt.Sprint("q", i)), weight)
	}
	count, _ := shares(t, x, 8000)
	wantShare(t, count, "q0", 2000)
	wantShare(t, count, "q1", 4000)
	wantShare(t, count, "q2", 2000)
}

func TestConsistentHashMovesFewKeys(t *testing.T) {
	x := newExchange(t, "x-consistent-hash")
	qs := map[string]*fakeQueue{}
	for i := range 10 {
		q := newQueue(fmt.Sprint("q", i))
		qs[q.name] = q
		bind(t, x, q, "10")
	}
	_, before := shares(t, x, 5000)
	x.UnbindQueue(qs["q3"])
	count, after := shares(t, x, 5000)
	moved := 0
	for key, name := range before {
		if name != "q3" && after[key] != name {
			moved++
		}
	}
	if count["q3"] != 0 || moved > 0 {
		t.Errorf("q3 still gets %d; %d of 5000 other keys moved", count["q3"], moved)
	}
	for name := range qs {
		if name != "q3" {
			wantShare(t, count, name, 5000/9)
		}
	}
	bind(t, x, newQueue("new"), "10")
	_, again := shares(t, x, 5000)
	for key, name := range after {
		if again[key] != name && again[key] != "new" {
			t.Errorf("%s moved from %s to %s when a queue was added", key, name, again[key])
		}
	}
}

func TestConsistentHashIsTheSameAfterARestart(t *testing.T) {
	names := []string{"q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "q10", "q11", "q12"}
	weight := func(name string) string { return fmt.Sprint(len(name)) }
	before, after := newExchange(t, "x-consistent-hash"), newExchange(t, "x-consistent-hash")
	gone := newQueue("gone")
	bind(t, before, gone, "5")
	for _, name := range names {
		bind(t, before, newQueue(name), weight(name))
	}
	before.UnbindQueue(gone)
	slices.Sort(names)
	for _, name := range names {
		bind(t, after, newQueue(name), weight(name))
	}
	_, of := shares(t, before, 5000)
	_, again := shares(t, after, 5000)
	for key, name := range of {
		if again[key] != name {
			t.Fatalf("%s goes to %s or %s, by the order of binding", key, name, again[key])
		}
	}
}

func TestConsistentHashCountsTheOldestWeight(t *testing.T) {
	x, q := newExchange(t, "x-consistent-hash"), newQueue("q")
	for _, b := range []*Binding{{Queue: q, Key: "7", Since: 2}, {Queue: q, Key: "9", Since: 1}, {Queue: q, Key: "3", Since: 3}} {
		if _, err := x.Bind(b); err != nil {
			t.Fatal(err)
		}
	}
	bind(t, x, newQueue("other"), "1")
	count, _ := shares(t, x, 4000)
	wantShare(t, count, "q", 3600)
	x.Unbind(q, nil, "9", nil)
	count, _ = shares(t, x, 4000)
	wantShare(t, count, "q", 3500)
}

// The weights are of three classes.
func TestConsistentHashOfManyWeights(t *testing.T) {
	x := newExchange(t, "x-consistent-hash")
	for i := range 12 {
		bind(t, x, newQueue(fmt.Sprint("q", i)), fmt.Sprint(1+i%3))
	}
	count, _ := shares(t, x, 24_000)
	for i := range 12 {
		wantShare(t, count, fmt.Sprint("q", i), 1000*(1+i%3))
	}
	for i := range 12 { // none is left behind
		for _, b := range x.Bindings() {
			if b.Queue.Name() == fmt.Sprint("q", i) {
				x.UnbindQueue(b.Queue)
			}
		}
	}
	wantRouted(t, x, keyed("k"))
	if h := x.router.(*consistentHash); len(h.classes)+len(h.members) != 0 {
		t.Errorf("%d classes and %d members are left", len(h.classes), len(h.members))
	}
}

func TestConsistentHashKeepsTheFirstWeight(t *testing.T) {
	x := newExchange(t, "x-consistent-hash")
	a, b := newQueue("a"), newQueue("b")
	bind(t, x, a, "1")
	bind(t, x, a, "9")
	bind(t, x, b, "1")
	count, _ := shares(t, x, 4000)
	wantShare(t, count, "a", 2000)
	x.Unbind(a, nil, "1", nil) // now the other one counts
	count, _ = shares(t, x, 4000)
	wantShare(t, count, "a", 3600)
	x.Unbind(a, nil, "9", nil)
	count, _ = shares(t, x, 400)
	if count["b"] != 400 {
		t.Errorf("b gets %d of 400 after a is gone", count["b"])
	}
}

// sameQueue says that two messages go to one queue, of many.
func sameQueue(t *testing.T, x *Exchange, a, b *message.Message) bool {
	t.Helper()
	qa, qb := routed(x, a), routed(x, b)
	if len(qa) != 1 || len(qb) != 1 {
		t.Fatalf("routed to %v and %v, want one queue each", qa, qb)
	}
	return qa[0] == qb[0]
}

func withProperties(p frames.Properties) *message.Message {
	return &message.Message{Envelope: &message.Envelope{Header: p.Append(nil)}}
}

func TestConsistentHashOfHeaderOrProperty(t *testing.T) {
	header := func(v any) *message.Message { return withHeaders(frames.Field{Name: "id", Value: v}) }
	messageID := func(s string) *message.Message {
		return withProperties(frames.Properties{Flags: frames.FlagMessageID, MessageID: []byte(s)})
	}
	correlationID := func(s string) *message.Message {
		return withProperties(frames.Properties{Flags: frames.FlagCorrelationID, CorrelationID: []byte(s)})
	}
	timestamp := func(n uint64) *message.Message {
		return withProperties(frames.Properties{Flags: frames.FlagTimestamp, Timestamp: n})
	}
	other := withHeaders(frames.Field{Name: "other", Value: "x"})
	for _, tt := range []struct {
		arg, value string
		a, b       *message.Message
		want       bool
	}{
		{"hash-header", "id", header("one"), header("one"), true},
		{"hash-header", "id", header("one"), header("two"), false},
		{"hash-header", "id", header(int32(5)), header(int64(5)), true},
		{"hash-header", "id", header(int32(5)), header(int32(6)), false},
		{"hash-header", "id", keyed("a"), keyed("b"), true}, // all that have none
		{"hash-header", "id", keyed("a"), other, true},
		{"hash-property", "message_id", messageID("a"), messageID("a"), true},
		{"hash-property", "message_id", messageID("a"), messageID("b"), false},
		{"hash-property", "message_id", correlationID("a"), correlationID("b"), true},
		{"hash-property", "correlation_id", correlationID("a"), correlationID("b"), false},
		{"hash-property", "timestamp", timestamp(1), timestamp(1), true},
		{"hash-property", "timestamp", timestamp(1), timestamp(2), false},
		{"hash-property", "timestamp", keyed("a"), keyed("b"), true},
	} {
		x := newExchange(t, "x-consistent-hash", frames.Field{Name: tt.arg, Value: tt.value})
		for i := range 100 {
			bind(t, x, newQueue(fmt.Sprint(i)), "10")
		}
		if got := sameQueue(t, x, tt.a, tt.b); got != tt.want {
			t.Errorf("%s=%s: same queue = %v, want %v", tt.arg, tt.value, got, tt.want)
		}
		if x.router.ByKey() {
			t.Errorf("%s: ByKey() = true", tt.arg)
		}
	}
}

func TestModulusHash(t *testing.T) {
	x, y := newExchange(t, "x-modulus-hash"), newExchange(t, "x-modulus-hash")
	for i := range 5 {
		bind(t, x, newQueue(fmt.Sprint("q", i)), "ignored")
		bind(t, y, newQueue(fmt.Sprint("q", 4-i)), "ignored") // as after a restart, in another order
	}
	count, of := shares(t, x, 5000)
	for i := range 5 {
		wantShare(t, count, fmt.Sprint("q", i), 1000)
	}
	_, again := shares(t, y, 5000)
	for key, name := range of {
		if again[key] != name {
			t.Fatalf("%s goes to %s or %s, by the order of binding", key, name, again[key])
		}
	}
}

func TestRandomReachesAll(t *testing.T) {
	for _, kind := range []string{"x-random", "x-local-random"} {
		x := newExchange(t, kind)
		for i := range 4 {
			bind(t, x, newQueue(fmt.Sprint("q", i)), "")
		}
		count, _ := shares(t, x, 4000)
		for i := range 4 {
			wantShare(t, count, fmt.Sprint("q", i), 1000)
		}
		x.UnbindQueue(x.Bindings()[0].Queue)
		if count, _ := shares(t, x, 400); len(count) != 3 {
			t.Errorf("%s: %v after one of four went", kind, count)
		}
	}
	x := newExchange(t, "x-random")
	wantRouted(t, x, keyed("k"))
}
