package management

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leveretmq/leveret/queue/stream"
)

// payloads peeks at a queue: what is ready, in order.
func (a *api) payloads(queue string) []string {
	a.t.Helper()
	got := a.do("POST", "/queues/%2F/"+queue+"/peek", "{}", 200).(J)
	return names(a.t, got["messages"], "payload")
}

func (a *api) wantPayloads(queue string, want ...string) {
	a.t.Helper()
	if got := a.payloads(queue); !slices.Equal(got, want) {
		a.t.Errorf("%s has %q, want %q", queue, got, want)
	}
}

func TestPeekChangesNothing(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	for i := range 4 {
		a.do("POST", "/exchanges/%2F/amq.default/publish", fmt.Sprintf(`{"properties":{"type":"t%d","headers":{"n":%d}},"routing_key":"q",
			"payload":"m%d","payload_encoding":"string"}`, i%2, i, i), 200)
	}
	for body, want := range map[string][]string{
		`{"count":2,"offset":1}`:                        {"m1", "m2"},
		`{"filter":{"headers":{"n":3}}}`:                {"m3"},
		`{"filter":{"headers":{"n":null,"none":null}}}`: {},
		`{"filter":{"properties":{"type":"t1"}}}`:       {"m1", "m3"},
		`{"filter":{"text":"2"}}`:                       {"m2"},
		`{"filter":{"exchange":"x"}}`:                   {},
		`{"filter":{"routing_key":"q"},"count":1}`:      {"m0"},
	} {
		got := a.do("POST", "/queues/%2F/q/peek", body, 200).(J)
		if p := names(t, got["messages"], "payload"); !slices.Equal(p, want) {
			t.Errorf("peek %s: %v, want %v", body, p, want)
		}
	}
	for i := range 4 {
		has(t, a.do("POST", "/queues/%2F/q/get", `{"count":1,"ackmode":"ack_requeue_false","encoding":"auto"}`, 200).([]any)[0],
			J{"payload": fmt.Sprintf("m%d", i), "redelivered": false})
	}
}

func TestMove(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	a.do("PUT", "/queues/%2F/r", "", 201)
	for _, p := range []string{"a1", "b1", "a2", "b2", "a3"} {
		a.publish("q", p)
	}
	equal(t, "move", a.do("POST", "/queues/%2F/q/move", `{"to":{"queue":"r"},"filter":{"text":"a"},"count":2}`, 200),
		`{"transferred":2,"skipped":1,"unroutable":0,"refused":0,"left":2,"kept":false}`)
	a.wantPayloads("r", "a1", "a2")
	a.wantPayloads("q", "b1", "b2", "a3")
	equal(t, "move to itself", a.do("POST", "/queues/%2F/r/move", `{"to":{"queue":"r"}}`, 200), `{"transferred":2,"skipped":0,"unroutable":0,"refused":0,"left":0,"kept":false}`)
	a.wantPayloads("r", "a1", "a2")
}

func TestCopy(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	a.do("PUT", "/vhosts/v", "", 201)
	a.do("PUT", "/queues/v/r", "", 201)
	a.do("POST", "/bindings/v/e/amq.topic/q/r", `{"routing_key":"k.*"}`, 201)
	a.publish("q", "m")
	equal(t, "copy", a.do("POST", "/queues/%2F/q/copy", `{"to":{"vhost":"v","exchange":"amq.topic","routing_key":"k.1"}}`, 200),
		`{"transferred":1,"skipped":0,"unroutable":0,"refused":0,"left":0,"kept":true}`)
	a.wantPayloads("q", "m")
	has(t, a.do("GET", "/queues/v/r", "", 200), J{"messages": 1.0})
}

