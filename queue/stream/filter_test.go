package stream

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

// valued is a message with a filter value of any type.
func valued(body string, v any) *message.Message {
	return queuetest.With(body, func(p *frames.Properties) { p.SetTable(frames.Table{{Name: valueName, Value: v}}) })
}

func TestFilter(t *testing.T) {
	h := newStream(t)
	h.Send(valued("x1", "x"), valued("x2", "x"))
	h.Send(valued("y", "y"))
	h.Send(queuetest.Message("none"))
	h.Send(valued("number", int32(5)))
	h.Send(valued("x3", "x"), queuetest.Message("with it"), valued("y2", "y"))
	all := []string{"x1", "x2", "y", "none", "number", "x3", "with it", "y2"}
	for name, tt := range map[string]struct {
		filter any
		more   bool
		want   []string
	}{
		"x":                       {"x", false, []string{"x1", "x2", "x3", "with it", "y2"}},
		"y":                       {"y", false, []string{"y", "x3", "with it", "y2"}},
		"x or y":                  {[]any{"x", "y"}, false, []string{"x1", "x2", "y", "x3", "with it", "y2"}},
		"an unknown one":          {"z", false, nil},
		"y, unfiltered":           {"y", true, []string{"y", "none", "number", "x3", "with it", "y2"}},
		"unfiltered by itself":    {nil, true, all},
		"not a string":            {int32(5), false, all},
		"an array without any":    {[]any{int32(5)}, true, all},
		"an array with one among": {[]any{int32(5), "z"}, false, nil},
	} {
		c := from(h, "first", frames.Field{Name: "x-stream-filter", Value: tt.filter},
			frames.Field{Name: "x-stream-match-unfiltered", Value: tt.more})
		queuetest.Equal(t, name, c.Bodies(), tt.want)
		h.Queue.Cancel(c.Sub)
	}
	live := from(h, nil, frames.Field{Name: "x-stream-filter", Value: "x"})
	h.Send(valued("y3", "y"))
	h.Send(valued("x4", "x"))
	queuetest.Equal(t, "published afterwards", live.Bodies(), []string{"x4"})
	c := chunksOf(t, h)[0]
	if len(c.bloom) != defaultFilterSize {
		t.Errorf("a filter of %d bytes, want %d", len(c.bloom), defaultFilterSize)
	}
}

// An empty filter value is none, for publishers and for consumers.
func TestEmptyFilterValue(t *testing.T) {
	h := newStream(t)
	h.Send(valued("empty", ""))
	h.Send(queuetest.Message("none"))
	h.Send(valued("x", "x"))
	for name, tt := range map[string]struct {
		filter any
		more   bool
		want   []string
	}{
		"x":                       {"x", false, []string{"x"}},
		"x, unfiltered":           {"x", true, []string{"empty", "none", "x"}},
		"empty":                   {"", false, []string{"empty", "none"}},
		"an array of empty ones":  {[]any{"", ""}, false, []string{"empty", "none"}},
		"x or empty":              {[]any{"", "x"}, false, []string{"x"}},
		"x or empty, unfiltered":  {[]any{"", "x"}, true, []string{"empty", "none", "x"}},
		"an array without values": {[]any{}, false, []string{"empty", "none", "x"}},
	} {
		c := from(h, "first", frames.Field{Name: "x-stream-filter", Value: tt.filter},
			frames.Field{Name: "x-stream-match-unfiltered", Value: tt.more})
		queuetest.Equal(t, name, c.Bodies(), tt.want)
		h.Queue.Cancel(c.Sub)
	}
}

// A reader that has to skip more than its caller can wait for gets its message
// from a goroutine.
func TestFilterSkipsALot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newStream(t)
		for range 2000 {
			batch := make([]*message.Message, 100)
			for i := range batch {
				batch[i] = valued("a body of some length, so that there is a lot to be skipped", "much")
			}
			h.Send(batch...)
		}
		h.Send(valued("found", "rare"))
		c := from(h, "first", frames.Field{Name: "x-stream-filter", Value: "rare"})
		synctest.Wait()
		queuetest.Equal(t, "what was found", c.Bodies(), []string{"found"})
		h.Send(valued("again", "rare"))
		queuetest.Equal(t, "published afterwards", c.Bodies(), []string{"again"})
		from(h, "first", frames.Field{Name: "x-stream-filter", Value: "none of them"})
		if _, err := h.Queue.Delete(queue.Condition{}); err != nil {
			t.Error(err)
		}
	})
}

func TestFilterSize(t *testing.T) {
	h := newStream(t, frames.Field{Name: "x-stream-filter-size-bytes", Value: int32(200)})
	h.Send(valued("x", "x"))
	if c := chunksOf(t, h)[0]; len(c.bloom) != 200 {
		t.Errorf("a filter of %d bytes, want 200", len(c.bloom))
	}
}

func TestBloomHasWhatWasAdded(t *testing.T) {
	for _, size := range []int{16, 100, 255} {
		bloom := make([]byte, size)
		for i := range size {
			bloomAdd(bloom, hash(fmt.Sprint("in", i)))
		}
		wrong := 0
		for i := range size {
			if !bloomHas(bloom, hash(fmt.Sprint("in", i))) {
				t.Fatalf("value %d is missing", i)
			}
			if bloomHas(bloom, hash(fmt.Sprint("out", i))) {
				wrong++
			}
		}
		if wrong > size/10 { // 3 % are expected
			t.Errorf("%d of %d others seem to be there", wrong, size)
		}
	}
}

// The hash is on disk: it must stay what it is.
func TestHash(t *testing.T) {
	if got := hash("invoices"); got != 0xd39436e4cbe2a706 || got != hash([]byte("invoices")) {
		t.Errorf("hash %#x", got)
	}
}
