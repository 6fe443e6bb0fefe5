package stream

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

// chunksOf are the chunks in the log, decoded.
func chunksOf(t testing.TB, h *queuetest.Harness) (list []*chunk) {
	t.Helper()
	for _, rec := range h.Store.Log(h.Queue.(*Queue).LogID()).Records(lane) {
		c := &chunk{}
		if err := c.open(&rec); err != nil {
			t.Fatal(err)
		}
		var err error
		if c.msgs, err = c.decode(&names{}, nil, nil); err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

// show prints what a message has after it was read.
func show(m *message.Message) string {
	return fmt.Sprintf("%q %q %q persistent %t priority %d ttl %d %.20q %d", m.Exchange, m.RoutingKey, m.Header, m.Persistent, m.Priority, m.TTL, m.Body, len(m.Body))
}

// kinds are messages that differ in all that can differ.
func kinds() (list []*message.Message) {
	add := func(exchange, key string, m *message.Message) {
		m.Exchange, m.RoutingKey = exchange, key
		list = append(list, m)
	}
	add("", "k", queuetest.Message("plain"))
	add("", "k", queuetest.Message(""))
	add("", "other", queuetest.Persistent("persistent"))
	add("x", "other", queuetest.Priority("priority", 9))
	add("x", "other", queuetest.TTL("with a TTL, which means nothing", 5))
	add("x", "k", queuetest.With("headers", func(p *frames.Properties) {
		p.Flags |= frames.FlagContentType | frames.FlagAppID
		p.ContentType, p.AppID = []byte("a/b"), []byte("app")
		p.SetTable(frames.Table{{Name: "z", Value: int64(1)}, {Name: "a", Value: "b"}})
	}))
	add("x", "", queuetest.Message(strings.Repeat("large", apartSize)))
	add("x", "", queuetest.Message(strings.Repeat("m", apartSize-1)))
	add("", "k", queuetest.Message("plain again"))
	return list
}

func TestChunkRoundTrip(t *testing.T) {
	h := newStream(t)
	msgs := kinds()
	h.Send(msgs...)
	n := 0
	for _, c := range chunksOf(t, h) {
		if len(c.msgs) != int(c.next-c.first) || c.first != uint64(n) {
			t.Fatalf("chunk %d-%d has %d messages", c.first, c.next, len(c.msgs))
		}
		for i := range c.msgs {
			m := *msgs[n]
			e := m.Own()
			e.Header, e.TTL = withOffset(m.Header, uint64(n)), message.NoTTL
			if got, want := show(&c.msgs[i].Message), show(&m); got != want || string(c.msgs[i].Body) != string(m.Body) {
				t.Errorf("message %d:\n%s, want\n%s", n, got, want)
			}
			n++
		}
	}
	if n != len(msgs) {
		t.Errorf("%d messages, want %d", n, len(msgs))
	}
}

func TestTailIsWhatIsRead(t *testing.T) {
	h := newStream(t)
	tail := from(h, nil)
	h.Send(kinds()...)
	for _, m := range kinds() {
		h.Send(m)
	}
	back := from(h, "first")
	live, read := tail.Held(), back.Held()
	if len(live) != 2*len(kinds()) || len(read) != len(live) {
		t.Fatalf("%d and %d deliveries", len(live), len(read))
	}
	for i := range live {
		if got, want := show(live[i].Msg), show(read[i].Msg); got != want || live[i].ID != read[i].ID {
			t.Errorf("delivery %d:\n%s, later\n%s", i, got, want)
		}
	}
}

func TestBatchesAreCutIntoChunks(t *testing.T) {
	h := newStream(t)
	var batch []*message.Message
	for range 1000 {
		batch = append(batch, queuetest.Message(strings.Repeat("x", 100)))
	}
	h.Send(batch...)
	chunks := chunksOf(t, h)
	if len(chunks) != 6 {
		t.Errorf("%d chunks of 1000 messages of 100 bytes, want 6", len(chunks))
	}
	for _, c := range chunks {
		if len(c.body) > chunkSize {
			t.Errorf("a chunk of %d bytes", len(c.body))
		}
	}
}

func TestALargeBodyIsNotCopied(t *testing.T) {
	h := newStream(t)
	m := queuetest.Message(strings.Repeat("x", apartSize))
	shared := &persistence.SharedBody{}
	h.Queue.Enqueue([]queue.Entry{{Msg: m, Shared: shared}})
	rec := h.Store.Log(h.Queue.(*Queue).LogID()).Records(lane)[0]
	if &rec.Body[0] != &m.Body[0] || rec.Shared != shared {
		t.Error("the body was copied, or is not shared")
	}
}

func TestChunksThatAreRefused(t *testing.T) {
	h := newStream(t)
	h.Send(queuetest.Message("a"), queuetest.With("b", func(p *frames.Properties) { p.SetTable(frames.Table{{Name: valueName, Value: "v"}}) }))
	good := h.Store.Log(h.Queue.(*Queue).LogID()).Records(lane)[0]
	read := func(rec persistence.Record) error {
		var c chunk
		if err := c.open(&rec); err != nil {
			return err
		}
		_, err := c.decode(&names{}, nil, nil)
		return err
	}
	if err := read(good); err != nil {
		t.Fatal(err)
	}
	for i := range good.Extra {
		bad := good
		if bad.Extra = good.Extra[:i]; read(bad) == nil {
			t.Errorf("taken with %d bytes of its description", i)
		}
	}
	for i := range good.Body {
		bad := good
		if bad.Body = good.Body[:i]; read(bad) == nil {
			t.Errorf("taken with %d bytes of its messages", i)
		}
	}
	bad := good
	bad.Body = append(append([]byte{}, good.Body...), 0)
	if read(bad) == nil {
		t.Error("taken with a byte too much")
	}
	bad = good
	bad.ID = 1
	if read(bad) == nil {
		t.Error("taken with fewer messages before it than in it")
	}
}

func TestProducersAreSkipped(t *testing.T) {
	var e encoder
	var h header
	e.add(&message.Message{Envelope: &message.Envelope{RoutingKey: "k", Header: []byte{0, 0}}}, &h)
	e.b[0] |= fromProducer
	e.b = append(e.b, 0x81, 0x01, 7) // producer 129, sequence 7
	e.b = appendBytes(e.b, "body")
	c := chunk{first: 5, next: 6, headers: e.headers, data: e.b}
	msgs, err := c.decode(&names{}, nil, nil)
	if err != nil || string(msgs[0].Body) != "body" || msgs[0].RoutingKey != "k" {
		t.Errorf("%v, error %v", msgs, err)
	}
}

func FuzzChunk(f *testing.F) {
	h := newStream(f)
	h.Send(kinds()...)
	for _, rec := range h.Store.Log(h.Queue.(*Queue).LogID()).Records(lane) {
		if len(rec.Body) < 1<<10 {
			f.Add(rec.ID, rec.Extra, rec.Body)
		}
	}
	f.Fuzz(func(t *testing.T, id uint64, extra, body []byte) {
		var c chunk
		if c.open(&persistence.Record{ID: id, Extra: extra, Body: body}) != nil || c.headers > 1<<20 {
			return
		}
		msgs, err := c.decode(&names{}, nil, nil)
		if err == nil && len(msgs) != int(c.next-c.first) {
			t.Errorf("%d messages of chunk %d-%d", len(msgs), c.first, c.next)
		}
	})
}
