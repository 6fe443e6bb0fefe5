package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// fakeTransfers answers requests to move messages, one after the other.
func fakeTransfers(t *testing.T, answers ...transferAnswer) (asked func() []any) {
	return fakeTransfersOf(t, "classic", answers...)
}

// fakeTransfersOf is fakeTransfers for a type of queue. A negative Left is an answer
// that does not come.
func fakeTransfersOf(t *testing.T, kind string, answers ...transferAnswer) (asked func() []any) {
	var list []any
	requests := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprintf(w, `{"name":"q","type":%q}`, kind)
			return
		}
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		list = append(list, body["count"])
		if body["offset"] != nil {
			list = append(list, body["offset"])
		}
		requests++
		if requests > len(answers) {
			http.Error(w, "one request too many", http.StatusInternalServerError)
			return
		}
		if answers[requests-1].Left < 0 {
			panic(http.ErrAbortHandler)
		}
		json.NewEncoder(w).Encode(answers[requests-1])
	}))
	t.Cleanup(s.Close)
	ask(t, s.URL)
	return func() []any {
		s.Close() // waits for what is being answered
		return list
	}
}

func TestMoveOfALongQueue(t *testing.T) {
	asked := fakeTransfers(t, transferAnswer{Transferred: 10000, Left: 15000}, transferAnswer{Transferred: 10000, Left: 5000}, transferAnswer{Transferred: 5000})
	code, out, errs := call(t, "", "leveret", "queue", "move", "q", "--to-queue", "other")
	if want := "Moved 25000 messages of queue 'q'\n"; code != 0 || out != want {
		t.Errorf("exit %d, %q, %q; want %q", code, out, errs, want)
	}
	if want := []any{nil, 15000.0, 5000.0}; !slices.Equal(asked(), want) {
		t.Errorf("asked for %v messages, want %v", asked(), want)
	}
}

// Messages that are moved to the queue they come from are moved once.
func TestMoveInACircleEnds(t *testing.T) {
	fakeTransfers(t, transferAnswer{Transferred: 10000, Left: 5000}, transferAnswer{Transferred: 5000, Left: 10000})
	code, out, errs := call(t, "", "leveret", "queue", "move", "q", "--to-exchange", "x", "--json")
	if code != 0 {
		t.Errorf("exit %d, %s, %s", code, out, errs)
	}
}

func TestTransferEndsWhenNothingMoves(t *testing.T) {
	for _, args := range [][]string{{"redrive", "q"}, {"copy", "q", "--to-queue", "o"}, {"move", "q", "--to-queue", "o", "-c", "5"}} {
		t.Run(fmt.Sprint(args), func(t *testing.T) {
			asked := fakeTransfers(t, transferAnswer{Unroutable: 3, Left: 90})
			if code, _, errs := call(t, "", append([]string{"leveret", "queue"}, args...)...); code != exitData || len(asked()) != 1 {
				t.Errorf("exit %d after %d requests, %s; want %d after 1", code, len(asked()), errs, exitData)
			}
		})
	}
}

func TestMoveOfManyMessages(t *testing.T) {
	asked := fakeTransfers(t, transferAnswer{Transferred: 10000, Left: 40000}, transferAnswer{Transferred: 2000, Left: 38000})
	code, out, errs := call(t, "", "leveret", "queue", "move", "q", "--to-queue", "other", "-c", "12000")
	if want := "Moved 12000 messages of queue 'q'\n"; code != 0 || out != want {
		t.Errorf("exit %d, %q, %q; want %q", code, out, errs, want)
	}
	if want := []any{12000.0, 2000.0}; !slices.Equal(asked(), want) {
		t.Errorf("asked for %v messages, want %v", asked(), want)
	}
}

