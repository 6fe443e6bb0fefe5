package persistence

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// castagnoli is the polynomial of all checksums: processors compute it.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errCorrupt is wrapped by all decoders' errors.
var errCorrupt = errors.New("corrupt data")

// codecVersion is the first byte of each value of ours. A reader refuses what
// it does not know.
const codecVersion = 1

// seal appends the checksum of b.
func seal(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// unseal checks and cuts off the checksum and the version byte.
func unseal(b []byte, what string) ([]byte, error) {
	if len(b) < 5 {
		return nil, fmt.Errorf("%w: %s of %d bytes", errCorrupt, what, len(b))
	}
	n := len(b) - 4
	if crc32.Checksum(b[:n], castagnoli) != binary.LittleEndian.Uint32(b[n:]) {
		return nil, fmt.Errorf("%w: checksum of %s", errCorrupt, what)
	}
	if b[0] != codecVersion {
		return nil, fmt.Errorf("%w: %s of version %d", errCorrupt, what, b[0])
	}
	return b[1:n], nil
}

// A reader takes fields off the front of b. After the first bad field it
// returns zeros and keeps bad set.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) fail() { r.b, r.bad = nil, true }

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) uvarint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 { // most are short
		v := uint64(r.b[0])
		r.b = r.b[1:]
		return v
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// number is a uvarint that must not exceed limit.
func (r *reader) number(limit uint64) uint64 {
	v := r.uvarint()
	if v > limit {
		r.fail()
		return 0
	}
	return v
}

// bytes is a length and as many bytes, still a part of the input.
func (r *reader) bytes() []byte { return r.take(r.uvarint()) }

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) uint32() uint32 {
	v := r.take(4)
	if v == nil {
		return 0
	}
	return binary.LittleEndian.Uint32(v)
}

func (r *reader) uint64() uint64 {
	v := r.take(8)
	if v == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(v)
}

func appendBytes[T ~string | ~[]byte](b []byte, v T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

// head is what the store knows about itself besides its chunks.
type head struct {
	nextLog   LogID  // no log has an id of this or more; ids are reserved in blocks
	nextChunk uint64 // no chunk below lowWater is younger; exact after a clean stop
	lowWater  uint64 // no chunk with a lower id is live, whatever is found of it
}

func (h head) append(b []byte) []byte {
	start := len(b)
	b = append(b, codecVersion)
	b = binary.AppendUvarint(b, uint64(h.nextLog))
	b = binary.AppendUvarint(b, h.nextChunk)
	b = binary.AppendUvarint(b, h.lowWater)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

func decodeHead(b []byte) (head, error) {
	b, err := unseal(b, "head record")
	if err != nil {
		return head{}, err
	}
	r := reader{b: b}
	h := head{LogID(r.number(math.MaxUint32)), r.uvarint(), r.uvarint()}
	if r.bad || len(r.b) != 0 {
		return head{}, fmt.Errorf("%w: head record", errCorrupt)
	}
	return h, nil
}
