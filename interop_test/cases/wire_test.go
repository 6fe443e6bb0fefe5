package cases_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Frame types (spec §4.2.3).
const (
	frameMethod    = 1
	frameHeader    = 2
	frameBody      = 3
	frameHeartbeat = 8
)

// A method is a class and a method of it.
type method struct{ class, id uint16 }

var (
	connectionStart     = method{10, 10}
	connectionStartOk   = method{10, 11}
	connectionTune      = method{10, 30}
	connectionTuneOk    = method{10, 31}
	connectionOpen      = method{10, 40}
	connectionOpenOk    = method{10, 41}
	connectionClose     = method{10, 50}
	connectionCloseOk   = method{10, 51}
	connectionBlocked   = method{10, 60}
	connectionUnblocked = method{10, 61}
	channelOpen         = method{20, 10}
	channelOpenOk       = method{20, 11}
	channelFlow         = method{20, 20}
	channelFlowOk       = method{20, 21}
	channelClose        = method{20, 40}
	channelCloseOk      = method{20, 41}
	accessRequest       = method{30, 10}
	exchangeDeclare     = method{40, 10}
	exchangeDelete      = method{40, 20}
	exchangeBind        = method{40, 30}
	exchangeUnbind      = method{40, 40}
	queueDeclare        = method{50, 10}
	queueDeclareOk      = method{50, 11}
	queueBind           = method{50, 20}
	queuePurge          = method{50, 30}
	queuePurgeOk        = method{50, 31}
	queueDelete         = method{50, 40}
	queueDeleteOk       = method{50, 41}
	queueUnbind         = method{50, 50}
	basicQos            = method{60, 10}
	basicConsume        = method{60, 20}
	basicConsumeOk      = method{60, 21}
	basicCancel         = method{60, 30}
	basicCancelOk       = method{60, 31}
	basicPublish        = method{60, 40}
	basicReturn         = method{60, 50}
	basicDeliver        = method{60, 60}
	basicGet            = method{60, 70}
	basicGetOk          = method{60, 71}
	basicGetEmpty       = method{60, 72}
	basicAck            = method{60, 80}
	basicReject         = method{60, 90}
	basicRecoverAsync   = method{60, 100}
	basicRecover        = method{60, 110}
	basicNack           = method{60, 120}
	confirmSelect       = method{85, 10}
	txSelect            = method{90, 10}
	txCommit            = method{90, 20}
	txRollback          = method{90, 30}
)

// A rawFrame is one frame as it came.
type rawFrame struct {
	kind    byte
	channel uint16
	payload []byte
}

func (f rawFrame) method() method {
	if f.kind != frameMethod || len(f.payload) < 4 {
		return method{}
	}
	return method{binary.BigEndian.Uint16(f.payload), binary.BigEndian.Uint16(f.payload[2:])}
}

func (f rawFrame) String() string {
	return fmt.Sprintf("frame type %d channel %d payload %q", f.kind, f.channel, f.payload)
}

func frame(kind byte, channel uint16, payload []byte) []byte {
	return slices.Concat([]byte{kind}, u16(channel), u32(uint32(len(payload))), payload, []byte{0xCE})
}

func methodFrame(channel uint16, m method, args ...[]byte) []byte {
	return frame(frameMethod, channel, slices.Concat(u16(m.class), u16(m.id), slices.Concat(args...)))
}

// header is the payload of a content header; props are flags and values.
func header(size uint64, props []byte) []byte {
	return slices.Concat(u16(60), u16(0), binary.BigEndian.AppendUint64(nil, size), props)
}