func TestWhatDoesNotArriveStays(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	a.do("PUT", "/queues/%2F/small", `{"arguments":{"x-max-length":1,"x-overflow":"reject-publish"}}`, 201)
	a.publish("q", "a")
	a.publish("q", "b")
	equal(t, "unroutable", a.do("POST", "/queues/%2F/q/move", `{"to":{"exchange":"","routing_key":"none"}}`, 200), `{"transferred":0,"skipped":0,"unroutable":2,"refused":0,"left":0,"kept":false}`)
	equal(t, "full", a.do("POST", "/queues/%2F/q/move", `{"to":{"queue":"small"}}`, 200), `{"transferred":1,"skipped":0,"unroutable":0,"refused":1,"left":0,"kept":false}`)
	a.wantPayloads("small", "a")
	a.wantPayloads("q", "b")
	for _, body := range []string{`{}`, `{"to":{}}`, `{"to":{"queue":"q","vhost":"none"}}`} {
		a.do("POST", "/queues/%2F/q/move", body, 400)
	}
	has(t, a.do("POST", "/queues/%2F/q/move", `{"to":{"exchange":"none"}}`, 404), J{"reason": "no exchange 'none' in vhost '/'"})
	has(t, a.do("POST", "/queues/%2F/q/move", `{"to":{"queue":"none"}}`, 404), J{"reason": "no queue 'none' in vhost '/'"})
	a.wantPayloads("q", "b")
}

// What is misspelt must not move everything.
func TestTransfersWithMistakesMoveNothing(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	a.do("PUT", "/queues/%2F/r", "", 201)
	a.publish("q", "a")
	const known = "; the members are "
	for body, reason := range map[string]string{
		`{"to":{"queue":"r"},"filters":{}}`:                                       "unknown member 'filters'" + known + "to, count, rate, filter, offset, progress",
		`{"to":{"queue":"r"},"filter":{"header":{}}}`:                             "unknown member 'header'" + known + "exchange, routing_key, headers, properties, text, reason, dead_queue, min_age_ms, max_age_ms",
		`{"to":{"queue":"r","key":"x"}}`:                                          "unknown member 'key'" + known + "queue, exchange, routing_key, vhost",
		`{"to":{"exchange":"","routing_key":"` + strings.Repeat("k", 256) + `"}}`: "a routing key must not be longer than 255 bytes",
		`{"to":{"queue":"r"},"count":-1}`:                                         "count must not be negative",
		`{"to":{"queue":"r"},"rate":-5}`:                                          "rate must not be negative",
		`{"to":{"queue":"r"},"filter":{"text":["a"]}}`:                            "text must be a string",
		`{"to":{"queue":"r"},"filter":{"headers":"a"}}`:                           "headers must be an object",
	} {
		has(t, a.do("POST", "/queues/%2F/q/move", body, 400), J{"reason": reason})
	}
	has(t, a.do("POST", "/queues/%2F/q/move", `{"to":{"exchange":"amq.rabbitmq.trace"}}`, 400),
		J{"reason": "403 ACCESS_REFUSED - cannot publish to internal exchange 'amq.rabbitmq.trace' in vhost '/'"})
	has(t, a.do("POST", "/queues/%2F/q/peek", `{"offset":-1}`, 400), J{"reason": "offset must not be negative"})
	has(t, a.do("POST", "/queues/%2F/q/peek", `{"encoding":"hex"}`, 400), J{"reason": "unsupported encoding 'hex'; it is auto or base64"})
	has(t, a.do("POST", "/queues/%2F/q/peek", `{"limit":1}`, 400), J{"reason": "unknown member 'limit'" + known + "count, offset, from, filter, truncate, encoding"})
	a.wantPayloads("q", "a")
}

// What was published idempotently, or through an exchange that drops duplicates, is
// known to the broker when it is moved.
func TestTransferTakesAMessageForNoRetry(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/dead", "", 201)
	a.do("PUT", "/queues/%2F/q", `{"arguments":{"x-dead-letter-exchange":"","x-dead-letter-routing-key":"dead"}}`, 201)
	a.do("PUT", "/queues/%2F/r", "", 201)
	a.do("PUT", "/exchanges/%2F/once", `{"type":"direct","arguments":{"x-message-deduplication":true}}`, 201)
	a.do("POST", "/bindings/%2F/e/once/q/q", `{}`, 201)
	a.do("POST", "/exchanges/%2F/once/publish", `{"properties":{"headers":{"x-producer-id":"p","x-producer-sequence":1,"x-deduplication-header":"id"}},
		"routing_key":"","payload":"m","payload_encoding":"string"}`, 200)
	const moved = `{"transferred":1,"skipped":0,"unroutable":0,"refused":0,"left":0,"kept":false}`
	equal(t, "move", a.do("POST", "/queues/%2F/q/move", `{"to":{"queue":"r"}}`, 200), moved)
	a.wantPayloads("r", "m")
	equal(t, "move to the exchange", a.do("POST", "/queues/%2F/r/move", `{"to":{"exchange":"once","routing_key":""}}`, 200), moved)
	a.wantPayloads("q", "m")
	a.do("POST", "/queues/%2F/q/get", `{"count":1,"ackmode":"reject_requeue_false","encoding":"auto"}`, 200)
	equal(t, "redrive", a.do("POST", "/queues/%2F/dead/redrive", `{}`, 200), moved)
	a.wantPayloads("q", "m")
}

