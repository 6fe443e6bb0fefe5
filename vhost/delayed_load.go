package vhost

import (
	"cmp"
	"slices"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
)

// Messages that are not in memory are read back when they are due. The log has
// them in the order they came, and each read unpacks a chunk of many: one read
// per message is right for a few, but a thousand a second want a sweep, which
// reads the log once for all that will be due soonest.

const (
	// sweepFrom is how many of a batch must be missing for a sweep. Measured
	// with a million messages of 100 bytes due within 30 s: single reads bring
	// 7,000 a second, sweeps keep up with 33,000.
	sweepFrom = 32
	// sweepBytes bounds what a sweep brings into memory, bodies and the rest.
	sweepBytes = 32 << 20
	// sweepLeast is the fewest messages that a sweep is worth.
	sweepLeast = 1000
	// readBytes is how much is read at a time in a sweep.
	readBytes = 1 << 20
	// nearby is how far apart, in ids, messages may be that are read together
	// without a sweep.
	nearby = 64
)

// load reads the messages that are not in memory.
func (d *delayer) load(due []delayedMessage) {
	var missing []*delayedMessage
	for i := range due {
		if due[i].msg == nil {
			missing = append(missing, &due[i])
		}
	}
	if len(missing) == 0 {
		return
	}
	slices.SortFunc(missing, func(a, b *delayedMessage) int { return cmp.Compare(a.id, b.id) })
	ids := make([]uint64, len(missing))
	for i, m := range missing {
		ids[i] = m.id
	}
	found := make(map[uint64]*message.Message, len(ids))
	if n := d.sweepSize(); len(ids) >= sweepFrom && n >= sweepLeast {
		soonest := d.soonest(n)
		d.read(merged(ids, soonest), readBytes, found)
		d.keep(found, soonest)
	} else {
		d.read(ids, 1, found)
	}
	for _, m := range missing {
		m.msg = found[m.id]
	}
}

// sweepSize is how many messages a sweep may bring into memory.
func (d *delayer) sweepSize() int {
	for _, l := range d.log.Lanes() {
		if l.Lane == 0 && l.Count > 0 {
			empty := message.New(0, 0)
			return int(sweepBytes / (l.Bytes/int64(l.Count) + int64(empty.Size())))
		}
	}
	return 0
}

// soonest returns the ids of those n waiting messages not in memory that are
// due first, ascending.
func (d *delayer) soonest(n int) []uint64 {
	d.mu.Lock()
	list := make([]delayedMessage, 0, len(d.waiting))
	for _, m := range d.waiting {
		if m.msg == nil {
			list = append(list, m)
		}
	}
	d.mu.Unlock()
	slices.SortFunc(list, func(a, b delayedMessage) int { return cmp.Compare(a.due, b.due) })
	list = list[:min(n, len(list))]
	ids := make([]uint64, len(list))
	for i := range list {
		ids[i] = list[i].id
	}
	slices.Sort(ids)
	return ids
}

// merged joins two ascending lists.
func merged(a, b []uint64) []uint64 {
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return all
}

// read reads messages by their ids, which ascend, least bytes at a time.
func (d *delayer) read(ids []uint64, least int, found map[uint64]*message.Message) {
	var recs []persistence.Record
	at := 0 // recs[:at] are before the next id
	for i, id := range ids {
		for at < len(recs) && recs[at].ID < id {
			at++
		}
		if at == len(recs) {
			size := least
			if i+1 < len(ids) && ids[i+1]-id < nearby {
				size = max(size, 64<<10)
			}
			var err error
			if recs, err = d.log.Load(0, id, nil, size); err != nil {
				d.v.log.Error("delayed messages that are due cannot be read; they stay in the store until the next start: look at the disk, then restart the broker",
					zap.String("exchange", d.name()), zap.Int("messages", len(ids)-i), zap.Error(err))
				return
			}
			at = 0
		}
		if at < len(recs) && recs[at].ID == id {
			found[id] = d.restore(&recs[at])
		}
	}
}

// name is the exchange's name; "" if there are many.
func (d *delayer) name() string {
	if d.x == nil {
		return ""
	}
	return d.x.Name
}

// keep gives waiting messages what was read of them.
func (d *delayer) keep(found map[uint64]*message.Message, ids []uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	for i := range d.waiting {
		w := &d.waiting[i]
		if w.msg == nil && w.id >= ids[0] && w.id <= ids[len(ids)-1] {
			w.msg = found[w.id]
			d.count(w.msg, 1)
		}
	}
}
