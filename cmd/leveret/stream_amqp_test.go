package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

func TestConsumeOverAMQP(t *testing.T) {
	_, addr := startBrokerAt(t)
	uri := "amqp://guest:guest@" + addr.String() + "/"
	call(t, "", "rabbitmqadmin", "declare", "queue", "name=q")
	call(t, "", "leveret", "publish", "-k", "q", "-H", "n=1", "--property", "priority=3", "one")
	call(t, "\xff", "leveret", "publish", "-k", "q")
	if code, _, errs := call(t, "", "leveret", "publish", "-k", "q", "-c", "3", "same"); code != 0 {
		t.Fatalf("publish -c 3: exit %d, %s", code, errs)
	}
	code, out, errs := call(t, "", "leveret", "consume", "q", "--uri", uri, "-c", "2", "--json")
	if code != 0 || !strings.Contains(out, `"properties":{"delivery_mode":2,"headers":{"n":1},"priority":3}`) || !strings.Contains(out, `"payload":"/w=="`) {
		t.Errorf("exit %d, %s, prints %s", code, errs, out)
	}
	if _, out, _ := call(t, "", "leveret", "queue", "peek", "q", "--json"); strings.Contains(out, `"redelivered":true`) {
		t.Errorf("more than two messages were taken: %s", out)
	}
	if _, out, _ := call(t, "", "leveret", "consume", "q", "--uri", uri, "-c", "3"); out != "same\nsame\nsame\n" {
		t.Errorf("prints %q, want the three others", out)
	}
	if _, out, _ := call(t, "", "rabbitmqctl", "-s", "list_queues", "messages"); out != "0\n" {
		t.Errorf("%s messages are left, want none", out)
	}
	for uri, want := range map[string]int{
		uri:                      exitData, // no such queue
		"amqp://" + nobody + "/": exitUnavailable,
		"amqp://guest:wrong@" + addr.String() + "/": exitNoAccess,
		uri + "nowhere":       exitNoAccess, // no such virtual host
		"amqp://guest:secret": exitUsage,
		"q":                   exitUsage,
	} {
		if code, _, errs := call(t, "", "leveret", "consume", "nothing", "--uri", uri); code != want || strings.Contains(errs, "secret") {
			t.Errorf("%s: exit %d, want %d and no password; %s", uri, code, want, errs)
		}
	}
}

// A queue that is deleted ends consume with an error, limit or not.
func TestConsumeOfADeletedQueueEnds(t *testing.T) {
	_, addr := startBrokerAt(t)
	for _, more := range [][]string{nil, {"-c", "2"}} {
		call(t, "", "rabbitmqadmin", "declare", "queue", "name=q")
		call(t, "", "leveret", "publish", "-k", "q", "one")
		printed, out := io.Pipe()
		var errs bytes.Buffer
		code := make(chan int, 1)
		go func() {
			args := append([]string{"leveret", "consume", "q", "--uri", "amqp://guest:guest@" + addr.String() + "/"}, more...)
			code <- run(t.Context(), args, strings.NewReader(""), out, &errs)
		}()
		if _, err := io.ReadFull(printed, make([]byte, len("one\n"))); err != nil {
			t.Fatal(err)
		}
		call(t, "", "rabbitmqctl", "delete_queue", "q")
		select {
		case got := <-code:
			if got != exitSoftware || !strings.Contains(errs.String(), "cancelled") {
				t.Errorf("%q: exit %d, %q; want %d and that it was cancelled", more, got, errs.String(), exitSoftware)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%q: consume does not end", more)
		}
	}
}
