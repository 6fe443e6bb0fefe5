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