func TestRedriveReturnsDeadLetters(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/dead", "", 201)
	for _, q := range []string{"q1", "q2"} {
		a.do("PUT", "/queues/%2F/"+q, `{"arguments":{"x-dead-letter-exchange":"","x-dead-letter-routing-key":"dead"}}`, 201)
		a.publish(q, "of "+q)
		a.do("POST", "/queues/%2F/"+q+"/get", `{"count":1,"ackmode":"reject_requeue_false","encoding":"auto"}`, 200)
	}
	a.publish("dead", "no dead letter")
	equal(t, "redrive", a.do("POST", "/queues/%2F/dead/redrive", `{}`, 200), `{"transferred":2,"skipped":0,"unroutable":1,"refused":0,"left":0,"kept":false}`)
	a.wantPayloads("q1", "of q1")
	a.wantPayloads("q2", "of q2")
	a.wantPayloads("dead", "no dead letter")
}

// deadLetter sends a message through a queue that rejects or expires it, into dead.
func (a *api) deadLetter(queue, payload, how string) {
	a.t.Helper()
	a.publish(queue, payload)
	if how == "rejected" {
		a.do("POST", "/queues/%2F/"+queue+"/get", `{"count":1,"ackmode":"reject_requeue_false","encoding":"auto"}`, 200)
	}
}

func TestRedriveChoosesByReasonQueueAndAge(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/dead", "", 201)
	for name, more := range map[string]string{"q1": "", "q2": "", "full": `,"x-max-length":0`} {
		a.do("PUT", "/queues/%2F/"+name, `{"arguments":{"x-dead-letter-exchange":"","x-dead-letter-routing-key":"dead"`+more+`}}`, 201)
	}
	a.deadLetter("q1", "of q1", "rejected")
	a.deadLetter("q2", "of q2", "rejected")
	a.deadLetter("full", "of full", "maxlen")
	for _, tt := range []struct{ filter, want string }{
		{`{"reason":"expired"}`, `{"transferred":0,"skipped":3,"unroutable":0,"refused":0,"left":0,"kept":false}`},
		{`{"min_age_ms":3600000}`, `{"transferred":0,"skipped":3,"unroutable":0,"refused":0,"left":0,"kept":false}`},
		{`{"reason":"rejected","dead_queue":"q2","max_age_ms":3600000}`, `{"transferred":1,"skipped":2,"unroutable":0,"refused":0,"left":0,"kept":false}`},
		{`{"reason":"rejected"}`, `{"transferred":1,"skipped":1,"unroutable":0,"refused":0,"left":0,"kept":false}`},
	} {
		equal(t, tt.filter, a.do("POST", "/queues/%2F/dead/redrive", `{"filter":`+tt.filter+`}`, 200), tt.want)
	}
	a.wantPayloads("q1", "of q1")
	a.wantPayloads("q2", "of q2")
	a.wantPayloads("dead", "of full")
	a.do("POST", "/queues/%2F/dead/redrive", `{"filter":{"min_age_ms":-1}}`, 400)
	a.do("POST", "/queues/%2F/dead/redrive", `{"rate":"fast"}`, 400)
}

func TestTransferKeepsToItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, nil)
		a.do("PUT", "/queues/%2F/q", "", 201)
		a.do("PUT", "/queues/%2F/r", "", 201)
		for range 50 {
			a.publish("q", "m")
		}
		began := time.Now()
		w := a.request("POST", "/queues/%2F/q/move", `{"to":{"queue":"r"},"rate":10,"progress":true}`, nil)
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("50 messages at 10 a second took %s, want 5s", took)
		}
		lines := strings.Split(strings.TrimSpace(w.Body.String()), "\n")
		if n := len(lines); n != 6 {
			t.Errorf("%d lines of progress, want one a second and the last: %s", n, w.Body)
		}
		if want := `{"transferred":50,"skipped":0,"unroutable":0,"refused":0,"left":0,"kept":false,"done":true}`; lines[len(lines)-1] != want {
			t.Errorf("the last line is %s, want %s", lines[len(lines)-1], want)
		}
		a.s.Shutdown(t.Context())
	})
}

