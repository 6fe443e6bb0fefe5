package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// manyQueues is a snapshot with so many queues and connections.
func manyQueues(t *testing.T, queues, connections int) *snapshot {
	t.Helper()
	snap := &snapshot{QueueCount: queues}
	raw := `{"node":{"name":"leveret@host","uptime":61000,"mem_used":20000000,"mem_limit":100000000,"disk_free":5000000000,"disk_free_limit":1000000000,"mem_alarm":true},
		"overview":{"product_name":"Leveret","product_version":"1.0","queue_totals":{"messages":3,"messages_ready":2,"messages_unacknowledged":1},
		"object_totals":{"connections":1,"channels":2,"consumers":3,"exchanges":9,"queues":4},"message_stats":{"publish_details":{"rate":12345.6},"ack_details":{"rate":0.2}}}}`
	if err := json.Unmarshal([]byte(raw), snap); err != nil {
		t.Fatal(err)
	}
	for range queues {
		snap.Queues = append(snap.Queues, object{"name": quoted("q\x1b"), "vhost": quoted("v"), "messages_ready": json.RawMessage("7"), "state": quoted("running"), "consumers": json.RawMessage("1")})
	}
	for range connections {
		snap.Connections = append(snap.Connections, object{"name": quoted("127.0.0.1:1 -> 127.0.0.1:2"), "user": quoted("guest"), "state": quoted("running"), "channels": json.RawMessage("1"),
			"recv_oct_details": json.RawMessage(`{"rate":2500.0}`)})
	}
	return snap
}

func texts(lines []topLine) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(l.text, " ") + "\n")
	}
	return b.String()
}

func TestTopLines(t *testing.T) {
	v := &topView{order: "messages", snap: manyQueues(t, 1, 1)}
	want := `leveret@host  Leveret 1.0  up 1m1s
messages  ready 2  unacked 1  total 3
rates/s   publish 12346  confirm 0.0  deliver 0.0  ack 0.2  redeliver 0.0
objects   connections 1  channels 2  consumers 3  exchanges 9  queues 4
memory    20 MB of 100 MB   disk free 5000 MB, stops below 1000 MB
ALARM     memory: publishers are blocked

QUEUE (1, by me     READY   UNACKED     PUB/S   DELIV/S     ACK/S  CONS STATE
v q\x1b                 7                 0.0       0.0       0.0     1 running

CONNECTION             USER           STATE     CHANS   RECEIVED/S       SENT/S
127.0.0.1:1 -> 127.0.0 guest          running       1       2.5 kB        0.0 B
`
	if got := texts(v.lines(80, 0)); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestTopFitsItsTerminal(t *testing.T) {
	for _, queues := range []int{0, 1, 100} {
		for height := 1; height < 60; height++ {
			v := &topView{order: "messages", snap: manyQueues(t, queues, 50), size: func() (int, int) { return 40, height }}
			var b strings.Builder
			v.out = &b
			if err := v.draw(); err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(b.String(), "\n") + 1; got > height {
				t.Fatalf("%d queues: %d lines on a terminal of %d", queues, got, height)
			}
			if full := height > 20 && queues+50 > height; full && strings.Count(b.String(), "\n")+1 < height {
				t.Errorf("%d queues: %d lines on a terminal of %d, want all used", queues, strings.Count(b.String(), "\n")+1, height)
			}
		}
	}
}

// The keys: s sorts, a space stops the picture, q ends.
func TestTopRuns(t *testing.T) {
	v := &topView{order: "messages", size: func() (int, int) { return 100, 24 }}
	var screen strings.Builder
	v.out = &screen
	keys, resized, tick := make(chan byte), make(chan os.Signal), make(chan time.Time)
	var asked []string
	done := make(chan error, 1)
	go func() {
		done <- v.run(context.Background(), func(order string) (*snapshot, error) {
			asked = append(asked, order)
			if len(asked) == 3 {
				return nil, errors.New("gone away")
			}
			return manyQueues(t, 1, 0), nil
		}, keys, resized, tick)
	}()
	keys <- 's'
	tick <- time.Time{} // this time there is no answer
	resized <- os.Interrupt
	keys <- ' '
	tick <- time.Time{}
	keys <- 'q'
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(asked, " "), "messages publish publish"; got != want {
		t.Errorf("asks for %s, want %s", got, want)
	}
	for _, want := range []string{"by messages", "by publish", "no answer: gone away", "paused"} {
		if !strings.Contains(screen.String(), want) {
			t.Errorf("never shows %q", want)
		}
	}
}

func TestTopWithoutATerminal(t *testing.T) {
	_, address := startBrokerAt(t)
	connect(t, address.String()) // declares q
	for _, order := range topOrders() {
		code, out, errs := call(t, "", "leveret", "top", "--sort", order)
		if code != 0 || !strings.Contains(out, "QUEUE (1, by "+order+")") || strings.Contains(out, "\x1b") {
			t.Errorf("by %s: exit %d, %s, %q", order, code, errs, out)
		}
	}
	_, out, _ := call(t, "", "leveret", "top", "--json")
	var snap snapshot
	if err := json.Unmarshal([]byte(out), &snap); err != nil || len(snap.Queues) != 1 || len(snap.Connections) != 1 {
		t.Fatalf("--json: %v, %s", err, out)
	}
	if q, c := snap.Queues[0], snap.Connections[0]; q.text("name") != "q" || q["user"] != nil || c["messages_ready"] != nil || !strings.Contains(c.text("name"), " -> ") {
		t.Errorf("--json: the queue is %s and the connection %s; want nothing of one in the other", jsonOf(q), jsonOf(c))
	}
	if code, _, _ := call(t, "", "leveret", "top", "--sort", "size"); code != exitUsage {
		t.Errorf("--sort size: exit %d, want %d", code, exitUsage)
	}
}
