package message

import (
	"bytes"
	"testing"
)

func TestNewIsOneAllocationUpToMaxInline(t *testing.T) {
	for _, tt := range []struct{ header, body int }{{0, 0}, {14, 16}, {20, 100}, {60, 300}, {60, 1024}, {60, MaxInline - 60}} {
		m := New(tt.header, tt.body)
		if len(m.Header) != tt.header || len(m.Body) != tt.body {
			t.Errorf("New(%d, %d): header %d, body %d bytes", tt.header, tt.body, len(m.Header), len(m.Body))
		}
		if got := testing.AllocsPerRun(100, func() { sink = New(tt.header, tt.body) }); got != 1 {
			t.Errorf("New(%d, %d): %v allocations, want 1", tt.header, tt.body, got)
		}
	}
}

var sink *Message

func TestNewHeaderAndBodyDoNotOverlap(t *testing.T) {
	m := New(3, 4)
	m.Header = append(m.Header, 'x')
	if m.Body[0] != 0 {
		t.Error("appending to the header wrote into the body")
	}
	if m.TTL != NoTTL {
		t.Errorf("TTL = %d, want NoTTL", m.TTL)
	}
}

func TestMakerMakesSeveralAtOnce(t *testing.T) {
	for _, tt := range []struct {
		header, body, together int
	}{
		{0, 0, 15}, {14, 10, 15}, {14, 11, 11}, {14, 106, 11}, {14, 107, 8}, {14, 346, 8}, {14, 347, 8}, {60, MaxInline - 60, 8}, {60, MaxInline - 59, 1},
	} {
		var k Maker
		ms := make([]*Message, 3*tt.together)
		for i := range ms {
			m := k.New(tt.header, tt.body)
			if len(m.Header) != tt.header || len(m.Body) != tt.body || m.TTL != NoTTL {
				t.Fatalf("New(%d, %d): header %d, body %d bytes, TTL %d", tt.header, tt.body, len(m.Header), len(m.Body), m.TTL)
			}
			fillWith(m, byte(i))
			ms[i] = m
		}
		for i, m := range ms {
			if !isFilledWith(m, byte(i)) {
				t.Errorf("New(%d, %d): message %d was written to by another one", tt.header, tt.body, i)
			}
		}
		got := testing.AllocsPerRun(10, func() {
			for range tt.together {
				sink = k.New(tt.header, tt.body)
			}
		})
		if want := 1.0; tt.together > 1 && got != want {
			t.Errorf("New(%d, %d): %v allocations for %d, want %v", tt.header, tt.body, got, tt.together, want)
		}
	}
}

func fillWith(m *Message, b byte) {
	for _, part := range [][]byte{m.Header, m.Body} {
		for i := range part {
			part[i] = b
		}
	}
	m.Priority = b
}

func isFilledWith(m *Message, b byte) bool {
	for _, part := range [][]byte{m.Header, m.Body} {
		for i := range part {
			if part[i] != b {
				return false
			}
		}
	}
	return m.Priority == b
}

func TestMessagesInOneEnvelope(t *testing.T) {
	e := NewEnvelope([]byte{0x10, 0, 2})
	if string(e.Header) != "\x10\x00\x02" || cap(e.Header) != 3 || e.TTL != NoTTL {
		t.Errorf("the envelope is %+v", e)
	}
	for _, tt := range []struct{ body, together int }{
		{0, 15}, {16, 15}, {17, 11}, {112, 11}, {113, 8}, {336, 8}, {337, 8}, {MaxInline, 8}, {MaxInline + 1, 1},
	} {
		var k Maker
		ms := make([]*Message, 3*tt.together)
		for i := range ms {
			m := k.NewIn(e, tt.body)
			if len(m.Body) != tt.body || m.Envelope != e {
				t.Fatalf("NewIn of %d bytes: a body of %d, the envelope %+v", tt.body, len(m.Body), m.Envelope)
			}
			for j := range m.Body {
				m.Body[j] = byte(i)
			}
			ms[i] = m
		}
		for i, m := range ms {
			for _, b := range m.Body {
				if b != byte(i) {
					t.Fatalf("NewIn of %d bytes: message %d was written to by another one", tt.body, i)
				}
			}
		}
		got := testing.AllocsPerRun(10, func() {
			for range tt.together {
				sink = k.NewIn(e, tt.body)
			}
		})
		if want := 1.0; tt.together > 1 && got != want {
			t.Errorf("NewIn of %d bytes: %v allocations for %d, want %v", tt.body, got, tt.together, want)
		}
		if got := testing.AllocsPerRun(10, func() { sink = NewIn(e, tt.body) }); tt.body <= MaxInline && got != 1 {
			t.Errorf("NewIn of %d bytes alone: %v allocations, want 1", tt.body, got)
		}
	}
}

func TestLongHeaderOfAnEnvelope(t *testing.T) {
	header := bytes.Repeat([]byte{7}, 300)
	e := NewEnvelope(header)
	header[0] = 8
	if !bytes.Equal(e.Header, bytes.Repeat([]byte{7}, 300)) {
		t.Errorf("the header is % x", e.Header)
	}
}

func TestOwnEnvelope(t *testing.T) {
	e := NewEnvelope([]byte{0, 0})
	a, b := NewIn(e, 0), NewIn(e, 0)
	a.Own().Priority = 5
	if a.Priority != 5 || b.Priority != 0 || e.Priority != 0 {
		t.Errorf("priorities %d, %d and %d, want 5 of the first alone", a.Priority, b.Priority, e.Priority)
	}
}

func TestNoMakerMakesEachApart(t *testing.T) {
	var k *Maker
	e := NewEnvelope([]byte{0, 0})
	if got := testing.AllocsPerRun(10, func() { sink = k.NewIn(e, 10) }); got != 1 || sink.Envelope != e || len(sink.Body) != 10 {
		t.Errorf("NewIn: %v allocations, want 1; made %+v", got, sink)
	}
	if got := testing.AllocsPerRun(10, func() { sink = k.New(2, 10) }); got != 1 || sink.Envelope == e || len(sink.Header) != 2 || len(sink.Body) != 10 {
		t.Errorf("New: %v allocations, want 1; made %+v", got, sink)
	}
}
