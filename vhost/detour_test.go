package vhost

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func bindExchange(t testing.TB, v *VHost, destination, source, key string) {
	t.Helper()
	if err := v.BindExchange(System, destination, source, key, nil); err != nil {
		t.Fatal(err)
	}
}

// Exchanges that delay or drop do so however a message reaches them.
func TestDelayBehindAnExchange(t *testing.T) {
	for _, through := range []string{"binding", "alternate"} {
		t.Run(through, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVHost(t)
				q := declareDelayed(t, v, false)
				at := declareQueue(t, v, QueueDeclare{Name: "at once"})
				if through == "binding" {
					declareExchange(t, v, ExchangeDeclare{Name: "front", Type: "fanout"})
					bindExchange(t, v, "d", "front", "")
					bindQueue(t, v, "at once", "front", "")
				} else {
					declareExchange(t, v, ExchangeDeclare{Name: "front", Type: "direct", Arguments: args("alternate-exchange", "d")})
					bindQueue(t, v, "at once", "front", "other")
				}
				p := v.NewPublisher()
				late, now := newDelayed("late", int32(1000), true), newDelayed("now", int32(0), true)
				late.Exchange, now.Exchange = "front", "front"
				for range 2 { // the second must not go where the first was sent by a kept route
					add(t, p, late, nil)
				}
				if !add(t, p, now, nil) {
					t.Error("a message without a delay counts as unroutable")
				}
				p.Flush()
				wantBodies(t, q, "now")
				if delayedIn(v, "d") != 2 {
					t.Errorf("%d messages wait, want 2", delayedIn(v, "d"))
				}
				if got := at.bodies(); through == "binding" && !slices.Equal(got, []string{"late", "late", "now"}) {
					t.Errorf("the queue of the first exchange has %q", got)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				wantBodies(t, q, "now", "late", "late")
			})
		})
	}
}

func TestDuplicatesBehindAnExchange(t *testing.T) {
	v := newVHost(t)
	q := declareQueue(t, v, QueueDeclare{Name: "q"})
	declareQueue(t, v, QueueDeclare{Name: "all"})
	declareExchange(t, v, ExchangeDeclare{Name: "front", Type: "fanout"})
	declareExchange(t, v, ExchangeDeclare{Name: "x", Type: "x-message-deduplication", Arguments: args("x-cache-size", int32(3))})
	bindExchange(t, v, "x", "front", "")
	bindQueue(t, v, "q", "x", "")
	p := v.NewPublisher()
	for _, id := range []string{"a", "a", "b", "a"} { // a duplicate counts as routed: see addID
		addID(t, p, "front", "", id)
	}
	p.Discard() // takes back what the filter has seen
	addID(t, p, "front", "", "a")
	addID(t, p, "front", "", "a")
	p.Flush()
	wantBodies(t, q, "a")
	lost := newHeld("amq.direct", "none", "lost", false)
	if add(t, p, lost, nil) {
		t.Error("an unroutable message after a duplicate counts as routed")
	}
	bindQueue(t, v, "all", "front", "")
	addID(t, p, "front", "", "a") // reaches one queue and not the other
	if add(t, p, lost, nil) {
		t.Error("an unroutable message after a duplicate that reached a queue counts as routed")
	}
}
