package management

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leveretmq/leveret/pattern"
)

func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, nil)
		a.do("PUT", "/queues/%2F/q", "", 201)
		for range 10 {
			a.publish("q", "x")
		}
		has(t, a.do("GET", "/queues/%2F/q", "", 200), J{"messages": 10.0, "messages_details": J{"rate": 0.0}})
		sleep(sampleInterval)
		got := a.do("GET", "/queues/%2F/q", "", 200)
		has(t, got, J{"messages": 10.0})
		has(t, got.(J)["message_stats"], J{"publish": 10.0, "publish_details": J{"rate": 2.0}})
		overview := a.do("GET", "/overview", "", 200).(J)
		has(t, overview["message_stats"], J{"publish": 10.0, "publish_details": J{"rate": 2.0}})
		has(t, overview["queue_totals"], J{"messages": 10.0})
		sleep(sampleInterval)
		has(t, a.do("GET", "/queues/%2F/q", "", 200).(J)["message_stats"], J{"publish": 10.0, "publish_details": J{"rate": 0.0}})
	})
}

// sleep lets time pass, and what that sets off happen.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, nil)
		a.do("PUT", "/queues/%2F/q", "", 201)
		for range 3 {
			a.publish("q", "x")
			sleep(sampleInterval)
		}
		got := a.do("GET", "/queues/%2F/q?lengths_age=10&lengths_incr=5&msg_rates_age=10&msg_rates_incr=5", "", 200).(J)
		now := float64(time.Now().UnixMilli())
		samples := []any{J{"sample": 3.0, "timestamp": now}, J{"sample": 2.0, "timestamp": now - 5000}, J{"sample": 1.0, "timestamp": now - 10000}}
		has(t, got["messages_details"], J{"rate": 0.2, "samples": samples, "avg_rate": 0.2, "avg": 2.0})
		has(t, got["message_stats"].(J)["publish_details"], J{"samples": samples})
		has(t, a.do("GET", "/queues/%2F/q?lengths_age=501&lengths_incr=1", "", 400), J{"error": "invalid_range_parameters", "reason": "Invalid range parameters: age 501, incr 1"})
		a.do("GET", "/queues/%2F/q?lengths_age=x&lengths_incr=1", "", 200)
	})
}

func TestTotalsKeepWhatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, nil)
		a.do("PUT", "/vhosts/v", "", 201)
		a.do("PUT", "/exchanges/v/x", `{"type":"fanout"}`, 201)
		a.do("POST", "/exchanges/v/x/publish", `{"properties":{},"routing_key":"","payload":"","payload_encoding":"string"}`, 200)
		sleep(sampleInterval)
		published := func() any {
			return a.do("GET", "/overview", "", 200).(J)["message_stats"].(J)["publish"]
		}
		a.do("DELETE", "/exchanges/v/x", "", 204)
		sleep(sampleInterval)
		if got := published(); got != 1.0 {
			t.Errorf("published after the exchange went: %v, want 1", got)
		}
		a.do("DELETE", "/vhosts/v", "", 204)
		sleep(sampleInterval)
		if got := published(); got != 1.0 {
			t.Errorf("published after the vhost went: %v, want 1", got)
		}
		a.do("DELETE", "/reset", "", 204)
		if got := published(); got != 0.0 {
			t.Errorf("published after the reset: %v, want 0", got)
		}
	})
}

func TestDroppedPublishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, nil)
		a.user("m", "management")
		const lost = `{"properties":{},"routing_key":"none","payload":"","payload_encoding":"string"}`
		for range 3 {
			a.do("POST", "/exchanges/%2F/amq.direct/publish", lost, 200)
		}
		returned := func(n uint64) {
			a.conns.mu.Lock()
			defer a.conns.mu.Unlock()
			a.conns.channels = []Channel{{Connection: "c", Number: 1, VHost: "/", Returned: n}}
		}
		returned(1) // of the three
		dropped := func(edit func(*http.Request)) any {
			return decode(t, a.request("GET", "/overview", "", edit).Body).(J)["message_stats"].(J)["drop_unroutable"]
		}
		sleep(sampleInterval)
		if got := dropped(nil); got != 2.0 {
			t.Errorf("dropped: %v, want 2", got)
		}
		if got := dropped(as("m")); got != 0.0 {
			t.Errorf("who sees no vhost is told of %v, want 0", got)
		}
		returned(2) // it was on its way
		sleep(sampleInterval)
		if got := dropped(nil); got != 2.0 {
			t.Errorf("the counter falls to %v, want 2", got)
		}
		a.do("DELETE", "/reset", "", 204)
		if got := dropped(nil); got != 0.0 {
			t.Errorf("after the reset: %v, want 0", got)
		}
	})
}

