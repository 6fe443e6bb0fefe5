package amqp

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
)

const (
	// drainPieces is in how many pieces, at most, the connections of a server in
	// maintenance are closed, and drainEvery the time between two of them: clients
	// that come back elsewhere shall not all do so at once.
	drainPieces = 20
	drainEvery  = 100 * time.Millisecond
	// drainAtLeast is how many connections are closed at a time if there are few.
	drainAtLeast = 50
)

// A maintenance is whether the server serves clients, by an operator's wish.
type maintenance struct {
	// mu guards the fields below. It is a leaf, and is not held while connections
	// are closed.
	mu    sync.Mutex
	on    bool
	run   int         // counts calls of Drain and Revive: what belongs to one before has no effect
	timer *time.Timer // of the next piece; nil if there is none
}

// Drain puts the server into maintenance: who connects is refused, and after the
// grace the connections are closed with 320, in pieces. It returns at once. A
// second call begins anew with another grace.
func (s *Server) Drain(grace time.Duration) {
	s.log.Warn("maintenance: no more clients are accepted; the connections are closed after the grace", zap.Duration("grace", grace))
	m := &s.maintenance
	m.mu.Lock()
	defer m.mu.Unlock()
	m.on = true
	m.run++
	if m.timer != nil {
		m.timer.Stop()
	}
	run := m.run
	m.timer = time.AfterFunc(max(grace, 0), func() { s.drainPiece(run, 0) })
}

// Revive ends the maintenance: clients are accepted again.
func (s *Server) Revive() {
	m := &s.maintenance
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.on {
		return
	}
	m.on = false
	m.run++
	m.timer.Stop()
	s.log.Info("the maintenance has ended: clients are accepted")
}

// InMaintenance says whether the server is in maintenance.
func (s *Server) InMaintenance() bool {
	s.maintenance.mu.Lock()
	defer s.maintenance.mu.Unlock()
	return s.maintenance.on
}

// drainPiece closes some of the connections, and has itself called again if there
// are more. The size of a piece is that of the first one; 0 is not known yet.
func (s *Server) drainPiece(run, size int) {
	conns := s.connections()
	if size == 0 {
		size = max((len(conns)+drainPieces-1)/drainPieces, drainAtLeast)
	}
	m := &s.maintenance
	m.mu.Lock()
	if m.run != run { // revived, or drained anew
		m.mu.Unlock()
		return
	}
	// What has not ended by the next piece is counted again; that it has been asked
	// to end is known to it.
	if len(conns) > 0 && !s.stopped.Load() {
		m.timer = time.AfterFunc(drainEvery, func() { s.drainPiece(run, size) })
	}
	m.mu.Unlock()
	left := size
	for _, c := range conns {
		if left == 0 {
			return
		}
		if c.forced.Load() == nil {
			c.force(maintenanceError())
			left--
		}
	}
}

// maintenanceError is what clients hear.
func maintenanceError() *frames.Error {
	return frames.Unboundf(frames.ConnectionForced, "this node is in maintenance; connect to another one, or again later")
}
