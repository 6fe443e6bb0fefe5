package persistence

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

// A directory describes one chunk: which runs it holds and where. Recovery
// reads directories only. Disk format, all numbers uvarints unless said:
//
//	version(1)
//	part: bytes of a full part of the data; 0 if the data follows right here
//	bytes of data, bytes of it that are runs (shared bodies come after them)
//	number of runs, then for each run, by (log, lane, first):
//	  log as difference from the run before, lane(1), first, span, count,
//	  bytes of bodies, bytes of records, CRC32C of them(4),
//	  earliest expiry, delivered mark,
//	  form(1): 0 no gaps; 1 a bitmap of the span's bits; 2 offsets as differences
//	[the data]
//	CRC32C of everything before(4)
type directory struct {
	part    uint64
	dataLen uint64
	runsLen uint64
	entries []dirEntry
	data    []byte // of a small chunk; a part of the decoded bytes
}

// dirEntry is one run in a directory.
type dirEntry struct {
	log      LogID
	lane     Lane
	first    uint64
	span     uint32
	count    uint32
	bytes    int64 // of bodies
	size     uint64
	offset   uint64 // in the data; not stored, it follows from the sizes
	crc      uint32
	earliest int64
	mark     uint64 // see Log.Delivered; 0 if nothing new is known
	set      *idset // nil if there are no gaps
}

// forms of a run's ids.
const (
	formDense  = 0
	formBitmap = 1
	formList   = 2
)

// inline reports whether the data is in the directory's own value.
func (d *directory) inline() bool { return d.part == 0 }

// parts is the number of values the data is in.
func (d *directory) parts() int {
	if d.part == 0 {
		return 0
	}
	return int((d.dataLen + d.part - 1) / d.part)
}

func (d *directory) append(b []byte) []byte {
	b = append(b, codecVersion)
	b = binary.AppendUvarint(b, d.part)
	b = binary.AppendUvarint(b, d.dataLen)
	b = binary.AppendUvarint(b, d.runsLen)
	b = binary.AppendUvarint(b, uint64(len(d.entries)))
	prev := LogID(0)
	for i := range d.entries {
		e := &d.entries[i]
		b = e.append(b, e.log-prev)
		prev = e.log
	}
	return b
}

