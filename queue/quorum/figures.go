package quorum

// Figures are what only a quorum queue has.
type Figures struct {
	// Dead messages are neither ready nor unacknowledged: they wait for the target
	// of dead letters to confirm them (strategy at-least-once). DeadBytes is of
	// their bodies.
	Dead      int
	DeadBytes int64
	// High, Normal and Returned are the ready messages: of priority 5 and above, of
	// a lower one, and those that came back from a consumer.
	High, Normal, Returned int
}

// Figures is a snapshot.
func (q *Queue) Figures() Figures {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.m
	return Figures{Dead: m.dead, DeadBytes: m.deadBytes, High: m.lanes[urgent].n, Normal: m.lanes[normal].n, Returned: len(m.back)}
}
