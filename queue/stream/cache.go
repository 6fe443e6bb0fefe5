package stream

import "math"

// A cache keeps chunks that readers have come by last, of which one is at the
// end of the stream if somebody reads there. It is guarded by Queue.mu.
//
// Readers in the same place share its chunks; a reader that is alone in its
// place has one chunk, which it keeps although the cache may have let it go.
type cache struct {
	chunks         map[uint64]*chunk // by first offset
	newest, oldest *chunk            // by when they were used last
	size           int64             // what the chunks weigh, in bytes
	messages       int               // in all chunks
}

const (
	// cacheSize is what a stream with readers that are behind keeps in memory;
	// tailSize, if all of them are at its end; smallSize, if the budget of all
	// queues is exceeded; in bytes.
	cacheSize = 8 << 20
	tailSize  = 1 << 20
	smallSize = 64 << 10

	// readSize is how much is read at once for a reader that is alone, in
	// bytes. Many readers share the cache.
	readSize = 256 << 10

	// chunkWeight and messageWeight are what a chunk and each message of it
	// weigh besides their bytes; estimates.
	chunkWeight   = 400
	messageWeight = 144
)

func (k *cache) init() { k.chunks = make(map[uint64]*chunk) }

// weigh is what a chunk takes in memory, in bytes.
func (c *chunk) weigh() int64 {
	n := int64(chunkWeight + len(c.extra) + len(c.body))
	if c.msgs != nil {
		n += int64(messageWeight*len(c.msgs) + c.headers)
	}
	return n
}

// get is the chunk that begins with an offset, or nil.
func (k *cache) get(first uint64) *chunk {
	c := k.chunks[first]
	if c != nil && c != k.newest {
		k.unlink(c)
		k.link(c)
	}
	return c
}

// put adds a chunk. If there is one in its place already, that stays, and is
// returned instead.
func (k *cache) put(c *chunk) *chunk {
	if there := k.get(c.first); there != nil {
		k.decoded(there, c)
		return there
	}
	k.chunks[c.first] = c
	c.weight = c.weigh()
	k.size += c.weight
	k.messages += int(c.next - c.first)
	k.link(c)
	return c
}

// decoded gives a chunk, which may be in the cache, the messages of another copy.
func (k *cache) decoded(c, from *chunk) {
	if c.msgs == nil {
		c.msgs = from.msgs
	}
	if c.weight > 0 {
		w := c.weigh()
		k.size += w - c.weight
		c.weight = w
	}
}

func (k *cache) link(c *chunk) {
	c.newer, c.older = nil, k.newest
	if k.newest != nil {
		k.newest.newer = c
	} else {
		k.oldest = c
	}
	k.newest = c
}

func (k *cache) unlink(c *chunk) {
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		k.newest = c.older
	}
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		k.oldest = c.newer
	}
	c.newer, c.older = nil, nil
}

// trim lets go of the chunks used longest ago until the others weigh no more
// than limit, or one of them ends after an offset.
func (k *cache) trim(limit int64, keep uint64) {
	for k.size > limit && k.oldest != nil && k.oldest.next <= keep {
		c := k.oldest
		k.unlink(c)
		delete(k.chunks, c.first)
		k.size -= c.weight
		k.messages -= int(c.next - c.first)
		c.weight = 0
	}
}

func (k *cache) clear() { k.trim(-1, math.MaxUint64) }

// tidyLocked trims the cache and tells the memory budget. Chunks that readers may not
// have yet stay: the store keeps their bytes until they are on disk anyway.
func (q *Queue) tidyLocked() {
	limit, keep := int64(tailSize), q.durable.next
	switch {
	case len(q.readers) == 0:
		limit, keep = 0, math.MaxUint64
	case q.env.Memory.Exceeded():
		limit, keep = smallSize, math.MaxUint64
	case len(q.tailing) < len(q.readers):
		limit = cacheSize
	}
	q.cache.trim(limit, keep)
	if d := q.cache.size - q.counted; d > memoryStep || d < -memoryStep || d != 0 && q.cache.size == 0 {
		q.env.Memory.Add(d)
		q.counted = q.cache.size
	}
}

// memoryStep is how far the budget may be behind, in bytes and per queue.
const memoryStep = 16 << 10

// PageOut makes the queue give up memory if the budget of all queues is
// exceeded. A queue in use does so by itself.
func (q *Queue) PageOut() {
	q.mu.Lock()
	q.tidyLocked()
	q.mu.Unlock()
}

// readSizeLocked is how much to read for one reader, in bytes on disk and by weight: its
// part of half the cache, of which at least one chunk comes.
func (q *Queue) readSizeLocked() (size int, weight int64) {
	if q.env.Memory.Exceeded() {
		return 1, 0
	}
	behind := max(1, len(q.readers)-len(q.tailing))
	return min(readSize, cacheSize/4/behind), int64(cacheSize / 2 / behind)
}