func (e *dirEntry) append(b []byte, logDelta LogID) []byte {
	b = binary.AppendUvarint(b, uint64(logDelta))
	b = append(b, byte(e.lane))
	b = binary.AppendUvarint(b, e.first)
	b = binary.AppendUvarint(b, uint64(e.span))
	b = binary.AppendUvarint(b, uint64(e.count))
	b = binary.AppendUvarint(b, uint64(e.bytes))
	b = binary.AppendUvarint(b, e.size)
	b = binary.LittleEndian.AppendUint32(b, e.crc)
	b = binary.AppendUvarint(b, uint64(e.earliest))
	b = binary.AppendUvarint(b, e.mark)
	switch {
	case e.set == nil:
		return append(b, formDense)
	case e.set.offs == nil:
		b = append(b, formBitmap)
		for _, w := range e.set.bits {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
		return b
	default:
		b = append(b, formList)
		prev := uint32(0)
		for _, o := range e.set.offs {
			b = binary.AppendUvarint(b, uint64(o-prev))
			prev = o
		}
		return b
	}
}

// decodeDirectory parses the value of a chunk key. The data of a small chunk
// aliases b; nothing else does. What it allocates is in proportion to b.
func decodeDirectory(b []byte) (*directory, error) {
	b, err := unseal(b, "chunk directory")
	if err != nil {
		return nil, err
	}
	r := reader{b: b}
	d := &directory{part: r.number(math.MaxInt32), dataLen: r.number(math.MaxInt64), runsLen: r.uvarint()}
	n := r.number(uint64(len(b)) / minDirEntry)
	d.entries = make([]dirEntry, n)
	offset, prev := uint64(0), LogID(0)
	for i := range d.entries {
		e := &d.entries[i]
		e.decode(&r, prev)
		e.offset = offset
		offset += e.size
		prev = e.log
		if offset < e.size || offset > d.runsLen {
			r.fail()
		}
	}
	if r.bad || n == 0 || offset != d.runsLen || d.runsLen > d.dataLen || !d.sorted() {
		return nil, fmt.Errorf("%w: chunk directory", errCorrupt)
	}
	if d.inline() {
		d.data = r.b
	}
	if d.inline() && uint64(len(r.b)) != d.dataLen || !d.inline() && len(r.b) != 0 {
		return nil, fmt.Errorf("%w: chunk directory has %d bytes of data", errCorrupt, len(r.b))
	}
	return d, nil
}

// The least number of bytes of a run in a directory, and of a record in a run.
const (
	minDirEntry = 14
	minRecord   = 4
)

func (e *dirEntry) decode(r *reader, prev LogID) {
	e.log = LogID(r.number(uint64(math.MaxUint32-prev))) + prev
	e.lane = Lane(r.byte())
	e.first = r.uvarint()
	e.span = uint32(r.number(math.MaxUint32))
	e.count = uint32(r.number(math.MaxUint32))
	e.bytes = int64(r.number(math.MaxInt64))
	e.size = r.uvarint()
	e.crc = r.uint32()
	e.earliest = int64(r.number(math.MaxInt64))
	e.mark = r.uvarint()
	switch r.byte() {
	case formDense:
		if e.count != e.span+1 || e.count == 0 {
			r.fail()
		}
	case formBitmap:
		e.decodeBitmap(r)
	case formList:
		e.decodeList(r)
	default:
		r.fail()
	}
	if e.first+uint64(e.span) < e.first || e.size < minRecord*uint64(e.count) {
		r.fail()
	}
}

func (e *dirEntry) decodeBitmap(r *reader) {
	raw := r.take((uint64(e.span) + 64) / 64 * 8)
	if r.bad {
		return
	}
	e.set = &idset{bits: make([]uint64, len(raw)/8)}
	for i := range e.set.bits {
		e.set.bits[i] = binary.LittleEndian.Uint64(raw[i*8:])
	}
	last, _ := e.set.last()
	if e.set.bits[0]&1 == 0 || last != e.span || e.set.count() != int(e.count) || uint64(e.span)+1 > sparseFactor*uint64(e.count) || e.count == e.span+1 {
		r.fail()
	}
}

func (e *dirEntry) decodeList(r *reader) {
	if e.count == 0 || uint64(e.count) > uint64(len(r.b)) {
		r.fail()
		return
	}
	offs := make([]uint32, e.count)
	off := uint64(0)
	for i := range offs {
		d := r.number(math.MaxUint32)
		off += d
		if (i == 0) != (d == 0) || off > uint64(e.span) {
			r.fail()
			return
		}
		offs[i] = uint32(off)
	}
	if off != uint64(e.span) || off+1 <= sparseFactor*uint64(e.count) {
		r.fail()
		return
	}
	e.set = newFullSet(len(offs))
	e.set.offs = offs
}

// sorted reports whether the runs are in order and do not overlap.
func (d *directory) sorted() bool {
	for i := 1; i < len(d.entries); i++ {
		a, b := &d.entries[i-1], &d.entries[i]
		if a.log == b.log && (a.lane > b.lane || a.lane == b.lane && a.first+uint64(a.span) >= b.first) {
			return false
		}
	}
	return true
}

// check verifies the records of a run.
func (e *dirEntry) check(data []byte) error { return e.verify(crc32.Checksum(data, castagnoli)) }

// verify says whether this is the checksum of the run's records.
func (e *dirEntry) verify(crc uint32) error {
	if crc != e.crc {
		return fmt.Errorf("%w: checksum of the records %d-%d of log %d", errCorrupt, e.first, e.first+uint64(e.span), e.log)
	}
	return nil
}
