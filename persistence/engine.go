package persistence

import "errors"

// A write is one change of a transaction.
type write struct {
	key  []byte
	val  []byte
	meta byte // 0 or metaDead
	del  bool
}

// An engine is the ordered store of keys under the committer. There is one, on
// Badger; tests put faults in front of it.
type engine interface {
	// commit writes all or nothing, in one transaction, and then calls done
	// from any goroutine. Keys and values must not change until then. It is
	// called by one goroutine, and not again before done.
	commit(w []write, done func(error))
	// get calls fn with the value of a key; the bytes are only good inside fn,
	// which must be quick: it holds up the rotation and the removal of files. It
	// must not call get. It returns errNoKey if there is none.
	get(key []byte, fn func(val []byte, meta byte) error) error
	// scan calls fn for all keys with a prefix, in order; the key is only good
	// inside fn, and value reads the value.
	scan(prefix []byte, fn func(it item) error) error
	limits() limits
	// reclaim returns the space of value files of which at least this share is dead.
	reclaim(share float64) error
	// sync makes durable what a commit without sync has written.
	sync() error
	// advise tells the system how the engine's files are used. It is called
	// after rotated has said so.
	advise()
	rotated() bool
	// release takes the pages of finished files out of the process's memory.
	release()
	// used is what the files take on disk, in bytes.
	used() int64
	// rests reports whether nothing is being written by the engine of itself: what
	// was committed is flushed as far as it has to be, and no compaction is due.
	rests() bool
	close() error
}

// An item is one key of a scan. key and meta cost nothing, value may read the disk.
type item struct {
	key   []byte
	meta  byte
	size  int64 // of the value, about
	value func(fn func(val []byte) error) error
}

// limits of a transaction; sizes in bytes.
type limits struct {
	entries int
	bytes   int64 // of all values; more could outgrow a file's mapping
	inline  int   // of keys, values below threshold and pointers to others
	value   int   // a value of this or more goes to the value log
	pointer int   // what a value in the value log counts as inline

	memtable int64 // of one memtable
}

// errNoKey: there is no such key.
var errNoKey = errors.New("no such key")
