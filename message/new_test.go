package message

import "testing"

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
		{0, 0, 12}, {14, 34, 12}, {14, 35, 12}, {14, 130, 12}, {14, 131, 10}, {14, 354, 10}, {14, 355, 8}, {60, MaxInline - 60, 8}, {60, MaxInline - 59, 1},
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
