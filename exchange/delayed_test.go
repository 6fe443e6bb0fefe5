package exchange

import (
	"testing"

	"github.com/leveretmq/leveret/frames"
)

func TestDelay(t *testing.T) {
	x := newExchange(t, "x-delayed-message", frames.Field{Name: "x-delayed-type", Value: "direct"})
	direct := newExchange(t, "direct")
	for _, tt := range []struct {
		delay any
		want  int64 // 0 is no delay
	}{
		{int32(5000), 5000},
		{int64(1), 1},
		{uint8(200), 200},
		{int16(300), 300},
		{int32(0), 0},
		{int32(-5000), 0}, // was delayed already
		{"5000", 5000},
		{"-5000", 0},
		{"soon", 0},
		{"", 0},
		{"1.5", 0},
		{int64(1<<32 - 1), 1<<32 - 1},
		{int64(1 << 40), 1<<32 - 1},
		{"99999999999999999999", 1<<32 - 1},
		{true, 0},
		{5000.0, 0},
		{nil, 0},
		{frames.Timestamp(5000), 0},
		{frames.Table{}, 0},
	} {
		m := withHeaders(frames.Field{Name: "x-delay", Value: tt.delay})
		ms, ok := x.Delay(m)
		if ok != (tt.want > 0) || ok && ms != tt.want {
			t.Errorf("x-delay %T(%v): Delay() = %d, %v, want %d", tt.delay, tt.delay, ms, ok, tt.want)
		}
		if _, ok := direct.Delay(m); ok {
			t.Errorf("x-delay %v delays in a direct exchange", tt.delay)
		}
	}
	if _, ok := x.Delay(keyed("k")); ok {
		t.Error("a message without headers is delayed")
	}
}

func TestDelayedRoutesByItsInnerType(t *testing.T) {
	x := newExchange(t, "x-delayed-message", frames.Field{Name: "x-delayed-type", Value: "topic"})
	q := newQueue("q")
	bind(t, x, q, "a.*")
	bind(t, x, newQueue("r"), "b.#")
	wantRouted(t, x, keyed("a.x"), "q")
	wantRouted(t, x, keyed("b"), "r")
	x.UnbindQueue(q)
	wantRouted(t, x, keyed("a.x"))
	if x.byKey {
		t.Error("routes of a delayed exchange may be cached, past the delay")
	}
}
