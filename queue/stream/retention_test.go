package stream

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

func policy(def queue.Definition) queue.Policy {
	return queue.Merge(&queue.NamedDefinition{Name: "p", Definition: def}, nil)
}

// wantFigures checks where the stream begins and ends and its segments.
func wantFigures(h *queuetest.Harness, first, next uint64, segments int) {
	h.T.Helper()
	f := h.Queue.(*Queue).Figures()
	if f.First != first || f.Next != next || f.Segments != segments {
		h.T.Errorf("from %d to %d in %d segments, want from %d to %d in %d", f.First, f.Next, f.Segments, first, next, segments)
	}
	if n := h.Queue.Status().Ready; n != int(next-first) {
		h.T.Errorf("%d ready, want %d", n, next-first)
	}
	recs := h.Store.Log(h.Queue.(*Queue).LogID()).Records(lane)
	if len(recs) > 0 && recs[0].ID <= first {
		h.T.Errorf("the log still has record %d", recs[0].ID)
	}
}

// kilo publishes n messages of 1000 bytes, each in a batch of its own.
func kilo(h *queuetest.Harness, n int) {
	for range n {
		h.Send(queuetest.Message(strings.Repeat("k", 1000)))
	}
}

// segments of about three kilos.
var segmentsOf3 = frames.Field{Name: "x-stream-max-segment-size-bytes", Value: int32(3000)}

func TestMaxLengthBytes(t *testing.T) {
	h := newStream(t, segmentsOf3, frames.Field{Name: "x-max-length-bytes", Value: int32(7500)})
	kilo(h, 3)
	wantFigures(h, 0, 3, 1)
	kilo(h, 3)
	wantFigures(h, 0, 6, 2)
	kilo(h, 1) // closes the second; 7 k and what is around them are allowed
	wantFigures(h, 0, 7, 3)
	kilo(h, 2)
	wantFigures(h, 0, 9, 3) // too large, but nothing was closed
	kilo(h, 1)
	wantFigures(h, 3, 10, 3)
	c := from(h, "first")
	if got := len(c.Bodies()); got != 7 {
		t.Errorf("%d messages from the first, want 7", got)
	}
	low := from(h, int32(0))
	if got := offsetOf(t, low.Held()[0].Msg); got != 3 {
		t.Errorf("offset 0 is forgotten: begins at %d, want 3", got)
	}
}

// What an append closes is forgotten afterwards: that may have to be read.
func TestEnqueueOnlyLeavesRetention(t *testing.T) {
	h := newStream(t, segmentsOf3, frames.Field{Name: "x-max-length-bytes", Value: int32(6000)})
	kilo(h, 6)
	wantFigures(h, 0, 6, 2)
	loads := h.Store.Loads()
	writes, then := h.Queue.(*Queue).EnqueueOnly([]queue.Entry{{Msg: queuetest.Message("k")}})
	if n := h.Store.Loads() - loads; n > 0 || writes != queue.ToStore || then == nil {
		t.Fatalf("EnqueueOnly has read %d times, gives %b to write, and leaves nothing: %t", n, writes, then == nil)
	}
	wantFigures(h, 0, 7, 3)
	then()
	wantFigures(h, 3, 7, 2)
	if _, then = h.Queue.(*Queue).EnqueueOnly([]queue.Entry{{Msg: queuetest.Message("k")}}); then != nil {
		t.Error("a batch that closes no segment leaves something to do")
	}
}

func TestTheActiveSegmentStays(t *testing.T) {
	h := newStream(t, frames.Field{Name: "x-max-length-bytes", Value: int32(10)}, frames.Field{Name: "x-max-age", Value: "1s"})
	kilo(h, 20)
	wantFigures(h, 0, 20, 1)
}

func TestMaxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newStream(t, segmentsOf3, frames.Field{Name: "x-max-age", Value: "1h"})
		kilo(h, 7)
		wantFigures(h, 0, 7, 3)
		time.Sleep(time.Hour + time.Minute)
		kilo(h, 2)
		wantFigures(h, 0, 9, 3) // looked at when a segment is closed
		kilo(h, 1)
		wantFigures(h, 6, 10, 2) // the last one of the third is young
		if got, want := h.Queue.Status().HeadTime, time.Now().Add(-time.Hour-time.Minute).UnixMilli(); got != want {
			t.Errorf("head time %d, want %d", got, want)
		}
	})
}

func TestPolicyLimits(t *testing.T) {
	h := newStream(t, segmentsOf3, frames.Field{Name: "x-max-length-bytes", Value: int32(1)})
	h.Queue.SetPolicy(policy(queue.Definition{"max-length-bytes": 1e6}))
	kilo(h, 10)
	wantFigures(h, 0, 10, 4) // the policy's wins
	h.Queue.SetPolicy(policy(queue.Definition{"max-length-bytes": json.Number("5000")}))
	wantFigures(h, 6, 10, 2)
	h.Queue.SetPolicy(policy(queue.Definition{"max-age": "1D", "stream-max-segment-size-bytes": 1e9, "max-length-bytes": 1e9}))
	kilo(h, 5)
	wantFigures(h, 6, 15, 2)
	if p := h.Queue.Status().Policy; p.Name != "p" {
		t.Errorf("policy %q", p.Name)
	}
}