// What channels have dropped is known by vhost, too.
func TestDroppedPublishesByVHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, nil)
		a.do("PUT", "/vhosts/v", "", 201)
		a.user("m", "management")
		a.do("PUT", "/permissions/v/m", `{"configure":"","write":"","read":""}`, 201)
		for range 9 {
			a.do("POST", "/exchanges/%2F/amq.direct/publish", `{"properties":{},"routing_key":"none","payload":"","payload_encoding":"string"}`, 200)
		}
		a.conns.mu.Lock()
		a.conns.channels = []Channel{{Connection: "c", Number: 1, VHost: "/", Dropped: 1}, {Connection: "d", Number: 1, VHost: "v", Dropped: 2}}
		a.conns.past = map[string]Past{"v": {Dropped: 3}}
		a.conns.mu.Unlock()
		sleep(sampleInterval)
		dropped := func(path, user string) any {
			return decode(t, a.request("GET", path, "", as(user)).Body).(J)["message_stats"].(J)["drop_unroutable"]
		}
		if got := dropped("/overview", "m"); got != 5.0 {
			t.Errorf("who sees one vhost is told of %v, want 5", got)
		}
		for path, want := range map[string]float64{"/vhosts/%2F": 1, "/vhosts/v": 5, "/overview": 9} {
			if got := a.do("GET", path, "", 200).(J)["message_stats"].(J)["drop_unroutable"]; got != want {
				t.Errorf("%s: %v, want %v", path, got, want)
			}
		}
	})
}

func TestShareOfBytes(t *testing.T) {
	for _, tt := range []struct {
		total  int64
		n, all int
		want   int64
	}{{118, 18, 18, 118}, {118, 0, 18, 0}, {100, 5, 10, 50}, {0, 0, 0, 0}, {1 << 62, 1, 1 << 30, 1 << 32}} {
		if got := share(tt.total, tt.n, tt.all); got != tt.want {
			t.Errorf("share(%d, %d, %d) = %d, want %d", tt.total, tt.n, tt.all, got, tt.want)
		}
	}
}

func TestChurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, nil)
		a.aConn("c", "guest", "/", "q")
		a.do("PUT", "/queues/%2F/q", "", 201)
		sleep(sampleInterval)
		a.conns.closeAll()
		a.do("DELETE", "/queues/%2F/q", "", 204)
		sleep(sampleInterval)
		has(t, a.do("GET", "/overview", "", 200).(J)["churn_rates"], J{"connection_created": 1.0, "connection_closed": 1.0,
			"channel_created": 1.0, "channel_closed": 1.0, "queue_created": 1.0, "queue_deleted": 1.0})
	})
}

func TestSamplerForgetsAndBoundsHistories(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, nil)
		a.do("PUT", "/queues/%2F/q", "", 201)
		a.publish("q", "x")
		sleep(sampleInterval)
		s := a.s.sampler
		if s.histories != 2 { // the queue and the exchange that it came through
			t.Errorf("%d histories, want 2", s.histories)
		}
		a.do("DELETE", "/queues/%2F/q", "", 204)
		sleep(sampleInterval)
		if _, there := s.series[part{aQueue, "/", "q"}]; there || s.histories != 1 {
			t.Errorf("deleted queue remembered: %v, %d histories, want 1", there, s.histories)
		}
	})
}

// A queue that was never used costs nothing; the first message shows at once.
func TestUnusedQueuesAreNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, nil)
		a.do("PUT", "/queues/%2F/q", "", 201)
		sleep(2 * sampleInterval)
		s := a.s.sampler
		if _, there := s.series[part{aQueue, "/", "q"}]; there {
			t.Error("an unused queue is remembered")
		}
		a.publish("q", "x")
		sleep(sampleInterval)
		got := a.do("GET", "/queues/%2F/q", "", 200).(J)
		has(t, got["messages_details"], J{"rate": 0.2})
		has(t, got["message_stats"].(J)["publish_details"], J{"rate": 0.2})
	})
}

