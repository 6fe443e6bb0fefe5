package record

import (
	"encoding/binary"
	"errors"

	"github.com/leveretmq/leveret/message"
)

// moreVersion begins the Extra of a record: what message.More holds. The format:
//
//	version  1 byte
//	CC       list of strings
//	BCC      list of strings
//	deaths   list of deaths, newest first
//	first    death; there only if deaths is not empty
//
// A list is its length and its members; a string its length and its bytes; a
// death is queue, reason, exchange, keys, expiration, count, time. Lengths are
// varints, count and time are varints of signed integers.
const moreVersion = 1

// AppendMore appends the encoding of m to dst.
func AppendMore(dst []byte, m *message.More) []byte {
	dst = append(dst, moreVersion)
	dst = appendStrings(dst, m.CC)
	dst = appendStrings(dst, m.BCC)
	dst = binary.AppendUvarint(dst, uint64(len(m.Deaths)))
	for i := range m.Deaths {
		dst = appendDeath(dst, &m.Deaths[i])
	}
	if len(m.Deaths) > 0 {
		dst = appendDeath(dst, &m.FirstDeath)
	}
	return dst
}

func appendStrings(dst []byte, list []string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, s := range list {
		dst = appendString(dst, s)
	}
	return dst
}

func appendString(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

func appendDeath(dst []byte, d *message.Death) []byte {
	dst = appendString(dst, d.Queue)
	dst = appendString(dst, d.Reason)
	dst = appendString(dst, d.Exchange)
	dst = appendStrings(dst, d.Keys)
	dst = appendString(dst, d.Expiration)
	dst = binary.AppendVarint(dst, d.Count)
	return binary.AppendVarint(dst, d.Time)
}

var (
	errMoreVersion = errors.New("the routing history has a format that this version does not know")
	errMore        = errors.New("the routing history is damaged")
)

// ParseMore is the reverse of AppendMore. The result owns its memory.
func ParseMore(b []byte) (*message.More, error) {
	if len(b) == 0 || b[0] != moreVersion {
		return nil, errMoreVersion
	}
	r := moreReader{b: b[1:]}
	m := &message.More{CC: r.strings(), BCC: r.strings()}
	for range r.length() {
		m.Deaths = append(m.Deaths, r.death())
	}
	if len(m.Deaths) > 0 {
		m.FirstDeath = r.death()
	}
	if r.bad || len(r.b) > 0 {
		return nil, errMore
	}
	return m, nil
}

// moreReader takes values off the front of b; once bad it returns zeroes.
type moreReader struct {
	b   []byte
	bad bool
}

// uvarint takes an integer in its shortest form.
func (r *moreReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || n > 1 && r.b[n-1] == 0 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *moreReader) varint() int64 {
	u := r.uvarint()
	v := int64(u >> 1)
	if u&1 != 0 {
		v = ^v
	}
	return v
}

// length takes the length of a list or string, of which each member takes at
// least a byte.
func (r *moreReader) length() int {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.b, r.bad = nil, true
		return 0
	}
	return int(n)
}

func (r *moreReader) string() string {
	n := r.length()
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

func (r *moreReader) strings() []string {
	var list []string
	for range r.length() {
		list = append(list, r.string())
	}
	return list
}

func (r *moreReader) death() message.Death {
	return message.Death{
		Queue: r.string(), Reason: r.string(), Exchange: r.string(), Keys: r.strings(),
		Expiration: r.string(), Count: r.varint(), Time: r.varint(),
	}
}