func u8(v byte) []byte    { return []byte{v} }
func u16(v uint16) []byte { return binary.BigEndian.AppendUint16(nil, v) }
func u32(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }
func u64(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

func short(s string) []byte { return append([]byte{byte(len(s))}, s...) }
func long(s string) []byte  { return append(u32(uint32(len(s))), s...) }

// A table is a field table in the order of the wire: name, value, name, value.
// The type of a value chooses its tag: bool t, int8 b, uint8 B, int16 s, uint16
// u, int and int32 I, uint32 i, int64 l, uint64 L, float32 f, float64 d,
// string S, []byte x, time.Time T, table F, array A, nil V, decimal D. A
// wire is the tag and the bytes themselves.
type (
	table   []any
	array   []any
	decimal struct {
		scale byte
		value uint32
	}
	wire string
)

func (t table) encode() []byte {
	var b []byte
	for i := 0; i+1 < len(t); i += 2 {
		b = append(b, short(t[i].(string))...)
		b = append(b, encodeValue(t[i+1])...)
	}
	return append(u32(uint32(len(b))), b...)
}

func encodeValue(v any) []byte {
	switch v := v.(type) {
	case nil:
		return []byte("V")
	case bool:
		if v {
			return []byte("t\x01")
		}
		return []byte("t\x00")
	case int8:
		return []byte{'b', byte(v)}
	case uint8:
		return []byte{'B', v}
	case int16:
		return append([]byte("s"), u16(uint16(v))...)
	case uint16:
		return append([]byte("u"), u16(v)...)
	case int:
		return append([]byte("I"), u32(uint32(v))...)
	case int32:
		return append([]byte("I"), u32(uint32(v))...)
	case uint32:
		return append([]byte("i"), u32(v)...)
	case int64:
		return append([]byte("l"), u64(uint64(v))...)
	case uint64:
		return append([]byte("L"), u64(v)...)
	case float32:
		return append([]byte("f"), u32(math.Float32bits(v))...)
	case float64:
		return append([]byte("d"), u64(math.Float64bits(v))...)
	case string:
		return append([]byte("S"), long(v)...)
	case []byte:
		return append([]byte("x"), long(string(v))...)
	case time.Time:
		return append([]byte("T"), u64(uint64(v.Unix()))...)
	case decimal:
		return append([]byte{'D', v.scale}, u32(v.value)...)
	case table:
		return append([]byte("F"), v.encode()...)
	case array:
		var b []byte
		for _, e := range v {
			b = append(b, encodeValue(e)...)
		}
		return append([]byte("A"), long(string(b))...)
	case wire:
		return []byte(v)
	}
	panic(fmt.Sprintf("no field value: %T", v))
}

// A reader takes fields off a payload.
type reader struct{ b []byte }

func (r *reader) bytes(n int) []byte {
	if n > len(r.b) {
		panic(fmt.Sprintf("%d bytes wanted of %q", n, r.b))
	}
	head := r.b[:n]
	r.b = r.b[n:]
	return head
}

func (r *reader) u8() byte      { return r.bytes(1)[0] }
func (r *reader) u16() uint16   { return binary.BigEndian.Uint16(r.bytes(2)) }
func (r *reader) u32() uint32   { return binary.BigEndian.Uint32(r.bytes(4)) }
func (r *reader) u64() uint64   { return binary.BigEndian.Uint64(r.bytes(8)) }
func (r *reader) short() string { return string(r.bytes(int(r.u8()))) }
func (r *reader) long() string  { return string(r.bytes(int(r.u32()))) }

// table reads a field table as text: {name:value name:value}, each value with
// its tag, so that tests see the type too.
func (r *reader) table() string {
	in := reader{r.bytes(int(r.u32()))}
	var parts []string
	for len(in.b) > 0 {
		name := in.short()
		parts = append(parts, name+":"+in.value())
	}
	return "{" + strings.Join(parts, " ") + "}"
}

func (r *reader) value() string {
	switch tag := r.u8(); tag {
	case 't':
		return fmt.Sprint(r.u8() != 0)
	case 'b':
		return fmt.Sprintf("b%d", int8(r.u8()))
	case 'B':
		return fmt.Sprintf("B%d", r.u8())
	case 's':
		return fmt.Sprintf("s%d", int16(r.u16()))
	case 'u':
		return fmt.Sprintf("u%d", r.u16())
	case 'I':
		return fmt.Sprintf("I%d", int32(r.u32()))
	case 'i':
		return fmt.Sprintf("i%d", r.u32())
	case 'l':
		return fmt.Sprintf("l%d", int64(r.u64()))
	case 'L':
		return fmt.Sprintf("L%d", r.u64())
	case 'f':
		return fmt.Sprintf("f%g", math.Float32frombits(r.u32()))
	case 'd':
		return fmt.Sprintf("d%g", math.Float64frombits(r.u64()))
	case 'D':
		return fmt.Sprintf("D%d/%d", r.u8(), r.u32())
	case 'S':
		return fmt.Sprintf("%q", r.long())
	case 'x':
		return fmt.Sprintf("x%q", r.long())
	case 'T':
		return fmt.Sprintf("T%d", r.u64())
	case 'V':
		return "void"
	case 'F':
		return r.table()
	case 'A':
		in := reader{r.bytes(int(r.u32()))}
		var parts []string
		for len(in.b) > 0 {
			parts = append(parts, in.value())
		}
		return "[" + strings.Join(parts, " ") + "]"
	default:
		panic(fmt.Sprintf("field tag %q", tag))
	}
}

// Props are the properties of a message; nil fields are not sent. Raw, if not
// nil, is sent as it is: flags and values.
type props struct {
	contentType, contentEncoding         any // string
	headers                              table
	mode, priority                       any // int
	correlation, replyTo, expiration, id any // string
	timestamp                            any // uint64
	kind, user, app, cluster             any // string
	raw                                  []byte
}

func (p props) encode() []byte {
	if p.raw != nil {
		return p.raw
	}
	var flags uint16
	var b []byte
	bit := uint16(1 << 15)
	add := func(present bool, encoded func() []byte) {
		if present {
			flags |= bit
			b = append(b, encoded()...)
		}
		bit >>= 1
	}
	text := func(v any) { add(v != nil, func() []byte { return short(v.(string)) }) }
	octet := func(v any) { add(v != nil, func() []byte { return u8(byte(v.(int))) }) }
	text(p.contentType)
	text(p.contentEncoding)
	add(p.headers != nil, p.headers.encode)
	octet(p.mode)
	octet(p.priority)
	text(p.correlation)
	text(p.replyTo)
	text(p.expiration)
	text(p.id)
	add(p.timestamp != nil, func() []byte { return u64(p.timestamp.(uint64)) })
	text(p.kind)
	text(p.user)
	text(p.app)
	text(p.cluster)
	return append(u16(flags), b...)
}

var propNames = []string{"content_type", "content_encoding", "headers", "mode", "priority", "correlation",
	"reply_to", "expiration", "id", "timestamp", "type", "user", "app", "cluster"}

// propsText reads encoded properties: name=value name=value.
func propsText(b []byte) string {
	if len(b) < 2 {
		return "none"
	}
	r := reader{b}
	flags := r.u16()
	var parts []string
	for i, name := range propNames {
		if flags&(1<<(15-i)) == 0 {
			continue
		}
		var value string
		switch name {
		case "headers":
			value = r.table()
		case "mode", "priority":
			value = fmt.Sprint(r.u8())
		case "timestamp":
			value = fmt.Sprint(r.u64())
		default:
			value = r.short()
		}
		parts = append(parts, name+"="+value)
	}
	return strings.Join(parts, " ")
}
