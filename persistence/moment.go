package persistence

import "sync"

// A moment is something that happens now and then, for those who wait for the
// next time. The zero value is ready.
type moment struct {
	mu sync.Mutex    // a leaf
	ch chan struct{} // closed when it happens; nil if nobody waits
}

// next is closed when it happens the next time.
func (m *moment) next() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ch == nil {
		m.ch = make(chan struct{})
	}
	return m.ch
}

// happened wakes all who wait.
func (m *moment) happened() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ch != nil {
		close(m.ch)
		m.ch = nil
	}
}
