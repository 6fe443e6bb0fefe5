package persistence

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

// Records follow one another in a run; what is as in the record before is left
// out. Disk format, numbers are uvarints, zigzag where they may be negative:
//
//	flags(1), id and time as differences to the record before (the first: to
//	the run's first id, to 0), [expiry - time], [exchange], [key], [header],
//	[extra], then the body; or, if it is shared, its offset behind the runs,
//	its length and its CRC32C(4)
const (
	recExpires  = 1 << iota
	recExchange // differs from the record before
	recKey
	recHeader
	recExtra
	recShared
	recFlags = 1<<iota - 1
)

// An encoder writes the records of one run.
type encoder struct {
	id       uint64
	time     int64
	exchange string
	key      string
	header   []byte
}

// sharedRef is where a shared body is in its chunk.
type sharedRef struct {
	off, size uint64
	crc       uint32
}

// append adds a record. ref is nil unless the body is stored apart.
func (c *encoder) append(b []byte, e *entry, ref *sharedRef) []byte {
	flags := c.flags(e)
	if ref != nil {
		flags |= recShared
	}
	b = append(b, flags)
	b = binary.AppendUvarint(b, e.id-c.id)
	b = binary.AppendVarint(b, e.time-c.time)
	if flags&recExpires != 0 {
		b = binary.AppendVarint(b, e.expires-e.time)
	}
	if flags&recExchange != 0 {
		b = appendBytes(b, e.exchange)
	}
	if flags&recKey != 0 {
		b = appendBytes(b, e.key)
	}
	if flags&recHeader != 0 {
		b = appendBytes(b, e.header)
	}
	if flags&recExtra != 0 {
		b = appendBytes(b, e.extra)
	}
	c.id, c.time, c.exchange, c.key, c.header = e.id, e.time, e.exchange, e.key, e.header
	if ref == nil {
		return appendBytes(b, e.body)
	}
	b = binary.AppendUvarint(b, ref.off)
	b = binary.AppendUvarint(b, ref.size)
	return binary.LittleEndian.AppendUint32(b, ref.crc)
}

func (c *encoder) flags(e *entry) (flags byte) {
	if e.expires != 0 {
		flags |= recExpires
	}
	if e.exchange != c.exchange {
		flags |= recExchange
	}
	if e.key != c.key {
		flags |= recKey
	}
	if !bytes.Equal(e.header, c.header) {
		flags |= recHeader
	}
	if len(e.extra) > 0 {
		flags |= recExtra
	}
	return flags
}

// A decoder reads the records of one run, from the front. What it remembers of
// the header aliases the bytes it read.
type decoder struct {
	off      int // of the next record in the run, in bytes
	id       uint64
	time     int64
	exchange string
	key      string
	header   []byte
}

// next decodes the record at the front of b, which begins at d.off of the run.
// Header, Body and Extra of rec alias b, or what an earlier call was given; a
// shared body is described by ref and Body is nil. ok is false if b does not
// begin with a whole record; d then may try the same one with more bytes.
func (d *decoder) next(b []byte, rec *Record) (ref sharedRef, ok bool) {
	r := reader{b: b}
	flags := r.byte()
	id := d.id + r.uvarint()
	time := d.time + r.varint()
	*rec = Record{ID: id, Time: time}
	if flags&recExpires != 0 {
		rec.Expires = time + r.varint()
	}
	if flags&recExchange != 0 {
		d.exchange = string(r.bytes())
	}
	if flags&recKey != 0 {
		d.key = string(r.bytes())
	}
	if flags&recHeader != 0 {
		d.header = r.bytes()
	}
	if flags&recExtra != 0 {
		rec.Extra = r.bytes()
	}
	if flags&recShared != 0 {
		ref = sharedRef{off: r.uvarint(), size: r.number(math.MaxInt64), crc: r.uint32()}
	} else {
		rec.Body = r.bytes()
	}
	if r.bad || flags&^recFlags != 0 || id < d.id {
		return ref, false
	}
	d.off, d.id, d.time = d.off+len(b)-len(r.b), id, time
	rec.Exchange, rec.Key, rec.Header = d.exchange, d.key, d.header
	return ref, true
}

// corrupt is the error of a run that has no record where the next one should be.
func (d *decoder) corrupt() error {
	return fmt.Errorf("%w: record after %d at byte %d of its run", errCorrupt, d.id, d.off)
}

// body cuts a shared body out of the bodies of a chunk.
func (ref sharedRef) body(bodies []byte) ([]byte, error) {
	if ref.off > uint64(len(bodies)) || ref.size > uint64(len(bodies))-ref.off {
		return nil, fmt.Errorf("%w: shared body at %d of %d bytes", errCorrupt, ref.off, len(bodies))
	}
	b := bodies[ref.off : ref.off+ref.size : ref.off+ref.size]
	if crc32.Checksum(b, castagnoli) != ref.crc {
		return nil, fmt.Errorf("%w: checksum of a shared body", errCorrupt)
	}
	return b, nil
}