// One request copies a part of a long queue; that there is more is said.
func TestCopyOfManyMessages(t *testing.T) {
	fakeTransfers(t, transferAnswer{Transferred: 10000, Left: 40000, Kept: true})
	code, out, errs := call(t, "", "leveret", "queue", "copy", "q", "--to-queue", "other", "-c", "12000")
	if code != 0 || !strings.Contains(out, "40000 messages behind them were not looked at") {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	fakeTransfers(t, transferAnswer{Transferred: 5, Left: 40000, Kept: true})
	if _, out, _ := call(t, "", "leveret", "queue", "copy", "q", "--to-queue", "other", "-c", "5"); out != "Copied 5 messages of queue 'q'\n" {
		t.Errorf("prints %q", out)
	}
}

func TestTransferOfAStreamGoesOn(t *testing.T) {
	at := func(n int) *int { return &n }
	for _, tt := range []struct {
		args    string
		answers []transferAnswer
		asked   []any // counts and offsets
		code    int
		out     string
	}{
		{"dlq redrive q", []transferAnswer{{Transferred: 1000, Left: 1500, Next: at(1000)}, {Transferred: 900, Skipped: 100, Left: 700, Next: at(2000)}, {Transferred: 500, Left: 250, Next: at(2500)}},
			[]any{1000.0, 0.0, 1000.0, 1000.0, 500.0, 2000.0}, 0, "Sent back 2400 messages of queue 'q'\n250 messages behind them were not looked at: to go on give --offset 2500\n"},
		{"queue copy q --to-queue r -c 5 --offset 7", []transferAnswer{{Transferred: 3, Skipped: 9, Left: 4, Next: at(19)}, {Transferred: 2, Left: 2, Next: at(21)}},
			[]any{5.0, 7.0, 2.0, 19.0}, 0, "Copied 5 messages of queue 'q'\n2 messages behind them were not looked at: to go on give --offset 21\n"},
		{"queue redrive q", []transferAnswer{{Transferred: 2, Unroutable: 1, Next: at(3)}},
			[]any{1000.0, 0.0}, exitData, "Sent back 2 messages of queue 'q'\n"},
		{"queue redrive q", []transferAnswer{{Transferred: 1000, Left: 1500, Next: at(1000)}, {Left: -1}},
			[]any{1000.0, 0.0, 1000.0, 1000.0}, exitUnavailable, ""},
	} {
		asked := fakeTransfersOf(t, "stream", tt.answers...)
		code, out, errs := call(t, "", append([]string{"leveret"}, words(tt.args)...)...)
		if code != tt.code || out != tt.out || !slices.Equal(asked(), tt.asked) {
			t.Errorf("%s: exit %d, %q, %q, asked for %v; want %d, %q, %v", tt.args, code, out, errs, asked(), tt.code, tt.out, tt.asked)
		}
		if tt.out == "" && !strings.Contains(errs, "; 1000 messages were transferred before, to go on give --offset 1000: up to 1000 of those behind it may be transferred twice") {
			t.Errorf("%s: %q, want where to go on", tt.args, errs)
		}
	}
}

// A stream keeps what is sent back: of a broker that does not say where it has ended
// a second request would send it again.
func TestRedriveOfAStreamAsksOnce(t *testing.T) {
	for _, args := range [][]string{{"queue", "redrive", "q"}, {"queue", "redrive", "q", "-c", "500"}, {"dlq", "redrive", "q", "-c", "500"}} {
		asked := fakeTransfers(t, transferAnswer{Transferred: 64, Left: 436, Kept: true})
		code, out, errs := call(t, "", append([]string{"leveret"}, args...)...)
		if code != 0 || len(asked()) != 1 || !strings.HasPrefix(out, "Sent back 64 messages of queue 'q'\n436 messages behind them were not looked at") {
			t.Errorf("%v: exit %d after %d requests, %q, %q; want one request, and that it has left 436 messages", args, code, len(asked()), out, errs)
		}
	}
}

func TestTransferToNowhere(t *testing.T) {
	startBroker(t)
	for _, line := range []string{`declare queue name=q`, `declare queue name=s durable=true arguments={"x-queue-type":"stream"}`} {
		if code, _, errs := call(t, "", append([]string{"leveret", "admin"}, strings.Split(line, " ")...)...); code != 0 {
			t.Fatal(errs)
		}
	}
	for line, want := range map[string]string{
		"queue copy s --to-queue nosuch":       "no queue 'nosuch' in vhost '/'",
		"queue copy q --to-queue nosuch":       "no queue 'nosuch' in vhost '/'",
		"queue move q --to-queue nosuch":       "no queue 'nosuch' in vhost '/'",
		"queue copy s --to-exchange nosuch":    "no exchange 'nosuch' in vhost '/'",
		"queue move nosuch --to-queue q":       "no queue 'nosuch' in vhost '/'",
		"queue copy nosuch --to-queue q":       "no queue 'nosuch' in vhost '/'",
		"queue move q --to-queue q -p nowhere": "no queue 'q' in vhost 'nowhere'",
	} {
		code, _, errs := call(t, "", append([]string{"leveret"}, words(line)...)...)
		if code != exitData || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %q, want %d, %s", line, code, errs, exitData, want)
		}
	}
}

func TestNegativeNumbersOfMessages(t *testing.T) {
	for _, line := range []string{"queue copy s --to-queue q --offset -3", "queue redrive s --offset -1", "dlq redrive s --offset -1",
		"queue move q --to-queue r -c -5", "queue peek q -c -1", "queue grep q a -c -1",
		"queue tail q --last -1", "queue unacked q -c -1", "get q -c -1", "consume q -c -1", "publish -k q m -c -1"} {
		asked := fakeTransfers(t)
		code, _, errs := call(t, "", append([]string{"leveret"}, words(line)...)...)
		if code != exitUsage || !strings.Contains(errs, "must not be negative") || len(asked()) > 0 {
			t.Errorf("%s: exit %d, %q, asked for %v; want %d and nothing", line, code, errs, asked(), exitUsage)
		}
	}
}

func TestTransferAsJSONFails(t *testing.T) {
	fakeTransfers(t, transferAnswer{Transferred: 1, Unroutable: 3})
	code, out, errs := call(t, "", "leveret", "queue", "move", "q", "--to-queue", "other", "--json")
	if code != exitData || !strings.Contains(out, `"unroutable":3`) || !strings.Contains(errs, "3 messages stay") {
		t.Errorf("exit %d, %s, %s; want %d and both the document and the error", code, out, errs, exitData)
	}
}

func TestInterruptedTransferOfAStream(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var requests atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprint(w, `{"name":"q","type":"stream"}`)
			return
		}
		if requests.Add(1) == 1 {
			fmt.Fprint(w, `{"transferred":1000,"left":5000,"kept":true,"next_offset":1234}`)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that the client goes
		cancel()
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	ask(t, s.URL)
	var errs bytes.Buffer
	code := run(ctx, words("leveret queue redrive q"), strings.NewReader(""), io.Discard, &errs)
	if code != exitInterrupted || !strings.Contains(errs.String(), "interrupted; 1000 messages were transferred before, to go on give --offset 1234") {
		t.Errorf("exit %d, %q", code, errs.String())
	}
}