func TestRing(t *testing.T) {
	r := ring{resolution: resolution{time.Second, 3}}
	var got []int64
	for i := range int64(5) {
		r.add(i*1000, []int64{i * 10})
	}
	for i := 0; r.at(1, i) != nil; i++ {
		got = append(got, r.at(1, i)...)
	}
	if want := []int64{4000, 40, 3000, 30, 2000, 20}; !slices.Equal(got, want) {
		t.Errorf("ring %v, want %v", got, want)
	}
}

func TestRatesOfAnotherInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, func(c *Config) { c.Options.SampleInterval = time.Second })
		a.do("PUT", "/queues/%2F/q", "", 201)
		for range 10 {
			a.publish("q", "x")
		}
		sleep(time.Second)
		got := a.do("GET", "/queues/%2F/q", "", 200).(J)
		has(t, got["message_stats"], J{"publish": 10.0, "publish_details": J{"rate": 10.0}})
	})
}

// The messages of queues that a pattern names are their own only; what is published
// to them counts.
func TestQueuesThatAreNotAggregated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, func(c *Config) { c.Options.UnaggregatedQueues, _ = pattern.Compile("tmp") })
		for _, name := range []string{"q", "a.tmp.b"} {
			a.do("PUT", "/queues/%2F/"+name, "", 201)
			for range 5 {
				a.publish(name, "x")
			}
		}
		sleep(sampleInterval)
		half := J{"messages": 5.0, "messages_ready": 5.0, "messages_details": J{"rate": 1.0}}
		overview := a.do("GET", "/overview", "", 200).(J)
		has(t, overview["queue_totals"], half)
		has(t, overview["message_stats"], J{"publish": 10.0, "publish_details": J{"rate": 2.0}})
		has(t, overview["object_totals"], J{"queues": 2.0})
		has(t, a.do("GET", "/vhosts/%2F", "", 200), half)
		has(t, a.do("GET", "/queues/%2F/a.tmp.b", "", 200), half)
	})
}

// Without rates the counts of messages are not there, the numbers of messages are.
func TestNoRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, func(c *Config) { c.Options.NoRates = true })
		a.do("PUT", "/queues/%2F/q", "", 201)
		a.publish("q", "x")
		sleep(sampleInterval)
		for _, path := range []string{"/queues/%2F/q", "/vhosts/%2F", "/exchanges/%2F/amq.default"} {
			if stats, there := a.do("GET", path, "", 200).(J)["message_stats"]; there {
				t.Errorf("%s has message_stats %v", path, stats)
			}
		}
		has(t, a.do("GET", "/queues/%2F/q", "", 200), J{"messages": 1.0})
		overview := a.do("GET", "/overview", "", 200).(J)
		has(t, overview, J{"rates_mode": "none"})
		if stats := overview["message_stats"].(J); len(stats) != 4 || stats["disk_reads"] == nil || stats["disk_writes"] == nil {
			t.Errorf("overview has message_stats %v, want those of the disk only", stats)
		}
	})
}

// Before it came an object had counted nothing; how many messages there were then is
// not known.
func TestCountersWereZeroBeforeTheFirstSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, nil)
		defer a.s.Shutdown(t.Context())
		sleep(2 * sampleInterval)
		a.do("PUT", "/queues/%2F/q", "", 201)
		for range 3 {
			a.publish("q", "m")
		}
		sleep(sampleInterval)
		got := a.do("GET", "/queues/%2F/q?msg_rates_age=10&msg_rates_incr=5&lengths_age=10&lengths_incr=5", "", 200).(J)
		values := func(details any) (list []float64) {
			for _, s := range details.(J)["samples"].([]any) {
				list = append(list, s.(J)["sample"].(float64))
			}
			return list
		}
		if n := values(got["message_stats"].(J)["publish_details"]); !slices.Equal(n, []float64{3, 0, 0}) {
			t.Errorf("publish samples %v, want 3 0 0", n)
		}
		has(t, got["message_stats"].(J)["publish_details"], J{"avg_rate": 0.3})
		if n := values(got["messages_details"]); !slices.Equal(n, []float64{3, 3, 3}) {
			t.Errorf("messages samples %v, want 3 3 3", n)
		}
	})
}
