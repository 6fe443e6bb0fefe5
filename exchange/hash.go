package exchange

import "github.com/leveretmq/leveret/message"

// A hash is FNV-1a, spread at the end. It is the same in every process, so that
// a restart moves no message to another queue.
type hash uint64

const emptyHash hash = 0xcbf29ce484222325

func (h hash) octet(b byte) hash { return (h ^ hash(b)) * 0x100000001b3 }

func (h hash) bytes(b []byte) hash {
	for _, c := range b {
		h = h.octet(c)
	}
	return h
}

func (h hash) string(s string) hash {
	for i := range len(s) {
		h = h.octet(s[i])
	}
	return h
}

// sum makes every bit of the result depend on all of the input.
func (h hash) sum() uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return uint64(h ^ h>>33)
}

// keysHash is the hash of all the message's routing keys.
func keysHash(m *message.Message) hash {
	h := emptyHash
	for i := range keyCount(m) {
		if i > 0 {
			h = h.octet(0)
		}
		h = h.string(keyAt(m, i))
	}
	return h
}
