package stream

import (
	"encoding/json"
	"math"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
)

// settings are what is in force for a stream.
type settings struct {
	maxBytes    int64 // of all segments together; none
	maxAge      int64 // of a segment's youngest message, in milliseconds; none
	segmentSize int64 // from which a segment is closed, in bytes
	filterSize  int   // of Bloom filters, in bytes
}

const (
	none = -1

	// RabbitMQ 4.0: the defaults.
	defaultSegmentSize = 500_000_000
	defaultFilterSize  = 16
)

// effective joins arguments and policy. What the policy says wins (RabbitMQ
// 4.0); a size of 0 is the default.
func effective(a queue.Arguments, p queue.Policy) settings {
	return settings{
		maxBytes:    integer(a, p, "max-length-bytes", none, math.MaxInt64),
		maxAge:      maxAge(a, p),
		segmentSize: sizeOf(a, p, "stream-max-segment-size-bytes", defaultSegmentSize, math.MaxInt64),
		filterSize:  int(sizeOf(a, p, "stream-filter-size-bytes", defaultFilterSize, math.MaxUint8)),
	}
}

// integer is the value of a policy key, or of the argument that has the same
// name after x-.
func integer(a queue.Arguments, p queue.Policy, key string, unset, limit int64) int64 {
	if v, ok := p.Definition[key]; ok {
		if n, ok := jsonInteger(v); ok && n >= 0 && n <= limit {
			return n
		}
	}
	v, _ := a.Table.Lookup("x-" + key)
	if n, ok := frames.Integer(v); ok && n >= 0 && n <= limit {
		return n
	}
	return unset
}

func sizeOf(a queue.Arguments, p queue.Policy, key string, unset, limit int64) int64 {
	if n := integer(a, p, key, unset, limit); n > 0 {
		return n
	}
	return unset
}

func maxAge(a queue.Arguments, p queue.Policy) int64 {
	argument, _ := a.Table.Lookup("x-max-age")
	for _, v := range []any{p.Definition["max-age"], argument} {
		s, _ := v.(string)
		if ms, ok := parseAge(s); ok {
			return ms
		}
	}
	return none
}

// jsonInteger is the value of a JSON number without a fraction.
func jsonInteger(v any) (int64, bool) {
	switch v := v.(type) {
	case float64:
		return int64(v), v == math.Trunc(v) && math.Abs(v) < 1<<63
	case json.Number:
		n, err := v.Int64()
		return n, err == nil
	case int:
		return int64(v), true
	case int64:
		return v, true
	}
	return 0, false
}
