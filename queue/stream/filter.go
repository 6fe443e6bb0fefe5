package stream

import "github.com/leveretmq/leveret/frames"

// bloomHashes is how many bits of a Bloom filter a value sets. It is a part of
// the disk format, as is hash.
const bloomHashes = 3

// hash spreads a filter value over 64 bits: FNV-1a, and a mix of its bits since
// short values leave the high ones alike.
func hash[T string | []byte](value T) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(value) {
		h = (h ^ uint64(value[i])) * 1099511628211
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	return h ^ h>>33
}

// bloomAdd adds a hash to a Bloom filter, whose length is not 0.
func bloomAdd(bloom []byte, h uint64) {
	for range bloomHashes {
		bit := uint32(h) % uint32(8*len(bloom))
		bloom[bit/8] |= 1 << (bit % 8)
		h += h>>32 | 1
	}
}

// bloomHas says whether a hash may have been added.
func bloomHas(bloom []byte, h uint64) bool {
	for range bloomHashes {
		bit := uint32(h) % uint32(8*len(bloom))
		if bloom[bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
		h += h>>32 | 1
	}
	return true
}

// A filter says which chunks a reader wants. It is for whole chunks: a reader
// gets everything in one that may have something for it (RabbitMQ 4.0). nil
// wants all.
type filter struct {
	values     []uint64 // their hashes
	unfiltered bool     // chunks with a message that has no value, too
}

// parseFilter reads x-stream-filter, a string or an array of strings, and
// x-stream-match-unfiltered. Values of other types mean nothing; the empty one is
// none, and to want nothing else is to want what has none (RabbitMQ 4.0).
func parseFilter(t frames.Table) *filter {
	values, _ := t.Lookup("x-stream-filter")
	list, ok := values.([]any)
	if !ok {
		list = []any{values}
	}
	f := &filter{}
	empty := false
	for _, v := range list {
		switch s, ok := v.(string); {
		case !ok:
		case s == "":
			empty = true
		default:
			f.values = append(f.values, hash(s))
		}
	}
	if len(f.values) == 0 {
		if !empty {
			return nil
		}
		f.unfiltered = true
		return f
	}
	v, _ := t.Lookup("x-stream-match-unfiltered")
	f.unfiltered, _ = v.(bool)
	return f
}

// wants says whether the chunk may have something for the reader.
func (f *filter) wants(c *chunk) bool {
	switch {
	case f == nil, f.unfiltered && c.flags&unfiltered != 0:
		return true
	case len(c.bloom) == 0:
		return false
	}
	for _, h := range f.values {
		if bloomHas(c.bloom, h) {
			return true
		}
	}
	return false
}
