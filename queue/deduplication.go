package queue

import (
	"strconv"

	"github.com/leveretmq/leveret/frames"
)

// The arguments about duplicates are not RabbitMQ's: what would have no effect is
// refused. A queue that is there already keeps what an older version has taken.

// onlyWithDeduplication is what is wrong with an argument that says how to drop
// duplicates, of a queue that drops none.
const onlyWithDeduplication = `"only with x-message-deduplication"`

// dropsDuplicates says whether the declaration has x-message-deduplication=true.
func dropsDuplicates(t frames.Table) bool {
	on, _ := t.Lookup("x-message-deduplication")
	return on == true
}

// deduplication is the header by which a queue with these arguments drops
// duplicates of what it holds, or "". With a size or a time, other ids are
// remembered than those of messages in the queue, which is not the queue's work.
func deduplication(t frames.Table, queueType string) string {
	if !dropsDuplicates(t) || queueType == Stream {
		return ""
	}
	for _, name := range [2]string{"x-cache-size", "x-cache-ttl"} {
		if _, ok := t.Lookup(name); ok {
			return ""
		}
	}
	if v, ok := t.Lookup("x-deduplication-header"); ok {
		name, _ := v.(string)
		return name
	}
	return "x-deduplication-header"
}

func parseDeduplication(p *parser, v any) string {
	if _, ok := v.(bool); !ok && !p.there {
		return unacceptable(v)
	}
	return ""
}

func parseDeduplicationHeader(p *parser, v any) string {
	s, ok := v.(string)
	switch {
	case p.there:
	case !dropsDuplicates(p.table):
		return onlyWithDeduplication
	case !ok:
		return unacceptable(v)
	case s == "":
		return "invalid_deduplication_header"
	}
	return ""
}

// parseCacheNumber takes an integer of 1 to limit, or its digits as the community
// plug-in does; a limit of 0 is none.
func parseCacheNumber(p *parser, v any, limit int64) string {
	switch {
	case p.there:
		return ""
	case !dropsDuplicates(p.table):
		return onlyWithDeduplication
	}
	if s, ok := v.(string); ok {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			v = n
		}
	}
	var n int64
	return positive(v, limit, &n)
}

// parseCachePersistence takes memory only: what a queue has seen is not stored.
func parseCachePersistence(p *parser, v any) string {
	switch {
	case p.there:
		return ""
	case !dropsDuplicates(p.table):
		return onlyWithDeduplication
	}
	return oneOf("unsupported cache persistence '%s'", "memory")(p, v)
}
