// Package frames is the wire of AMQP 0-9-1: frames, methods, field tables,
// content headers, reply codes and errors. It parses in place and appends to
// the caller's buffer; it does no I/O and keeps no state.
package frames

import "encoding/binary"

// Frame types (spec §4.2.3).
const (
	MethodFrame    = 1
	HeaderFrame    = 2
	BodyFrame      = 3
	HeartbeatFrame = 8
)

const (
	frameEnd = 0xCE
	// Overhead is what a frame adds to its payload, in bytes: type, channel,
	// size and the end octet.
	Overhead = 8
	// MinFrameMax is the smallest frame-max that may be negotiated, in bytes
	// (spec §4.2.3).
	MinFrameMax = 4096
)

// ProtocolHeader is what a client sends first, and what it gets back if it sent
// anything else (spec §4.2.2).
const ProtocolHeader = "AMQP\x00\x00\x09\x01"

// A Frame is one frame as it stands in the read buffer.
type Frame struct {
	Type    byte
	Channel uint16
	Payload []byte // aliases the buffer it was parsed from
}

// Parse cuts the first frame off b without copying: f.Payload aliases b. It
// returns n == 0 when b holds only part of a frame, and a hard Error for bytes
// that can never become a frame. max is the negotiated frame-max in bytes;
// RabbitMQ 4.0 accepts a payload of that size, so the overhead is tolerated.
func Parse(b []byte, max uint32) (f Frame, n int, err error) {
	if len(b) < 7 {
		return Frame{}, 0, nil
	}
	size := binary.BigEndian.Uint32(b[3:])
	if size > max {
		return Frame{}, 0, frameError(b[0], nil, "{frame_too_large,%d,%d}", size, max-Overhead)
	}
	end := 7 + int(size)
	if len(b) <= end {
		return Frame{}, 0, nil
	}
	f = Frame{Type: b[0], Channel: binary.BigEndian.Uint16(b[1:]), Payload: b[7:end:end]}
	if b[end] != frameEnd {
		return Frame{}, 0, frameError(f.Type, f.Payload, "{invalid_frame_end_marker,%d}", b[end])
	}
	if !f.known() {
		return Frame{}, 0, frameError(f.Type, f.Payload, "unknown_frame")
	}
	return f, end + 1, nil
}

// known says whether it is a frame of the protocol: RabbitMQ 4.0 knows no method
// without its id, and no content header without what comes before the properties.
func (f *Frame) known() bool {
	switch f.Type {
	case MethodFrame:
		return len(f.Payload) >= 4
	case HeaderFrame:
		return len(f.Payload) >= 12
	}
	return f.Type == BodyFrame || f.Type == HeartbeatFrame
}

// begin appends a frame's first seven bytes with a size to be filled in by end.
func begin(dst []byte, typ byte, channel uint16) []byte {
	return append(dst, typ, byte(channel>>8), byte(channel), 0, 0, 0, 0)
}

// end fills in the size of the frame that began at start and closes it.
func end(dst []byte, start int) []byte {
	binary.BigEndian.PutUint32(dst[start+3:], uint32(len(dst)-start-7))
	return append(dst, frameEnd)
}

// AppendHeartbeat appends a heartbeat frame.
func AppendHeartbeat(dst []byte) []byte {
	return append(dst, HeartbeatFrame, 0, 0, 0, 0, 0, 0, frameEnd)
}

// AppendContentHeader appends the content header frame of class basic:
// properties is the property block, size the body's size in bytes.
func AppendContentHeader(dst []byte, channel uint16, size uint64, properties []byte) []byte {
	n := uint32(len(properties) + 12)
	dst = append(dst, HeaderFrame, byte(channel>>8), byte(channel),
		byte(n>>24), byte(n>>16), byte(n>>8), byte(n), 0, ClassBasic, 0, 0)
	dst = binary.BigEndian.AppendUint64(dst, size)
	dst = append(dst, properties...)
	return append(dst, frameEnd)
}

// AppendBodyStart appends the first seven bytes of a body frame whose payload,
// n bytes, and end octet the caller writes itself.
func AppendBodyStart(dst []byte, channel uint16, n int) []byte {
	return append(dst, BodyFrame, byte(channel>>8), byte(channel), byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

// AppendBodyEnd appends the end octet of a body frame.
func AppendBodyEnd(dst []byte) []byte { return append(dst, frameEnd) }

// AppendBody appends the body frames of a message; none of them is larger
// than frameMax with its overhead. An empty body has no frame.
func AppendBody(dst []byte, channel uint16, body []byte, frameMax uint32) []byte {
	limit := int(frameMax) - Overhead
	for len(body) > 0 {
		n := min(len(body), limit)
		dst = AppendBodyStart(dst, channel, n)
		dst = append(dst, body[:n]...)
		dst = append(dst, frameEnd)
		body = body[n:]
	}
	return dst
}

// ParseContentHeader reads a content header frame's payload. properties
// aliases it.
func ParseContentHeader(p []byte) (class, weight uint16, size uint64, properties []byte, ok bool) {
	if len(p) < 14 {
		return 0, 0, 0, nil, false
	}
	return binary.BigEndian.Uint16(p), binary.BigEndian.Uint16(p[2:]), binary.BigEndian.Uint64(p[4:]), p[12:], true
}
