package stream

import (
	"math"
	"strconv"
	"time"

	"github.com/leveretmq/leveret/frames"
)

// A start is where a reader wants to begin.
type start struct {
	kind   startKind
	offset uint64 // of kind atOffset
	time   int64  // of kind atTime, Unix milliseconds
}

type startKind uint8

const (
	atNext   startKind = iota // with what is published from now on
	atFirst                   // with the oldest message
	atLast                    // with the youngest chunk
	atOffset                  // with this offset, or the oldest message if that is gone
	atTime                    // with the first chunk written at this time or later
)

// parseStart reads x-stream-offset: first, last, next, an offset, a timestamp or
// an age like 5m. now is in Unix milliseconds. The error is for the client.
func parseStart(t frames.Table, now int64, resource string) (start, error) {
	v, ok := t.Lookup(offsetName)
	if !ok {
		return start{kind: atNext}, nil
	}
	switch v := v.(type) {
	case string:
		if s, ok := parseStartText(v, now); ok {
			return s, nil
		}
	case frames.Timestamp:
		if v > math.MaxInt64/1000 {
			return start{kind: atNext}, nil
		}
		return start{kind: atTime, time: int64(v) * 1000}, nil
	default:
		if n, ok := frames.Integer(v); ok {
			return start{kind: atOffset, offset: uint64(max(n, 0))}, nil
		}
	}
	// RabbitMQ 4.0 closes with 541 for these; the text says what is wrong.
	return start{}, frames.Errorf(frames.PreconditionFailed, "invalid arg '%s' for %s: {invalid_stream_offset_arg,{%s,%s}}",
		offsetName, resource, frames.TypeName(v), frames.Term(v))
}

func parseStartText(s string, now int64) (start, bool) {
	switch s {
	case "first":
		return start{kind: atFirst}, true
	case "last":
		return start{kind: atLast}, true
	case "next":
		return start{kind: atNext}, true
	}
	age, ok := parseAge(s)
	return start{kind: atTime, time: max(0, now-age)}, ok
}

// parseAge reads a count of at least 1 and a unit: Y, M, D, h, m or s, where a
// year has 365 days and a month 30 (RabbitMQ 4.0). The result is in
// milliseconds; what is too large is the largest.
func parseAge(s string) (ms int64, ok bool) {
	if len(s) < 2 {
		return 0, false
	}
	const day = 24 * time.Hour
	var unit time.Duration
	switch s[len(s)-1] {
	case 'Y':
		unit = 365 * day
	case 'M':
		unit = 30 * day
	case 'D':
		unit = day
	case 'h':
		unit = time.Hour
	case 'm':
		unit = time.Minute
	case 's':
		unit = time.Second
	}
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 63)
	if unit == 0 || err != nil || n == 0 {
		return 0, false
	}
	if n > math.MaxInt64/uint64(unit.Milliseconds()) {
		return math.MaxInt64, true
	}
	return int64(n) * unit.Milliseconds(), true
}
