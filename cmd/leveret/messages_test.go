package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fakeGets answers requests for messages with so many each, as long as the queue has
// some.
func fakeGets(t *testing.T, inQueue, most int) (asked *[]int) {
	asked = new([]int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Count json.Number // rabbitmqadmin sends a text
			Mode  string      `json:"ackmode"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		count, _ := strconv.Atoi(body.Count.String())
		*asked = append(*asked, count)
		list, left := []map[string]any{}, inQueue
		for range min(count, most, inQueue) {
			left--
			list = append(list, map[string]any{"payload": "m", "payload_encoding": "string", "message_count": left})
		}
		if body.Mode != "ack_requeue_true" {
			inQueue = left
		}
		json.NewEncoder(w).Encode(list)
	}))
	t.Cleanup(s.Close)
	ask(t, s.URL)
	return asked
}

// A request gives a part of a long queue; what get takes out it takes out whole.
func TestGetOfALongQueue(t *testing.T) {
	for _, tt := range []struct {
		args    string
		inQueue int
		asked   []int
		lines   int
		remark  string // on standard error
	}{
		{"-c 100 --ack", 1000, []int{100, 36}, 100, ""},
		{"-c 100 --ack --json", 1000, []int{100, 36}, 100, ""},
		{"-c 100 --ack --formatter csv", 1000, []int{100, 36}, 101, ""}, // one line of names
		{"-c 1000 --reject", 70, []int{1000, 936}, 70, ""},
		{"-c 100 --ack", 10, []int{100}, 10, ""},
		{"-c 100 --ack", 0, []int{100}, 0, ""},
		{"-c 100", 1000, []int{100}, 64, "these are 64 of 100 messages"},
		{"-c 1000", 70, []int{1000}, 64, "these are 64 of 70 messages"},
		{"-c 64", 1000, []int{64}, 64, ""},
	} {
		asked := fakeGets(t, tt.inQueue, 64)
		code, out, errs := call(t, "", append([]string{"leveret", "get", "q"}, words(tt.args)...)...)
		if code != 0 || !slices.Equal(*asked, tt.asked) || strings.Count(out, "\n") != tt.lines || !strings.HasPrefix(errs, tt.remark) || tt.remark == "" && errs != "" {
			t.Errorf("get %s of %d: exit %d, asks for %v, %d lines, %q; want %v, %d lines, %q",
				tt.args, tt.inQueue, code, *asked, strings.Count(out, "\n"), errs, tt.asked, tt.lines, tt.remark)
		}
	}
}

func TestGetOfALongQueueByRabbitmqadmin(t *testing.T) {
	for _, tt := range []struct {
		args    string
		inQueue int
		asked   []int
		got     int
	}{
		{"count=100 ackmode=ack_requeue_false", 1000, []int{100, 36}, 100},
		{"count=100 ackmode=reject_requeue_false", 70, []int{100, 36, 30}, 70},
		{"count=100 ackmode=ack_requeue_false", 0, []int{100}, 0},
		{"ackmode=ack_requeue_false", 1000, []int{1}, 1},
		{"count=100", 1000, []int{100}, 64},
	} {
		asked := fakeGets(t, tt.inQueue, 64)
		code, out, errs := call(t, "", append([]string{"rabbitmqadmin", "-f", "raw_json", "get", "queue=q"}, words(tt.args)...)...)
		var list []map[string]any
		if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 || errs != "" || !slices.Equal(*asked, tt.asked) || len(list) != tt.got {
			t.Errorf("get %s of %d: exit %d, asks for %v, %d messages, %q, %v; want %v, %d messages",
				tt.args, tt.inQueue, code, *asked, len(list), errs, err, tt.asked, tt.got)
		}
	}
}

// A misspelt property would be left out of the message, and nobody told.
func TestPublishRefusesUnknownProperties(t *testing.T) {
	startBroker(t)
	call(t, "", "rabbitmqadmin", "declare", "queue", "name=q")
	for _, property := range []string{"content-type=text/plain", "prio=5", "headers={}"} {
		name, _, _ := strings.Cut(property, "=")
		code, _, errs := call(t, "", "leveret", "publish", "-k", "q", "--property", property, "m")
		if want := fmt.Sprintf("there is no property %q; there are content_type, ", name); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("--property %s: exit %d, %q; want %d and %s", property, code, errs, exitUsage, want)
		}
	}
	for _, name := range messageProperties {
		if code, _, errs := call(t, "", "leveret", "publish", "-k", "q", "--property", name+"=1", "m"); name != "user_id" && code != 0 {
			t.Errorf("--property %s: exit %d, %s", name, code, errs)
		}
	}
	if _, out, _ := call(t, "", "rabbitmqctl", "-s", "list_queues", "messages"); out != "12\n" {
		t.Errorf("%q messages are there, want those with a known property", out)
	}
}