// A client that goes away in the middle is no defect of the broker's.
func TestTransferWithoutItsClientIsNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logged := observer.New(zap.WarnLevel)
		a := newAPI(t, func(c *Config) { c.Log = zap.New(core) })
		defer a.s.Shutdown(t.Context())
		a.do("PUT", "/queues/%2F/s", `{"durable":true,"arguments":{"x-queue-type":"stream"}}`, 201)
		a.do("PUT", "/queues/%2F/r", "", 201)
		for range 3 {
			a.publish("s", "m")
		}
		gone, leave := context.WithCancel(t.Context())
		time.AfterFunc(1500*time.Millisecond, leave)
		w := a.request("POST", "/queues/%2F/s/copy", `{"to":{"queue":"r"},"rate":1}`, func(r *http.Request) { *r = *r.WithContext(gone) })
		if w.Body.Len() > 0 || logged.Len() > 0 {
			t.Errorf("answers %q and logs %v, want neither", w.Body, logged.All())
		}
		a.wantPayloads("r", "m", "m")
	})
}

func TestCopyOutOfAStream(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/s", `{"durable":true,"arguments":{"x-queue-type":"stream"}}`, 201)
	a.do("PUT", "/queues/%2F/r", "", 201)
	for i := range 5 {
		a.publish("s", fmt.Sprint("m", i))
	}
	equal(t, "copy", a.do("POST", "/queues/%2F/s/copy", `{"to":{"queue":"r"},"offset":2}`, 200),
		`{"transferred":3,"skipped":0,"unroutable":0,"refused":0,"left":0,"kept":true,"next_offset":5}`)
	equal(t, "copy beyond the end", a.do("POST", "/queues/%2F/s/copy", `{"to":{"queue":"r"},"offset":99}`, 200),
		`{"transferred":0,"skipped":0,"unroutable":0,"refused":0,"left":0,"kept":true,"next_offset":5}`)
	a.wantPayloads("r", "m2", "m3", "m4")
	equal(t, "copy some", a.do("POST", "/queues/%2F/s/copy", `{"to":{"queue":"r"},"filter":{"text":"m0"}}`, 200),
		`{"transferred":1,"skipped":4,"unroutable":0,"refused":0,"left":0,"kept":true,"next_offset":5}`)
	equal(t, "copy one, to go on", a.do("POST", "/queues/%2F/s/copy", `{"to":{"queue":"r"},"count":1,"offset":1}`, 200),
		`{"transferred":1,"skipped":0,"unroutable":0,"refused":0,"left":3,"kept":true,"next_offset":2}`)
	has(t, a.do("POST", "/queues/%2F/r/copy", `{"to":{"queue":"r"},"offset":1}`, 400), J{"reason": "queue 'r' is no stream and has no offsets"})
	has(t, a.do("POST", "/queues/%2F/s/move", `{"to":{"queue":"r"}}`, 400), J{"reason": "messages cannot be moved out of stream 's', which keeps them; copy them"})
	has(t, a.do("GET", "/queues/%2F/s", "", 200), J{"messages": 5.0, "consumers": 0.0, "segments": 1.0, "first_offset": 0.0, "next_offset": 5.0,
		"readers": J{"rabbit@test": 0.0}, "tracked_offsets": J{}})
}

func (a *api) streamSource(name string) (s *streamSource, left int) {
	a.t.Helper()
	v, _ := a.vhosts.Get("/")
	info, err := v.QueueInfo(name)
	if err == nil {
		s, left, err = newStreamSource(info.Queue.(*stream.Queue), 0)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return s, left
}

func TestStreamIsReadAheadNoFurtherThanNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, nil)
		defer a.s.Shutdown(t.Context())
		a.do("PUT", "/queues/%2F/s", `{"durable":true,"arguments":{"x-queue-type":"stream"}}`, 201)
		a.publishAll("s", 20, make([]byte, 1<<20))
		s, left := a.streamSource("s")
		defer s.close()
		if left != 20 {
			t.Errorf("%d messages, want 20", left)
		}
		a.publish("s", "came later")
		synctest.Wait()
		if n := len(s.waiting); n != maxWaiting>>20 {
			t.Errorf("%d messages of 1 MiB wait, want %d", n, maxWaiting>>20)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for i := range 20 {
			if d, found, err := s.get(ctx); !found || err != nil || int(d.ID) != i+1 {
				t.Fatalf("message %d: id %d, found %v, error %v", i, d.ID, found, err)
			}
		}
		if _, found, err := s.get(ctx); found || err != nil {
			t.Errorf("behind the last one: found %v, error %v", found, err)
		}
	})
}

