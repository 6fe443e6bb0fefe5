package persistence

import (
	"maps"
	"slices"
	"time"
)

// A committer is the one goroutine that writes. It works in rounds: take all
// that gathered, write it as one group or, if it is much, several, each one a
// transaction; then release what waited for it. While a group is being synced
// the next gathers, and is built already once there is enough to fill it.
//
// A record that was settled by the time its round is built is never written.
//
// The order that others rely on: if an Append happened before a Settle, on
// whatever logs, no transaction has the settle without the record. A round
// therefore reads what is settled first and takes what is appended after that,
// and writes the two in the opposite order.
type committer struct {
	s       *Disk
	round   *round
	current *group // being written
	next    *group // built
	done    chan error
	began   time.Time     // the commit of current
	took    time.Duration // a commit, on average
	refill  refill
	// unconsumed is how many commits in a row brought next to nothing that was
	// settled meanwhile.
	unconsumed int
	builder    chunkBuilder
	nextChunk  uint64
	published  uint64     // no chunk from this id on is in the index
	chunks     []*chunk   // by id, those alive and some dead ones
	markers    []uint64   // dead markers on disk, or about to be
	lowWater   uint64     // as on disk, or about to be
	reserved   LogID      // as on disk, or about to be
	buffers    [][]byte   // for chunks
	queue      []*diskLog // the spare of Disk.queue
	lists      int        // values of the list of last ids on disk
	waits      func()     // before it waits for work; nil but in tests
}

// settleDelay is how long settled records may wait for a commit with new
// records. Nobody waits for them, and a commit costs half a millisecond: with one
// every 10 ms these are a tenth of the processor time of draining a backlog. After
// a crash what was settled so shortly before is delivered again.
const settleDelay = 100 * time.Millisecond

// run ends when Close has been called and everything is written, or when the
// store has failed and all receipts are released.
func (c *committer) run() {
	defer c.s.wg.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if c.s.failure() != nil {
			c.abandon()
			return
		}
		if c.current != nil {
			c.await()
			continue
		}
		if c.next == nil && c.round == nil {
			c.awaitRefill(timer)
			if c.awaitWork(timer) {
				c.finish()
				return
			}
		}
		if c.next == nil {
			c.next = c.build()
		}
		if c.next != nil {
			c.begin()
		}
	}
}

// begin hands the next group to the engine, once the disk has space.
func (c *committer) begin() {
	if !c.hold() {
		return
	}
	c.current, c.next = c.next, nil
	c.began = time.Now()
	done := c.done
	if len(c.current.writes) == 0 {
		done <- nil
		return
	}
	c.s.eng.commit(c.current.writes, func(err error) { done <- err })
}

// await waits for the current group, and builds the next one meanwhile if
// there is enough for it.
func (c *committer) await() {
	for c.next == nil {
		if c.round != nil || c.s.waiting.Load() >= int64(c.s.sizes.group) {
			c.next = c.build()
			break
		}
		select {
		case err := <-c.done:
			c.completed(err)
			return
		case <-c.s.wakeup:
		}
	}
	c.completed(<-c.done)
}

func (c *committer) completed(err error) {
	if err != nil {
		c.s.stopFor(err)
		return
	}
	g := c.current
	c.current = nil
	c.s.commits.Add(1)
	took := time.Since(c.began)
	c.s.latency.Add(took)
	c.took += (took - c.took) / 8
	c.brought(g, took)
	c.publish(g)
	c.s.keep.committed(g.bytes)
	c.s.syncer.committed()
}

// awaitWork waits until something is to be written. It returns true when there will
// be nothing any more.
func (c *committer) awaitWork(timer *time.Timer) (closed bool) {
	s := c.s
	defer s.rest.Store(awake)
	var look, settled alarm
	for s.failure() == nil {
		s.rest.Store(idle)
		now := time.Now()
		urgent, dirty := s.work()
		due, left := c.sift(look.rang(now))
		if urgent || due || s.uncommitted.Load() >= int64(s.sizes.group) {
			s.rest.Store(awake)
			c.linger(timer)
			return false
		}
		if settled.rang(now) {
			return false
		}
		if left {
			s.rest.Store(leaving)
		}
		look.set(left, now, c.leaveTime())
		settled.set(dirty, now, settleDelay)
		if at := earlier(look, settled); !at.IsZero() {
			timer.Reset(at.Sub(now))
		}
		if c.waits != nil {
			c.waits()
		}
		select {
		case <-s.wakeup:
		case <-timer.C:
		case <-s.stop:
			s.keepMarks()
			urgent, dirty := s.work()
			_, left = c.sift(false) // what came since, perhaps unseen: both cases are ready then
			return !urgent && !dirty && !left
		}
	}
	return false
}

// linger delays a commit if the options say so.
func (c *committer) linger(timer *time.Timer) {
	s := c.s
	if s.opts.Linger <= 0 {
		return
	}
	timer.Reset(s.opts.Linger)
	for s.waiting.Load() < int64(s.sizes.group) {
		select {
		case <-s.wakeup:
		case <-timer.C:
			return
		case <-s.stop:
			return
		}
	}
}

// work reports whether somebody waits for a write that is not of records, and
// whether there is something to write that nobody waits for.
func (s *Disk) work() (urgent, settled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ops) > 0 || len(s.moves) > 0, len(s.dirty) > 0
}

// finish writes the last ids of logs, and the head record as it is, so that the
// next start wastes no ids, and fails what came too late.
func (c *committer) finish() {
	h := c.head()
	c.s.mu.Lock()
	h.nextLog = c.s.nextLog
	c.s.mu.Unlock()
	if !c.s.roomy() {
		c.s.stopFor(ErrClosed)
		c.abandon()
		return
	}
	writes := append(c.lastIDWrites(), write{key: []byte{keyHead}, val: h.append(nil)})
	err := ErrClosed
	for part := range slices.Chunk(writes, listsAtOnce) {
		done := make(chan error, 1)
		c.s.eng.commit(part, func(err error) { done <- err })
		if e := <-done; e != nil {
			err = e
			break
		}
	}
	c.s.stopFor(err)
	c.abandon()
}

// abandon fails everything that is not committed. Nothing comes after it:
// Append looks at the failure with the log's lock held.
func (c *committer) abandon() {
	err := c.s.failure()
	for _, g := range []*group{c.current, c.next} {
		if g != nil {
			answer(g.ops, err)
			for _, m := range g.moves {
				m.done <- err
			}
		}
	}
	if c.round != nil {
		c.round.answer(err)
	}
	c.s.mu.Lock()
	ops, moves := c.s.ops, c.s.moves
	c.s.ops, c.s.moves, c.s.closing = nil, nil, true
	logs := slices.Collect(maps.Values(c.s.logs))
	c.s.mu.Unlock()
	answer(ops, err)
	for _, m := range moves {
		m.done <- err
	}
	for _, l := range logs {
		l.fail(err)
	}
	c.s.published.happened()
}

func answer(ops []*op, err error) {
	for _, o := range ops {
		o.done <- err
	}
}

// fail fails what is not committed; see Log.Append.
func (l *diskLog) fail(err error) {
	l.mu.Lock()
	var parts []part
	for _, b := range l.uncommittedBatchesLocked() {
		parts = append(parts, b.parts...)
		for i := range b.parts {
			b.parts[i].receipt = nil
		}
	}
	l.mu.Unlock()
	for _, p := range parts {
		release(p.receipt, err)
	}
}
