package exchange

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
)

func TestMatchesDropDuplicatesAtAnySize(t *testing.T) {
	var to Matches
	for _, n := range []int{1, 15, 16, 17, 18, 100, 3} { // the same Matches again and again
		to.Reset()
		want := []queue.Queue{}
		for i := range n {
			q := newQueue(fmt.Sprint(i))
			want = append(want, q)
			for _, q := range want {
				to.AddQueue(q)
			}
		}
		if !slices.Equal(to.Queues(), want) {
			t.Errorf("%d queues, each added many times: got %d", n, len(to.Queues()))
		}
	}
	to.Reset()
	if len(to.Queues()) != 0 {
		t.Error("Reset left queues")
	}
}

// TestOneCopyPerQueue has each queue reached by several ways, some of them
// beyond the number where the search changes.
func TestOneCopyPerQueue(t *testing.T) {
	for _, n := range []int{3, 40} {
		a, b := newExchange(t, "fanout"), newExchange(t, "topic")
		bindExchange(t, a, b, "")
		want := []string{}
		for i := range n {
			q := newQueue(fmt.Sprint(i))
			want = append(want, q.name)
			bind(t, a, q, "")
			bind(t, b, q, "k.*")
			if i%2 == 0 {
				bind(t, a, q, "another")
				bind(t, b, q, "k.#")
				bind(t, b, q, "k.*", frames.Field{Name: "n", Value: int32(1)})
			}
		}
		slices.Sort(want)
		wantRouted(t, a, keyed("k.1"), want...)
		wantRouted(t, b, keyed("k.1"), want...)
		for _, bd := range b.Bindings() { // one of several goes: the last one is alone again
			if bd.Key == "k.#" || len(bd.Arguments) > 0 {
				b.Unbind(bd.Queue, nil, bd.Key, bd.Arguments)
			}
		}
		wantRouted(t, b, keyed("k.1"), want...)
		for _, bd := range b.Bindings() {
			if !bd.alone {
				t.Errorf("the binding to %s does not know that it is alone", bd.Queue.Name())
			}
		}
	}
}

func TestRouteAllocatesNothing(t *testing.T) {
	topic, ms := devices(t, 1000)
	direct, fanout := newExchange(t, "direct"), newExchange(t, "fanout")
	for i := range 40 {
		q := newQueue(fmt.Sprint(i))
		bind(t, direct, q, "k")
		bind(t, direct, q, "k", frames.Field{Name: "n", Value: int32(1)}) // so that duplicates are searched for
		bind(t, fanout, q, "")
	}
	headers := newExchange(t, "headers")
	long := strings.Repeat("long ", 40)
	bind(t, headers, newQueue("q"), "", frames.Field{Name: long, Value: long}, frames.Field{Name: "b", Value: int32(2)})
	withTable := withHeaders(frames.Field{Name: long, Value: long}, frames.Field{Name: "b", Value: int64(2)})
	hash := newExchange(t, "x-consistent-hash")
	bind(t, hash, newQueue("q"), "3")
	var to Matches
	find := finder()
	for x, want := range map[*Exchange]int{topic: 1, direct: 40, fanout: 40, headers: 1, hash: 1} {
		m := ms[5]
		switch x {
		case direct:
			m = keyed("k")
		case headers:
			m = withTable
		}
		route := func() {
			to.Reset()
			x.Route(m, find, &to)
		}
		route()
		if got := len(to.Queues()); got != want {
			t.Errorf("%s: %d queues, want %d", x.Type, got, want)
		}
		if got := testing.AllocsPerRun(100, route); got != 0 {
			t.Errorf("%s: %v allocations per route, want 0", x.Type, got)
		}
	}
}