// forgettingStream is the source of a stream with ten segments, all of which but the
// last are not to stay once it is read.
func (a *api) forgettingStream() (s *streamSource, left int) {
	a.t.Helper()
	a.do("PUT", "/queues/%2F/s", `{"durable":true,"arguments":{"x-queue-type":"stream","x-stream-max-segment-size-bytes":1000000}}`, 201)
	for range 10 {
		a.publishAll("s", 1, make([]byte, 1<<20)) // a segment
	}
	s, left = a.streamSource("s")
	synctest.Wait()
	a.do("PUT", "/policies/%2F/small", `{"pattern":"","definition":{"max-length-bytes":1}}`, 201)
	return s, left
}

// What the stream forgets meanwhile does not come, and is not waited for.
func TestCopyOfWhatAStreamForgetsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, nil)
		defer a.s.Shutdown(t.Context())
		s, left := a.forgettingStream()
		defer s.close()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for n := 0; ; n++ {
			_, found, err := s.get(ctx)
			if found {
				continue
			}
			if n >= left || err != nil {
				t.Errorf("%d of %d messages, then error %v, want fewer and none", n, left, err)
			}
			return
		}
	})
}

// Who goes on from where a copy has ended misses nothing that came meanwhile.
func TestCopyOfWhatAStreamForgetsEndsAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, nil)
		defer a.s.Shutdown(t.Context())
		s, _ := a.forgettingStream()
		defer s.close()
		for range 5 {
			a.publishAll("s", 1, make([]byte, 1<<20))
		}
		synctest.Wait()
		for found := true; found; {
			var err error
			if _, found, err = s.get(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if s.last != 10 {
			t.Errorf("it has read up to %d, want 10, which was the last one", s.last)
		}
	})
}

// A queue that takes no duplicate of what it holds has the message while it is moved.
func TestUniqueMessagesAreNotMovedBack(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", `{"durable":true,"arguments":{"x-message-deduplication":true}}`, 201)
	a.do("PUT", "/exchanges/%2F/behind", `{"type":"fanout"}`, 201)
	a.do("POST", "/bindings/%2F/e/amq.fanout/e/behind", `{}`, 201)
	a.do("POST", "/bindings/%2F/e/behind/q/q", `{}`, 201)
	a.do("POST", "/exchanges/%2F/amq.default/publish", `{"properties":{"headers":{"x-deduplication-header":"id",
		"x-death":[{"queue":"q","reason":"rejected"}]}},"routing_key":"q","payload":"m","payload_encoding":"string"}`, 200)
	const reason = "queue 'q' takes no duplicate of what it holds: its messages cannot be moved where they may come back to it"
	a.do("PUT", "/exchanges/%2F/other", `{"type":"direct","arguments":{"alternate-exchange":"amq.fanout"}}`, 201)
	a.do("PUT", "/exchanges/%2F/circle", `{"type":"direct","arguments":{"alternate-exchange":"circle"}}`, 201)
	for _, to := range []string{`{"queue":"q"}`, `{"exchange":"amq.fanout"}`, `{"exchange":"other"}`} {
		has(t, a.do("POST", "/queues/%2F/q/move", `{"to":`+to+`}`, 400), J{"reason": reason})
	}
	has(t, a.do("POST", "/queues/%2F/q/move", `{"to":{"exchange":"circle"}}`, 200), J{"transferred": 0.0, "unroutable": 1.0})
	has(t, a.do("POST", "/queues/%2F/q/move", `{"to":{"exchange":""}}`, 200), J{"transferred": 0.0, "unroutable": 1.0})
	has(t, a.do("POST", "/queues/%2F/q/redrive", `{}`, 200), J{"transferred": 0.0, "unroutable": 1.0})
	a.wantPayloads("q", "m")
	a.do("PUT", "/queues/%2F/r", "", 201)
	has(t, a.do("POST", "/queues/%2F/q/move", `{"to":{"queue":"r"}}`, 200), J{"transferred": 1.0})
	a.wantPayloads("r", "m")
}
