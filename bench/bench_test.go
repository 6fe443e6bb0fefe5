package bench

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leveretmq/leveret/broker"
	"github.com/leveretmq/leveret/config"
	"github.com/leveretmq/leveret/frames"
)

// startBroker starts a broker in this process that ends with the test.
func startBroker(t *testing.T) *Broker {
	t.Helper()
	b, stop := startMortalBroker(t)
	t.Cleanup(stop)
	return b
}

// startMortalBroker starts a broker that the test must stop.
func startMortalBroker(t *testing.T) (b *Broker, stop func()) {
	t.Helper()
	cfg := config.Default()
	cfg.Listen = "127.0.0.1:0"
	cfg.ManagementListen = ""
	cfg.InMemory = true
	own := broker.New(cfg, nil)
	addr, err := own.Start()
	if err != nil {
		t.Fatal(err)
	}
	return target(t, "amqp://"+addr.String()), func() {
		if err := own.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

func target(t *testing.T, uri string) *Broker {
	t.Helper()
	b, err := ParseBroker("", uri)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// scenario makes a scenario of settings as "key value" lines.
func scenario(t *testing.T, lines ...string) *Scenario {
	t.Helper()
	sc, err := ParseScenarios("test.yaml", []byte(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return sc[0]
}

// mustRun runs a scenario that must not fail.
func mustRun(t *testing.T, b *Broker, sc *Scenario) *Result {
	t.Helper()
	r, err := Run(t.Context(), b, sc, Options{Interval: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Failures) > 0 {
		t.Errorf("failures %q", r.Failures)
	}
	return r
}

// counts are the totals of a result.
type counts struct{ published, confirmed, consumed, nacked, returned, unconfirmed, missing int64 }

func countsOf(r *Result) counts {
	return counts{r.Published, r.Confirmed, r.Consumed, r.Nacked, r.Returned, r.Unconfirmed, r.Missing}
}

func TestFlowCounts(t *testing.T) {
	b := startBroker(t)
	for _, tt := range []struct {
		name  string
		lines []string
		want  counts
	}{
		{"confirms and acks", []string{"messages: 1000", "confirm: 100"}, counts{published: 1000, confirmed: 1000, consumed: 1000}},
		{"one by one", []string{"messages: 100", "confirm: 1", "ack-every: 1", "prefetch: 1"}, counts{published: 100, confirmed: 100, consumed: 100}},
		{"neither", []string{"messages: 1000", "auto-ack: true"}, counts{published: 1000, consumed: 1000}},
		{"in flight", []string{"messages: 5000", "auto-ack: true", "inflight: 10"}, counts{published: 5000, consumed: 5000}},
		{"empty bodies", []string{"messages: 100", "size: 0"}, counts{published: 100, consumed: 100}},
		{"large bodies", []string{"messages: 10", "size: 300K", "confirm: 2"}, counts{published: 10, confirmed: 10, consumed: 10}},
		{"uneven shares", []string{"messages: 1001", "publishers: 7", "consumers: 3", "queues: 3", "confirm: 10"}, counts{published: 1001, confirmed: 1001, consumed: 1001}},
		{"channels", []string{"messages: 1000", "publishers: 5", "consumers: 5", "queues: 5", "channels: 3", "confirm: 10", "ack-every: 1"}, counts{published: 1000, confirmed: 1000, consumed: 1000}},
		{"paced", []string{"messages: 100", "rate: 2000", "confirm: 100"}, counts{published: 100, confirmed: 100, consumed: 100}},
		{"pace beyond its groups", []string{"messages: 2000", "total-rate: 40k", "publishers: 2"}, counts{published: 2000, consumed: 2000}},
		{"fanout", []string{"messages: 1000", "exchange-type: fanout", "queues: 10", "consumers: 10", "confirm: 100", "inflight: 500"}, counts{published: 1000, confirmed: 1000, consumed: 10000}},
		{"direct", []string{"messages: 1000", "exchange-type: direct", "queues: 4", "consumers: 4"}, counts{published: 1000, consumed: 1000}},
		{"topic", []string{"messages: 1000", "exchange-type: topic", "queues: 2", "consumers: 2", "keys: 10", "bindings: 10",
			"routing-key: [a.%d.x, b.%d.x]", "binding-key: a.%d.#"}, counts{published: 1000, consumed: 500}},
		{"headers", []string{"messages: 100", "exchange-type: headers", "queues: 4", "consumers: 4"}, counts{published: 100, consumed: 100}},
		{"stream to two", []string{"messages: 1000", "queue-type: stream", "consumers: 2", "confirm: 100", "consumer-args: {x-stream-offset: next}"}, counts{published: 1000, confirmed: 1000, consumed: 2000}},
		{"quorum", []string{"messages: 1000", "queue-type: quorum", "confirm: 100", "persistent: true"}, counts{published: 1000, confirmed: 1000, consumed: 1000}},
		{"returned", []string{"messages: 10", "exchange-type: topic", "routing-key: a.b", "binding-key: c.d", "mandatory: true", "confirm: 5"}, counts{published: 10, confirmed: 10, returned: 10}},
		{"refused", []string{"messages: 10", "consumers: 0", "confirm: 5", "queue-args: {x-max-length: 4, x-overflow: reject-publish}"}, counts{published: 10, confirmed: 4, nacked: 6}},
		{"thinking consumer", []string{"messages: 20", "consumer-latency: 100us"}, counts{published: 20, consumed: 20}},
		{"publish only", []string{"messages: 100", "consumers: 0", "confirm: 10"}, counts{published: 100, confirmed: 100}},
		{"backlog", []string{"kind: backlog", "messages: 3000", "confirm: 100"}, counts{published: 3000, confirmed: 3000, consumed: 3000}},
		{"backlog without confirms", []string{"kind: backlog", "messages: 3000", "queues: 2", "consumers: 2"}, counts{published: 3000, consumed: 3000}},
		{"backlog that may lose", []string{"kind: backlog", "messages: 20000", "confirm: 1000", "prefetch: 10", "lossy: true"}, counts{published: 20000, confirmed: 20000, consumed: 20000}},
		{"backlog that is refused", []string{"kind: backlog", "messages: 3000", "confirm: 100", "drain-time: 100ms", "queue-args: {x-max-length: 1000, x-overflow: reject-publish}"},
			counts{published: 3000, confirmed: 1000, nacked: 2000, consumed: 1000}},
		{"backlog that is dropped", []string{"kind: backlog", "messages: 3000", "confirm: 100", "drain-time: 100ms", "queue-args: {x-max-length: 1000}"},
			counts{published: 3000, confirmed: 3000, consumed: 1000}},
		{"stream from the start", []string{"kind: backlog", "messages: 3000", "queue-type: stream", "confirm: 100", "consumer-args: {x-stream-offset: first}"}, counts{published: 3000, confirmed: 3000, consumed: 3000}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := countsOf(mustRun(t, b, scenario(t, tt.lines...))); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	b := startBroker(t)
	mustRun(t, b, scenario(t, "messages: 10", "exchange-type: fanout", "queues: 2", "consumers: 0"))
	_, err := Run(t.Context(), b, scenario(t, "queue: leveret-bench.test.%d", "predeclared: true", "messages: 1", "publishers: 0"), Options{})
	if closed, ok := errors.AsType[*closedError](err); !ok && (err == nil || !strings.Contains(err.Error(), "404")) {
		t.Errorf("consuming from a queue of the run before: %v, %v; want a 404", closed, err)
	}
}

// TestTwoProcesses publishes in one run and consumes in another.
func TestTwoProcesses(t *testing.T) {
	b := startBroker(t)
	mustRun(t, b, scenario(t, "messages: 500", "queue: jobs", "consumers: 0", "keep: true", "confirm: 10"))
	r := mustRun(t, b, scenario(t, "messages: 500", "queue: jobs", "publishers: 0"))
	if got, want := countsOf(r), (counts{consumed: 500}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if r.Delivery == nil || r.Delivery.Count != 500 {
		t.Errorf("latencies %+v, want 500 of them", r.Delivery)
	}
}

// TestSilenceIsNotMeasured publishes through an exchange that the tool does not
// know, so that it must wait for what comes.
func TestSilenceIsNotMeasured(t *testing.T) {
	b := startBroker(t)
	other, err := dial(t.Context(), b, 0, churnBuffer)
	if err != nil {
		t.Fatal(err)
	}
	defer other.cut()
	if err := other.openChannel(1); err != nil {
		t.Fatal(err)
	}
	for _, queue := range []string{"jobs-0", "jobs-1"} {
		if _, err := call[*frames.QueueDeclareOk](other, 1, &frames.QueueDeclare{Queue: queue}); err != nil {
			t.Fatal(err)
		}
		if _, err := call[*frames.QueueBindOk](other, 1, &frames.QueueBind{Queue: queue, Exchange: "amq.fanout"}); err != nil {
			t.Fatal(err)
		}
	}
	r := mustRun(t, b, scenario(t, "messages: 1000", "confirm: 100", "exchange: amq.fanout", "queue: jobs-%d", "queues: 2", "consumers: 2",
		"predeclared: true", "drain-time: 2s"))
	if r.Consumed != 2000 || r.Seconds >= 2 || r.ConsumeRate < 1000 {
		t.Errorf("%d consumed, %v s measured, %v consumed a second", r.Consumed, r.Seconds, r.ConsumeRate)
	}
	if want := []string{"nothing came in the last 2s, the drain-time, which was not measured"}; !slices.Equal(r.Notes, want) {
		t.Errorf("notes %q, want %q", r.Notes, want)
	}
}

func TestTooFewMessagesFailTheRun(t *testing.T) {
	b := startBroker(t)
	mustRun(t, b, scenario(t, "messages: 5", "queue: jobs", "consumers: 0", "keep: true", "confirm: 10"))
	r, err := Run(t.Context(), b, scenario(t, "messages: 10", "queue: jobs", "publishers: 0", "timeout: 200ms"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"5 of 10 messages came"}; r.Consumed != 5 || !slices.Equal(r.Failures, want) {
		t.Errorf("%d consumed, failures %q, want %q", r.Consumed, r.Failures, want)
	}
}

// TestOlderMessagesDoNotCount publishes to a queue that holds messages of a run
// before it and of somebody else.
func TestOlderMessagesDoNotCount(t *testing.T) {
	b := startBroker(t)
	for _, tt := range []struct{ before, kind string }{{"size: 100", "kind: flow"}, {"size: 0", "kind: flow"}, {"size: 100", "kind: backlog"}} {
		mustRun(t, b, scenario(t, "messages: 500", tt.before, "queue: jobs", "consumers: 0", "keep: true", "confirm: 10"))
		r := mustRun(t, b, scenario(t, tt.kind, "messages: 100", "queue: jobs", "confirm: 10"))
		if got, want := countsOf(r), (counts{published: 100, confirmed: 100, consumed: 100}); got != want || r.Foreign != 500 {
			t.Errorf("%s, %s: got %+v and %d older ones, want %+v and 500", tt.before, tt.kind, got, r.Foreign, want)
		}
		if want := []string{"500 messages were in the queues that this run has not published; they do not count"}; !slices.Equal(r.Notes, want) {
			t.Errorf("%s, %s: notes %q, want %q", tt.before, tt.kind, r.Notes, want)
		}
	}
}

// TestLostConsumersEndTheRun takes the consumers from runs with much time left.
func TestLostConsumersEndTheRun(t *testing.T) {
	for name, lines := range map[string][]string{
		"messages":                    {"messages: 1M", "publishers: 0"},
		"time":                        {"duration: 30s", "warmup: 0s", "rate: 100"},
		"messages that are published": {"messages: 1M", "inflight: 10", "rate: 100"},
	} {
		t.Run(name, func(t *testing.T) {
			b := startBroker(t)
			other, err := dial(t.Context(), b, 0, churnBuffer)
			if err != nil {
				t.Fatal(err)
			}
			defer other.cut()
			if err := other.openChannel(1); err != nil {
				t.Fatal(err)
			}
			samples := 0
			r, err := Run(t.Context(), b, scenario(t, append(lines, "timeout: 30s", "drain-time: 50ms")...), Options{Interval: 20 * time.Millisecond, Progress: func(Sample) {
				if samples++; samples != 3 {
					return
				}
				if _, err := call[*frames.QueueDeleteOk](other, 1, &frames.QueueDelete{Queue: "leveret-bench.test.0"}); err != nil {
					t.Error(err)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			if r.Seconds > 10 || !slices.Contains(r.Failures, "the broker cancelled a consumer") {
				t.Errorf("measured %v s, failures %q", r.Seconds, r.Failures)
			}
		})
	}
}

func TestChurnCounts(t *testing.T) {
	b := startBroker(t)
	for _, kind := range []string{"connchurn", "channelchurn", "queuechurn"} {
		r := mustRun(t, b, scenario(t, "kind: "+kind, "messages: 20", "publishers: 2"))
		if r.Ops != 20 || r.Open.Count != 20 || r.Close.Count != 20 {
			t.Errorf("%s: %d operations, latencies %+v and %+v, want 20 of each", kind, r.Ops, r.Open, r.Close)
		}
	}
	r := mustRun(t, b, scenario(t, "kind: connections", "connections: 10", "publishers: 2", "duration: 50ms"))
	if r.Ops != 10 || r.Open.Count != 10 {
		t.Errorf("%d connections, latencies %+v, want 10", r.Ops, r.Open)
	}
}

// TestSlowConsumerLosesNothing ends before a consumer has got everything.
func TestSlowConsumerLosesNothing(t *testing.T) {
	r := mustRun(t, startBroker(t), scenario(t, "duration: 50ms", "warmup: 0s", "timeout: 200ms", "consumer-latency: 20ms", "prefetch: 2", "rate: 10k"))
	if r.Missing != 0 || len(r.Notes) != 1 || !strings.HasSuffix(r.Notes[0], "deliveries were still to come after 200ms, the timeout, and were not waited for") {
		t.Errorf("%d missing, notes %q", r.Missing, r.Notes)
	}
}

func TestBrokerThatGoesAwayFailsTheRun(t *testing.T) {
	b, stop := startMortalBroker(t)
	samples := 0
	r, err := Run(t.Context(), b, scenario(t, "duration: 1h", "warmup: 0s", "rate: 1000", "drain-time: 100ms"), Options{Interval: 20 * time.Millisecond, Progress: func(Sample) {
		if samples++; samples == 3 {
			stop()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Published == 0 || r.ConnCloses != 2 || len(r.Failures) == 0 || !strings.Contains(strings.Join(r.Failures, " "), "the broker closed the connection: 320 CONNECTION_FORCED") {
		t.Errorf("%d published, %d connections closed, failures %q", r.Published, r.ConnCloses, r.Failures)
	}
}

func TestNoBroker(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, err = Run(t.Context(), target(t, "amqp://"+l.Addr().String()), NewScenario(), Options{})
	if err == nil || !strings.Contains(err.Error(), "no broker can be reached") {
		t.Errorf("got %v", err)
	}
}

// Who ends a run while it connects is not told that there is no broker.
func TestCutOffWhileConnecting(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	during, cancel := context.WithCancel(t.Context())
	go func() { // a broker that takes a connection and says nothing
		sock, err := l.Accept()
		cancel()
		if err == nil {
			<-t.Context().Done()
			sock.Close()
		}
	}()
	for name, ctx := range map[string]context.Context{"before": over, "in the handshake": during} {
		_, err := Run(ctx, target(t, "amqp://"+l.Addr().String()), NewScenario(), Options{})
		if !errors.Is(err, errCutOff) {
			t.Errorf("cut off %s: %v", name, err)
		}
	}
}
