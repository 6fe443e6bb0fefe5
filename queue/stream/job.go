package stream

import (
	"go.uber.org/zap"

	"github.com/leveretmq/leveret/message"
)

// A job is something to be read for a reader, without the lock.
type job struct {
	r    *reader
	seek int64  // find the first chunk of this time, if it is not negative
	from uint64 // or read chunks from this offset on
	end  uint64 // the end of what was on disk when the job was made
	size int    // in bytes on disk
	most int64  // what the chunks may weigh, with all but the last
	cur  *chunk // or decode this one; it may be others' now
	copy *chunk // of cur, as it was when the job was made

	chunks []*chunk // what was read, or the copy with its messages
	err    error
}

func (q *Queue) jobLocked(r *reader) job {
	j := job{r: r, seek: r.seek, from: r.next, end: q.durable.next}
	if r.seek >= 0 {
		j.from = q.first
		return j
	}
	j.size, j.most = q.readSizeLocked()
	if r.cur != nil {
		c := *r.cur
		j.cur, j.copy = r.cur, &c
	}
	return j
}

func (j *job) do(q *Queue) {
	switch {
	case j.seek >= 0:
		j.from, j.err = q.find(j.seek, j.from, j.end)
	case j.cur != nil:
		j.decode(j.copy, nil, nil)
	default:
		j.read(q)
	}
}

// decode makes the messages of c and adds it to j.chunks.
func (j *job) decode(c *chunk, msgs []message.Single, blocks []byte) {
	if c.msgs, j.err = c.decode(&j.r.names, msgs, blocks); j.err == nil {
		j.chunks = append(j.chunks, c)
	}
}

// read reads chunks; those that the reader wants are decoded. Many small ones weigh far
// more than on disk: of more than the cache holds it would let go the first.
func (j *job) read(q *Queue) {
	recs, err := q.log.Load(lane, j.from+1, nil, j.size)
	if err != nil {
		j.err = err
		return
	}
	s := slab{left: len(recs)}
	j.chunks = make([]*chunk, 0, len(recs))
	weight := int64(0)
	for i := 0; i < len(recs) && j.err == nil && weight <= j.most; i++ {
		c := s.chunk()
		switch j.err = c.open(&recs[i]); {
		case j.err != nil:
		case !j.r.filter.wants(c):
			j.chunks = append(j.chunks, c)
		default:
			msgs, blocks := s.room(c)
			j.decode(c, msgs, blocks)
		}
		weight += c.weigh()
	}
}

// A slab is memory that small chunks share, so that a stream that was published
// to one by one is not read with some allocations for each message.
type slab struct {
	left   int // chunks still to come, at most
	chunks []chunk
	msgs   []message.Single
	blocks []byte
}

const (
	slabChunks   = 16      // chunks that share an allocation
	slabMessages = 16      // messages that do
	slabBlocks   = 2 << 10 // bytes of their property blocks that do
)

func (s *slab) chunk() *chunk {
	if len(s.chunks) == 0 {
		s.chunks = make([]chunk, min(slabChunks, s.left))
	}
	c := &s.chunks[0]
	s.chunks = s.chunks[1:]
	s.left--
	return c
}

// room is memory for the messages of a chunk; nil if they are not few.
func (s *slab) room(c *chunk) (msgs []message.Single, blocks []byte) {
	n := int(c.next - c.first)
	if n > slabMessages/4 || c.headers > slabBlocks/4 {
		return nil, nil
	}
	if len(s.msgs) < n {
		s.msgs = make([]message.Single, min(slabMessages, max(n, s.left+1)))
	}
	if len(s.blocks) < c.headers {
		s.blocks = make([]byte, min(slabBlocks, c.headers*(s.left+1)))
	}
	msgs, s.msgs = s.msgs[:n:n], s.msgs[n:]
	blocks, s.blocks = s.blocks[:0:c.headers], s.blocks[c.headers:]
	return msgs, blocks
}

// doneLocked gives the reader what was read for it.
func (q *Queue) doneLocked(r *reader, j *job) {
	switch {
	case q.state != running || r.wait&departed != 0:
		return
	case j.err != nil && len(j.chunks) == 0:
		q.failLocked(r, j.err)
		return
	case j.seek >= 0:
		r.seek, r.next = -1, j.from
		return
	case j.cur != nil:
		q.cache.decoded(j.cur, j.chunks[0])
		return
	case len(j.chunks) == 0:
		q.missLocked(r, j.end)
		return
	}
	for i, c := range j.chunks {
		c = q.cache.put(c)
		if i == 0 {
			if c.first > r.next {
				q.missLocked(r, c.first)
			}
			r.cur = c
		}
	}
}

// missLocked moves the reader over messages that the log turned out not to have:
// they were forgotten meanwhile, or their chunks were damaged.
func (q *Queue) missLocked(r *reader, to uint64) {
	if from := max(r.next, q.first); from < to {
		q.env.Log.Error("messages of a stream are missing in the store and are passed over: check the disk, and restore a backup if they are needed",
			zap.String("queue", q.text), zap.Uint64("offset", from), zap.Uint64("messages", to-from))
	}
	r.next = to
}

// find is the first offset of the first chunk that was written at a time or
// later, between two offsets; if nothing is there any more, the chunk is the
// next one after it. It reads about as many chunks as the binary logarithm of
// their distance.
func (q *Queue) find(at int64, from, to uint64) (uint64, error) {
	for from < to {
		mid := from + (to-from)/2
		c, ok, err := q.chunkAt(mid)
		switch {
		case err != nil:
			return 0, err
		case !ok:
			to = mid
		case c.time < at:
			from = c.next
		default:
			to = min(mid, c.first)
		}
	}
	return from, nil
}
