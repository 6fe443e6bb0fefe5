package frames

import "encoding/binary"

// Flags of the properties in a content header's flag word (spec §4.2.6.1).
const (
	FlagContentType     = 1 << 15
	FlagContentEncoding = 1 << 14
	FlagHeaders         = 1 << 13
	FlagDeliveryMode    = 1 << 12
	FlagPriority        = 1 << 11
	FlagCorrelationID   = 1 << 10
	FlagReplyTo         = 1 << 9
	FlagExpiration      = 1 << 8
	FlagMessageID       = 1 << 7
	FlagTimestamp       = 1 << 6
	FlagType            = 1 << 5
	FlagUserID          = 1 << 4
	FlagAppID           = 1 << 3
	FlagClusterID       = 1 << 2
	// FlagUnused are the bits that are no property's: RabbitMQ 4.0 accepts them and
	// does not pass them on. The lower one would say that another flag word follows;
	// it never does.
	FlagUnused = 1<<1 | 1<<0
)

// Properties are the properties of class basic as views of a property block.
// A field means something only if its flag is set.
type Properties struct {
	Flags uint16

	ContentType     []byte
	ContentEncoding []byte
	Headers         []byte // the table's contents, without the length prefix; well-formed
	DeliveryMode    byte
	Priority        byte
	CorrelationID   []byte
	ReplyTo         []byte
	Expiration      []byte
	MessageID       []byte
	Timestamp       uint64 // seconds since the Unix epoch
	Type            []byte
	UserID          []byte
	AppID           []byte
	ClusterID       []byte
}

// Has says whether the property with this flag is there.
func (p *Properties) Has(flag uint16) bool { return p.Flags&flag != 0 }

// errProperties: RabbitMQ 4.0 closes with 541 for these; a syntax error says
// what it is.
var errProperties = Unboundf(SyntaxError, "malformed content header properties")

// Parse reads a property block into p without copying. Every byte of the block
// must belong to it; the header table is checked but not decoded.
func (p *Properties) Parse(b []byte) error {
	*p = Properties{}
	if len(b) < 2 {
		return errProperties
	}
	p.Flags = binary.BigEndian.Uint16(b)
	p.Flags &^= FlagUnused
	r := propertyReader{b: b[2:]}
	r.short(p, FlagContentType, &p.ContentType)
	r.short(p, FlagContentEncoding, &p.ContentEncoding)
	if p.Has(FlagHeaders) {
		p.Headers = r.table()
	}
	if p.Has(FlagDeliveryMode) {
		p.DeliveryMode = r.octet()
	}
	if p.Has(FlagPriority) {
		p.Priority = r.octet()
	}
	r.short(p, FlagCorrelationID, &p.CorrelationID)
	r.short(p, FlagReplyTo, &p.ReplyTo)
	r.short(p, FlagExpiration, &p.Expiration)
	r.short(p, FlagMessageID, &p.MessageID)
	if p.Has(FlagTimestamp) {
		p.Timestamp = r.uint64()
	}
	r.short(p, FlagType, &p.Type)
	r.short(p, FlagUserID, &p.UserID)
	r.short(p, FlagAppID, &p.AppID)
	r.short(p, FlagClusterID, &p.ClusterID)
	if r.err != nil {
		return r.err
	}
	if len(r.b) > 0 {
		return errProperties
	}
	return nil
}

// TimestampOf is the timestamp in a property block, in seconds since the Unix
// epoch; 0 if it has none.
func TimestampOf(block []byte) uint64 {
	if len(block) < 2 || binary.BigEndian.Uint16(block)&FlagTimestamp == 0 {
		return 0
	}
	var p Properties
	if p.Parse(block) != nil {
		return 0
	}
	return p.Timestamp
}

// propertyReader takes properties off the front of b; after an error it
// returns zeroes.
type propertyReader struct {
	b   []byte
	err error
}

func (r *propertyReader) take(n int) []byte {
	if r.err != nil || len(r.b) < n {
		if r.err == nil {
			r.err = errProperties
		}
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

func (r *propertyReader) octet() byte {
	if v := r.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (r *propertyReader) uint64() uint64 {
	if v := r.take(8); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

func (r *propertyReader) short(p *Properties, flag uint16, v *[]byte) {
	if p.Flags&flag != 0 {
		*v = r.take(int(r.octet()))
	}
}

func (r *propertyReader) table() []byte {
	v := r.take(4)
	if v == nil {
		return nil
	}
	size := binary.BigEndian.Uint32(v)
	if uint64(size) > uint64(len(r.b)) {
		r.err = errProperties
		return nil
	}
	t := r.take(int(size))
	if err := CheckTable(t); err != nil {
		r.err = err
	}
	return t
}

// Append appends the property block to dst: what Parse read, byte for byte but
// for FlagUnused, unless fields were changed since.
func (p *Properties) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, p.Flags)
	dst = p.appendShort(dst, FlagContentType, p.ContentType)
	dst = p.appendShort(dst, FlagContentEncoding, p.ContentEncoding)
	if p.Has(FlagHeaders) {
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(p.Headers)))
		dst = append(dst, p.Headers...)
	}
	if p.Has(FlagDeliveryMode) {
		dst = append(dst, p.DeliveryMode)
	}
	if p.Has(FlagPriority) {
		dst = append(dst, p.Priority)
	}
	dst = p.appendShort(dst, FlagCorrelationID, p.CorrelationID)
	dst = p.appendShort(dst, FlagReplyTo, p.ReplyTo)
	dst = p.appendShort(dst, FlagExpiration, p.Expiration)
	dst = p.appendShort(dst, FlagMessageID, p.MessageID)
	if p.Has(FlagTimestamp) {
		dst = binary.BigEndian.AppendUint64(dst, p.Timestamp)
	}
	dst = p.appendShort(dst, FlagType, p.Type)
	dst = p.appendShort(dst, FlagUserID, p.UserID)
	dst = p.appendShort(dst, FlagAppID, p.AppID)
	return p.appendShort(dst, FlagClusterID, p.ClusterID)
}

func (p *Properties) appendShort(dst []byte, flag uint16, v []byte) []byte {
	if p.Flags&flag == 0 {
		return dst
	}
	dst = append(dst, byte(len(v)))
	return append(dst, v...)
}

// Table decodes the header table; nil if there is none.
func (p *Properties) Table() (Table, error) {
	if !p.Has(FlagHeaders) {
		return nil, nil
	}
	return ParseTable(p.Headers)
}

// SetTable replaces the header table. An empty one is kept as an empty table.
func (p *Properties) SetTable(t Table) {
	p.Headers = AppendTable(nil, t)[4:]
	p.Flags |= FlagHeaders
}
