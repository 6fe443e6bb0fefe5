package vhost

import (
	"errors"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
)

// recover reads the producers from before a restart, once all queues are there. If some
// are not, as they could not be read, what it finds is true for this time only.
func (t *producers) recover(logs map[persistence.LogID]persistence.Log, incomplete bool) error {
	open := make(map[string][]storedPending)
	for rec, err := range persistence.Records(t.log, 0, 0) {
		if err != nil {
			return err
		}
		if err := t.restore(rec, open); err != nil {
			return err
		}
	}
	if err := t.resolve(open, logs); err != nil || incomplete {
		return err
	}
	t.rewrite(open)
	return nil
}

// restore takes a record of the log; a later one of the same producer replaces it.
// What was pending then is left in open, by producer. One that cannot be read must
// not keep everything else from starting.
func (t *producers) restore(r *persistence.Record, open map[string][]storedPending) error {
	var s storedProducer
	err := decode(r.Body, &s)
	if err != nil && !errors.Is(err, errUnreadable) {
		return err
	}
	pr := newProducer(r.Key)
	old := t.byID[pr.id]
	switch {
	case err != nil && old != nil:
		pr = old
	case old != nil:
		pr.records = old.records
	}
	pr.records = append(pr.records, r.ID)
	t.clock++
	pr.used = t.clock
	t.byID[pr.id] = pr
	if err != nil {
		t.v.log.Error("the record of a producer of idempotent publishing is unreadable and is left out; what this producer has sent can be stored"+
			" a second time if it sends it again: restore a backup, or see to it that the producer goes on after its last message, which replaces the record",
			zap.String("producer", pr.id), zap.Error(err))
		return nil
	}
	pr.last = s.Last
	for _, n := range s.Free {
		pr.holes[n] = struct{}{}
	}
	open[pr.id] = s.Pending
	return nil
}

// resolve looks for what was pending.
func (t *producers) resolve(open map[string][]storedPending, logs map[persistence.LogID]persistence.Log) error {
	for id, pending := range open {
		pr := t.byID[id]
		for _, p := range pending {
			missing, err := pr.missing(p, logs)
			if err != nil {
				return err
			}
			for _, n := range missing {
				pr.holes[n] = struct{}{}
			}
		}
	}
	return nil
}

// rewrite writes what became of what was pending: a log's last id may fall, or ids be
// used again, before the next start.
func (t *producers) rewrite(open map[string][]storedPending) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var old []uint64
	var recs []persistence.Record
	for id, pending := range open {
		if len(pending) == 0 {
			continue
		}
		pr := t.byID[id]
		old = append(old, pr.records...)
		pr.records = nil
		recs = append(recs, t.recordLocked(pr))
	}
	t.log.Append(recs, nil)
	slices.Sort(old)
	t.log.Settle(old) // no commit has this without the records that replace them: see persistence
}

// missing returns those numbers whose messages are not in all their places. A
// log has everything up to its last record, or had it.
func (pr *producer) missing(pending storedPending, logs map[persistence.LogID]persistence.Log) (numbers []int64, err error) {
	numbers = pending.Numbers
	for _, at := range pending.Places {
		log := logs[at.Log]
		if log == nil || log.LastID() >= at.UpTo { // nil: the queue was deleted
			numbers = nil
			continue
		}
		found, err := pr.find(at, log)
		if err != nil {
			return nil, err
		}
		numbers = slices.DeleteFunc(slices.Clone(pending.Numbers), func(n int64) bool { return slices.Contains(found, n) })
		if len(numbers) > 0 {
			return numbers, nil
		}
	}
	return numbers, nil
}

// find returns the numbers of the producer's messages in a place.
func (pr *producer) find(at place, log persistence.Log) (numbers []int64, err error) {
	for _, lane := range log.Lanes() {
		for rec, err := range persistence.Records(log, lane.Lane, at.After+1) {
			if err != nil {
				return nil, err
			}
			if rec.ID > at.UpTo {
				break
			}
			m := message.Message{Envelope: &message.Envelope{Header: rec.Header}}
			if id, n, ok := producerOf(headerFields(&m)); ok && string(id) == pr.id {
				numbers = append(numbers, n)
			}
		}
	}
	return numbers, nil
}

// recoverProducers reads the producers of all vhosts.
func (s *Set) recoverProducers() error {
	for _, v := range s.all() {
		logs := make(map[persistence.LogID]persistence.Log)
		for _, e := range v.queues {
			if e.log != nil {
				logs[e.log.ID()] = e.log
			}
		}
		logs[v.held.log.ID()] = v.held.log
		for _, e := range v.exchanges {
			if e.delayed != nil && e.delayed.log != nil {
				logs[e.delayed.log.ID()] = e.delayed.log
			}
		}
		if err := v.producers.recover(logs, s.incomplete); err != nil {
			return err
		}
		s.log.Debug("producers recovered", zap.String("vhost", v.name), zap.Int("producers", len(v.producers.byID)))
	}
	return nil
}

// A watchedStore tells which log a queue took first: the one of its messages.
type watchedStore struct {
	persistence.Store

	mu  sync.Mutex // guards log; a leaf
	log persistence.Log
}

func (s *watchedStore) NewLog() (persistence.Log, error) {
	l, err := s.Store.NewLog()
	return s.took(l, err)
}

func (s *watchedStore) OpenLog(id persistence.LogID) (persistence.Log, error) {
	l, err := s.Store.OpenLog(id)
	return s.took(l, err)
}

func (s *watchedStore) took(l persistence.Log, err error) (persistence.Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log == nil && err == nil {
		s.log = l
	}
	return l, err
}

func (s *watchedStore) first() persistence.Log {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log
}