func TestSettings(t *testing.T) {
	args := frames.Table{{Name: "x-max-age", Value: "2D"}, {Name: "x-max-length-bytes", Value: int64(5)},
		{Name: "x-stream-max-segment-size-bytes", Value: int64(7)}, {Name: "x-stream-filter-size-bytes", Value: int32(32)}}
	for name, tt := range map[string]struct {
		args   frames.Table
		policy queue.Definition
		want   settings
	}{
		"nothing":   {nil, nil, settings{none, none, defaultSegmentSize, 16}},
		"arguments": {args, nil, settings{5, 2 * 24 * 3600e3, 7, 32}},
		"policy": {args, queue.Definition{"max-age": "3s", "max-length-bytes": 50, "stream-max-segment-size-bytes": 70.0, "stream-filter-size-bytes": int64(255)},
			settings{50, 3000, 70, 255}},
		"both":         {args, queue.Definition{"max-age": "1Y"}, settings{5, 365 * 24 * 3600e3, 7, 32}},
		"segment of 0": {frames.Table{{Name: "x-stream-max-segment-size-bytes", Value: int32(0)}}, nil, settings{none, none, defaultSegmentSize, 16}},
	} {
		if got := effective(queue.Arguments{Table: tt.args}, policy(tt.policy)); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestParseAge(t *testing.T) {
	for s, want := range map[string]int64{
		"1s": 1000, "5m": 300e3, "1h": 3600e3, "2D": 2 * 24 * 3600e3, "1M": 30 * 24 * 3600e3, "1Y": 365 * 24 * 3600e3,
		"": 0, "s": 0, "0s": 0, "-1s": 0, "1": 0, "1x": 0, "1 s": 0, "1.5h": 0, "h1": 0,
	} {
		if got, ok := parseAge(s); got != want || ok != (want > 0) {
			t.Errorf("parseAge(%q) = %d, %t, want %d", s, got, ok, want)
		}
	}
}

// After a restart the segments are found again in the chunks.
func TestRetentionAfterRestart(t *testing.T) {
	h := newStream(t, segmentsOf3)
	kilo(h, 14)
	wantFigures(h, 0, 14, 5)
	h.Reopen()
	wantFigures(h, 0, 14, 5)
	limit := policy(queue.Definition{"max-length-bytes": 9000})
	h.Queue.SetPolicy(limit)
	wantFigures(h, 0, 14, 5) // nothing is forgotten because of a restart
	kilo(h, 1)
	wantFigures(h, 0, 15, 5)
	kilo(h, 1)
	wantFigures(h, 9, 16, 3)
	h.Reopen()
	wantFigures(h, 9, 16, 3)
	h.Queue.SetPolicy(queue.Merge(nil, nil))
	h.Queue.SetPolicy(policy(queue.Definition{"max-length-bytes": 1}))
	wantFigures(h, 15, 16, 1)
}

// After a crash the store may have some of what was forgotten again.
func TestWhatWasForgottenStaysSo(t *testing.T) {
	for name, back := range map[string][]int{"the first": {0}, "with gaps": {1, 3}, "up to the rest": {2, 4, 5}} {
		t.Run(name, func(t *testing.T) {
			h := newStream(t, segmentsOf3, frames.Field{Name: "x-max-length-bytes", Value: int32(6000)})
			kilo(h, 6)
			log := h.Store.Log(h.Queue.(*Queue).LogID())
			recs := slices.Clone(log.Records(lane))
			kilo(h, 4)
			wantFigures(h, 6, 10, 2)
			for _, i := range back {
				log.Return(lane, recs[i])
			}
			h.Reopen()
			wantFigures(h, 6, 10, 2)
			if got := len(log.Records(lane)); got != 4 {
				t.Errorf("the log has %d records, want 4", got)
			}
			c := from(h, "first")
			if got := offsetOf(t, c.Held()[0].Msg); len(c.Bodies()) != 4 || got != 6 {
				t.Errorf("%d messages from offset %d, want 4 from 6", len(c.Bodies()), got)
			}
			wantPlaces(h, map[string]uint64{})
		})
	}
}

// Messages that are not on disk are not forgotten: those before them might come back.
func TestRetentionWaitsForTheDisk(t *testing.T) {
	h := newStream(t, segmentsOf3, frames.Field{Name: "x-max-length-bytes", Value: int32(3000)})
	h.Store.Hold()
	kilo(h, 7)
	wantFigures(h, 0, 7, 3)
	h.Store.Commit()
	kilo(h, 3)
	wantFigures(h, 6, 10, 2)
}

func TestAReaderInWhatIsForgotten(t *testing.T) {
	h := newStream(t, segmentsOf3)
	kilo(h, 9)
	c := h.Consume(func(s *queue.Subscription) {
		s.Prefetch = 1
		s.Arguments = frames.Table{{Name: "x-stream-offset", Value: "first"}}
	})
	h.Queue.SetPolicy(policy(queue.Definition{"max-length-bytes": 1}))
	wantFigures(h, 6, 9, 1)
	c.Bodies()
	h.Queue.Settle(c.Sub, c.Held(), queue.Accepted)
	if d := c.Held(); len(d) != 1 || offsetOf(t, d[0].Msg) != 6 {
		t.Errorf("%d deliveries after the one that was forgotten, want offset 6", len(d))
	}
}

func TestTimestamps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newStream(t)
		begin := time.Now()
		for _, b := range numbers(0, 20) {
			publish(h, b)
			time.Sleep(10 * time.Second)
		}
		for _, tt := range []struct {
			at   any
			want []string
		}{
			{frames.Timestamp(begin.Unix() - 1), numbers(0, 20)},
			{frames.Timestamp(begin.Unix()), numbers(0, 20)},
			{frames.Timestamp(begin.Unix() + 1), numbers(1, 20)},
			{frames.Timestamp(begin.Unix() + 10), numbers(1, 20)},
			{frames.Timestamp(begin.Unix() + 95), numbers(10, 20)},
			{frames.Timestamp(begin.Unix() + 190), numbers(19, 20)},
			{frames.Timestamp(begin.Unix() + 191), nil},
			{"35s", numbers(17, 20)},
			{"1m", numbers(14, 20)},
			{"1s", nil},
		} {
			c := from(h, tt.at)
			queuetest.Equal(t, "from a time", c.Bodies(), tt.want)
			h.Queue.Cancel(c.Sub)
		}
	})
}
