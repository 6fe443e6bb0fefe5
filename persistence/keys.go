package persistence

import "encoding/binary"

// The keys of the store. Ids are big-endian, so that chunks iterate by age.
//
//	f               format version
//	h               head record
//	c chunk(8)      directory of a chunk, with its records if it is small; or a dead marker
//	v chunk(8) n(4) part n of the records of a chunk
//	a chunk(8)      which records of a chunk are settled
//	d kind key      a definition
//	e kind n(2) key fragment n of a definition too long for one value
//	l n(4)          value n of the list of last ids, see last.go
//	z n             padding, see keeper.go
const (
	keyFormat     = 'f'
	keyHead       = 'h'
	keyChunk      = 'c'
	keyPart       = 'v'
	keyAcks       = 'a'
	keyDefinition = 'd'
	keyFragment   = 'e'
	keyLastIDs    = 'l'
	keyPadding    = 'z'
)

// metaDead marks the value of a chunk key as a dead marker: the chunk is gone,
// whatever else of it may still be found. A marker is used instead of a
// deletion because a deleted key can come back after value-log collection.
const metaDead = 1

func appendChunkKey(b []byte, prefix byte, id uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b, prefix), id)
}

func appendPartKey(b []byte, id uint64, part int) []byte {
	return binary.BigEndian.AppendUint32(appendChunkKey(b, keyPart, id), uint32(part))
}

func appendDefinitionKey(b []byte, kind Kind, key string) []byte {
	return append(append(b, keyDefinition, byte(kind)), key...)
}

func appendFragmentKey(b []byte, kind Kind, n int, key string) []byte {
	b = append(b, keyFragment, byte(kind))
	return append(binary.BigEndian.AppendUint16(b, uint16(n)), key...)
}

func appendListKey(b []byte, n int) []byte {
	return binary.BigEndian.AppendUint32(append(b, keyLastIDs), uint32(n))
}

// chunkOf is the id in a chunk, part or ack key; ok is false for a key that is
// none of ours.
func chunkOf(key []byte) (id uint64, ok bool) {
	if len(key) < 9 {
		return 0, false
	}
	return binary.BigEndian.Uint64(key[1:]), true
}
