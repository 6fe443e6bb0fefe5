package persistence

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"go.uber.org/zap"
)

// The last id of a log follows from its chunks, unless its youngest records are
// settled. So that ids go on rising all the same, Close writes a list of those
// last ids, cut into values that stay out of the value log. After a crash the list
// of the last Close is there: what it says is true for ever. Disk format, numbers
// are uvarints:
//
//	version(1), then for some logs, by id:
//	  log as difference from the one before, its last id
//	CRC32C of everything before(4)

// listsAtOnce is how many values of the list go into one transaction: 64 KB.
const listsAtOnce = 64

// appendLastID adds a log to a value of the list; prev is the log before it there.
func appendLastID(b []byte, prev, log LogID, id uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(log-prev)), id)
}

// decodeLastIDs calls fn for each log in a value of the list.
func decodeLastIDs(b []byte, fn func(log LogID, id uint64)) error {
	b, err := unseal(b, "list of last ids")
	if err != nil {
		return err
	}
	r := reader{b: b}
	for log := LogID(0); len(r.b) > 0; {
		log += LogID(r.number(uint64(math.MaxUint32 - log)))
		id := r.uvarint()
		if r.bad {
			return fmt.Errorf("%w: list of last ids after log %d", errCorrupt, log)
		}
		fn(log, id)
	}
	return nil
}

// lastIDs takes a value of the list in. Without it ids may be used again, which is
// better than a store that does not open.
func (r *recovery) lastIDs(it item) error {
	r.s.com.lists++
	if r.s.lastIDs == nil {
		r.s.lastIDs = make(map[LogID]uint64)
	}
	err := it.value(func(val []byte) error {
		return decodeLastIDs(val, func(log LogID, id uint64) { r.s.lastIDs[log] = max(r.s.lastIDs[log], id) })
	})
	if err != nil {
		r.s.opts.Log.Error("a list of last ids cannot be read: ids may be used again, and a stream that is empty may begin at an offset that it had before; check the disk", zap.Error(err))
	}
	return nil
}

// lastIDWrites is the list as it has to be written now.
func (c *committer) lastIDWrites() (writes []write) {
	c.s.mu.Lock()
	last := maps.Clone(c.s.lastIDs) // of logs that nobody has opened yet, too
	logs := slices.Collect(maps.Values(c.s.logs))
	c.s.mu.Unlock()
	if last == nil {
		last = make(map[LogID]uint64)
	}
	for _, l := range logs {
		last[l.id] = l.untoldLastID()
	}
	put := func(val []byte) {
		writes = append(writes, write{key: appendListKey(nil, len(writes)), val: seal(val)})
	}
	b, prev := []byte{codecVersion}, LogID(0)
	for _, log := range slices.SortedFunc(maps.Keys(last), cmp.Compare) {
		if last[log] == 0 {
			continue
		}
		if len(b) >= fragmentSize {
			put(b)
			b, prev = []byte{codecVersion}, 0
		}
		b = appendLastID(b, prev, log, last[log])
		prev = log
	}
	if len(b) > 1 {
		put(b)
	}
	for n := len(writes); n < c.lists; n++ {
		writes = append(writes, write{key: appendListKey(nil, n), del: true})
	}
	return writes
}

// untoldLastID is the last id of the log, or 0 if its chunks tell it, or there is
// none.
func (l *diskLog) untoldLastID() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.durableLocked()
	for i := range l.lanes {
		refs := l.lanes[i].refs[l.lanes[i].head:]
		if n := len(refs); n > 0 && refs[n-1].run().live > 0 && refs[n-1].run().last() >= last {
			return 0
		}
	}
	return last
}
