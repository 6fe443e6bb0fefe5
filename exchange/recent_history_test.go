package exchange

import (
	"fmt"
	"slices"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
)

func historyKeys(x *Exchange) []string {
	keys := []string{}
	for _, m := range x.History() {
		keys = append(keys, m.RoutingKey)
	}
	return keys
}

func TestRecentHistoryKeepsTheLast(t *testing.T) {
	x := newExchange(t, "x-recent-history", frames.Field{Name: "x-recent-history-length", Value: int32(3)})
	if got := x.History(); len(got) != 0 {
		t.Errorf("a new exchange has history %v", got)
	}
	for i, want := range [][]string{{"0"}, {"0", "1"}, {"0", "1", "2"}, {"1", "2", "3"}, {"2", "3", "4"}, {"3", "4", "5"}, {"4", "5", "6"}} {
		routed(x, keyed(fmt.Sprint(i)))
		if got := historyKeys(x); !slices.Equal(got, want) {
			t.Errorf("after message %d: history %v, want %v", i, got, want)
		}
	}
}

// The time of what a transaction has published changes with its commit.
func TestRecentHistoryKeepsCopies(t *testing.T) {
	x := newExchange(t, "x-recent-history")
	m := keyed("k")
	m.Time = 1
	routed(x, m)
	m.Time = 2
	if got := x.History()[0].Time; got != 1 {
		t.Errorf("the time of what is kept is %d, want 1", got)
	}
}

func TestRecentHistoryIsAFanoutOfTwenty(t *testing.T) {
	x := newExchange(t, "x-recent-history")
	bind(t, x, newQueue("a"), "k")
	bind(t, x, newQueue("b"), "l")
	wantRouted(t, x, keyed("other"), "a", "b")
	for range 30 {
		routed(x, keyed("k"))
	}
	if got := len(x.History()); got != 20 {
		t.Errorf("%d messages kept, want 20", got)
	}
	if x.History()[0].RoutingKey != "k" {
		t.Error("the oldest message is still there")
	}
}

func TestRecentHistoryNoStore(t *testing.T) {
	for _, tt := range []struct {
		header *message.Message
		want   int
	}{
		{withHeaders(frames.Field{Name: "x-recent-history-no-store", Value: true}), 0},
		{withHeaders(frames.Field{Name: "x-recent-history-no-store", Value: false}), 1},
		{withHeaders(frames.Field{Name: "x-recent-history-no-store", Value: "true"}), 1},
		{withHeaders(frames.Field{Name: "other", Value: true}), 1},
		{keyed("k"), 1},
	} {
		x := newExchange(t, "x-recent-history")
		bind(t, x, newQueue("q"), "")
		wantRouted(t, x, tt.header, "q")
		if got := len(x.History()); got != tt.want {
			t.Errorf("header %q: %d messages kept, want %d", tt.header.Header, got, tt.want)
		}
	}
}

func TestDelayedRecentHistory(t *testing.T) {
	x := newExchange(t, "x-delayed-message", frames.Field{Name: "x-delayed-type", Value: "x-recent-history"})
	routed(x, keyed("k"))
	if got := historyKeys(x); !slices.Equal(got, []string{"k"}) {
		t.Errorf("history %v, want [k]", got)
	}
}

func TestOtherTypesHaveNoHistory(t *testing.T) {
	x := newExchange(t, "fanout")
	routed(x, keyed("k"))
	if got := x.History(); got != nil {
		t.Errorf("History() = %v, want nil", got)
	}
}
