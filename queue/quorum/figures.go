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
	// Last is the log's newest record, and Committed the newest that is on disk with
	// all before it: 0 for none. They go on rising over restarts, if not always after
	// a crash (see persistence.Log.LastID).
	Last, Committed uint64
}

// Figures is a snapshot.
func (q *Queue) Figures() Figures {
	q.mu.Lock()
	defer q.mu.Unlock()
	m, last := q.m, uint64(q.lastID)
	return Figures{Dead: m.dead, DeadBytes: m.deadBytes, High: m.lanes[urgent].n, Normal: m.lanes[normal].n, Returned: len(m.back),
		Last: last, Committed: min(last, q.log.Durable())}
}
