package frames

import (
	"encoding/binary"
	"unicode/utf8"
)

// A codec reads or writes the arguments of one method: each method lists its
// fields once, for both directions.
type codec struct {
	b       []byte // what is left to read, or what has been written
	writing bool
	err     error // the first error; reading only
}

var errTruncated = Errorf(FrameError, "truncated")

// take returns the next n bytes to read, or zeroes after an error.
func (c *codec) take(n int) []byte {
	if c.err == nil && len(c.b) >= n {
		v := c.b[:n]
		c.b = c.b[n:]
		return v
	}
	if c.err == nil {
		c.err = errTruncated
	}
	return zeroes[:min(n, len(zeroes))]
}

var zeroes [8]byte

func (c *codec) u8(v *uint8) {
	if c.writing {
		c.b = append(c.b, *v)
		return
	}
	*v = c.take(1)[0]
}

func (c *codec) u16(v *uint16) {
	if c.writing {
		c.b = binary.BigEndian.AppendUint16(c.b, *v)
		return
	}
	*v = binary.BigEndian.Uint16(c.take(2))
}

func (c *codec) u32(v *uint32) {
	if c.writing {
		c.b = binary.BigEndian.AppendUint32(c.b, *v)
		return
	}
	*v = binary.BigEndian.Uint32(c.take(4))
}

func (c *codec) u64(v *uint64) {
	if c.writing {
		c.b = binary.BigEndian.AppendUint64(c.b, *v)
		return
	}
	*v = binary.BigEndian.Uint64(c.take(8))
}

// bits packs flags into octets, the first into the lowest bit (spec §4.2.5.2).
func (c *codec) bits(flags ...*bool) {
	var octet byte
	if !c.writing {
		octet = c.take(1)[0]
	}
	for i, f := range flags {
		if !c.writing {
			*f = octet>>i&1 != 0
		} else if *f {
			octet |= 1 << i
		}
	}
	if c.writing {
		c.b = append(c.b, octet)
	}
}

// short is a shortstr, which must be UTF-8 (RabbitMQ 4.0).
func (c *codec) short(v *string) {
	if c.writing {
		c.b = appendShort(c.b, *v)
		return
	}
	n := int(c.take(1)[0])
	if c.err == nil && n > len(c.b) {
		c.err = errTruncated
	}
	if c.err != nil {
		return
	}
	*v = string(c.take(n))
	if !utf8.ValidString(*v) {
		c.err = errShortUTF8
	}
}

var errShortUTF8 = Unboundf(FrameError, "Malformed UTF-8 in shortstr")

func appendShort(dst []byte, s string) []byte {
	s = cutShort(s)
	dst = append(dst, byte(len(s)))
	return append(dst, s...)
}

// MaxShort is the length of the longest shortstr, in bytes (spec §4.2.5.3): of
// names, routing keys and most properties.
const MaxShort = 255

// cutShort cuts what is longer than a shortstr. Names are checked where they
// enter; a reply text is cut by ReplyText.
func cutShort(s string) string {
	if len(s) > MaxShort {
		return s[:MaxShort]
	}
	return s
}

// long is a longstr: bytes that alias the buffer when read.
func (c *codec) long(v *[]byte) {
	if c.writing {
		c.b = binary.BigEndian.AppendUint32(c.b, uint32(len(*v)))
		c.b = append(c.b, *v...)
		return
	}
	*v = c.longBytes()
}

func (c *codec) longBytes() []byte {
	n := binary.BigEndian.Uint32(c.take(4))
	if c.err == nil && uint64(n) > uint64(len(c.b)) {
		c.err = errTruncated
	}
	if c.err != nil {
		return nil
	}
	return c.take(int(n))
}

func (c *codec) table(v *Table) {
	if c.writing {
		c.b = AppendTable(c.b, *v)
		return
	}
	b := c.longBytes()
	if c.err == nil {
		*v, c.err = ParseTable(b)
	}
	if c.err == nil {
		c.err = v.CheckNumbers()
	}
}
