package stream

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/leveretmq/leveret/frames"
)

const (
	// offsetName is the header that tells a consumer the offset of a delivery.
	offsetName = "x-stream-offset"
	// offsetField is that header in a table, up to the 8 bytes of its value.
	offsetField = "\x0f" + offsetName + "l"
	offsetSize  = len(offsetField) + 8

	// valueName is the header by which a publisher gives a filter value.
	valueName = "x-stream-filter-value"
)

// A header is a message's property block as deliveries have it, but for the
// offset: with a table, in order of the names, and with a delivery mode, which is
// 1 or 2 (RabbitMQ 4.0). The offset is known to few and can be put in by copying.
type header struct {
	raw      []byte // as it was published; "" before the first message
	block    []byte
	table    int // where in block the length of the table is
	at       int // where in block the offset's field goes
	priority byte
	flags    byte
	filtered bool   // there is a filter value, and it is not empty
	value    uint64 // its hash

	fields []field // scratch of sort
	sorted []byte  // scratch of sort
}

// flags of a header, a part of the disk format.
const (
	persistentHeader = 1 << iota
	headerFlags      = 1<<iota - 1
)

// A field is one of a table, by its place there.
type field struct {
	name       []byte
	start, end int
}

// is says whether the header is that of a message published with raw.
func (h *header) is(raw []byte) bool { return len(h.block) > 0 && bytes.Equal(h.raw, raw) }

// parse takes over a property block. One that is damaged, which no front door
// lets pass, counts as empty.
func (h *header) parse(raw []byte) {
	h.raw = append(h.raw[:0], raw...)
	var p frames.Properties
	if err := p.Parse(h.raw); err != nil {
		p = frames.Properties{}
	}
	h.flags, h.priority = 0, 0
	if p.Has(frames.FlagDeliveryMode) && p.DeliveryMode == 2 {
		h.flags |= persistentHeader
	}
	if p.Has(frames.FlagPriority) {
		h.priority = p.Priority
	}
	tag, value, ok := frames.FindField(p.Headers, valueName)
	if h.filtered = ok && tag == 'S' && len(value) > 0; h.filtered {
		h.value = hash(value)
	}
	if p.DeliveryMode != 2 {
		p.DeliveryMode = 1
	}
	at := h.sort(p.Headers)
	p.Headers = h.sorted
	p.Flags |= frames.FlagDeliveryMode | frames.FlagHeaders
	h.block = p.Append(h.block[:0])
	h.table = tableAt(&p)
	h.at = h.table + 4 + at
}

// tableAt is where the table's length is in the property block of p.
func tableAt(p *frames.Properties) int {
	n := 2
	if p.Has(frames.FlagContentType) {
		n += 1 + len(p.ContentType)
	}
	if p.Has(frames.FlagContentEncoding) {
		n += 1 + len(p.ContentEncoding)
	}
	return n
}

// sort makes h.sorted the fields of a well-formed table in order of their names,
// the first one of each name, without an offset that the publisher has put there.
// It returns where in that the offset belongs.
func (h *header) sort(table []byte) (at int) {
	h.fields, h.sorted = h.fields[:0], h.sorted[:0]
	for i := 0; i < len(table); {
		end := fieldEnd(table, i)
		name := table[i+1 : i+1+int(table[i])]
		if string(name) != offsetName {
			h.fields = append(h.fields, field{name, i, end})
		}
		i = end
	}
	byName := func(a, b field) int { return bytes.Compare(a.name, b.name) }
	if !slices.IsSortedFunc(h.fields, byName) {
		slices.SortStableFunc(h.fields, byName)
	}
	for i := range h.fields {
		f := &h.fields[i]
		if i > 0 && bytes.Equal(f.name, h.fields[i-1].name) {
			continue
		}
		h.sorted = append(h.sorted, table[f.start:f.end]...)
		if string(f.name) < offsetName {
			at = len(h.sorted)
		}
	}
	return at
}

// fieldEnd is where the field at start of a well-formed table ends (spec
// §4.2.5.5, with RabbitMQ's type letters).
func fieldEnd(table []byte, start int) int {
	i := start + 1 + int(table[start])
	tag := table[i]
	i++
	switch tag {
	case 't', 'b', 'B':
		return i + 1
	case 's', 'u':
		return i + 2
	case 'I', 'i', 'f':
		return i + 4
	case 'D':
		return i + 5
	case 'l', 'L', 'd', 'T':
		return i + 8
	case 'V':
		return i
	}
	return i + 4 + int(binary.BigEndian.Uint32(table[i:])) // S, x, F, A
}

// size is the length of the property block with an offset, in bytes.
func (h *header) size() int { return len(h.block) + offsetSize }

// appendTo appends the property block with an offset.
func (h *header) appendTo(dst []byte, offset uint64) []byte {
	start := len(dst)
	dst = append(dst, h.block[:h.at]...)
	dst = append(dst, offsetField...)
	dst = binary.BigEndian.AppendUint64(dst, offset)
	dst = append(dst, h.block[h.at:]...)
	length := dst[start+h.table:]
	binary.BigEndian.PutUint32(length, binary.BigEndian.Uint32(length)+uint32(offsetSize))
	return dst
}
