// Package persistence keeps the records of queues and the definitions on disk.
// It knows bytes, not messages: what a record means is its queue's business.
// It is the only package that knows Badger.
//
// A message is durable when the group commit it is part of has been synced;
// its receipt says so. See docs/persistence.md for the format and the reasons.
package persistence

import (
	"context"
	"errors"
	"iter"

	"github.com/leveretmq/leveret/message"
)

// A LogID names the log of one queue. Ids rise and are never used again, so
// that what is left on disk of a deleted queue can never be taken for another's.
type LogID uint32

// A Kind is a class of definitions: one namespace of keys.
type Kind byte

// The kinds of definitions. The values are part of the disk format.
const (
	VHosts           Kind = 'v'
	Exchanges        Kind = 'x'
	Queues           Kind = 'q'
	Bindings         Kind = 'd'
	Users            Kind = 'u'
	Permissions      Kind = 'p'
	TopicPermissions Kind = 't'
	Parameters       Kind = 'r' // policies, operator policies, limits, global parameters
)

// A Lane is one ordered sequence of a log. Queues with priorities use one lane
// for each; all others use lane 0. Ids rise over all lanes of a log together.
type Lane uint8

// A Record is one message as the store sees it. The store keeps references to
// the fields until the record is written or settled and never changes them.
type Record struct {
	ID       uint64 // from 1, rising within a log; gaps are fine
	Lane     Lane
	Time     int64 // when the broker took the message, Unix milliseconds
	Expires  int64 // Unix milliseconds; 0 is never
	Exchange string
	Key      string
	Header   []byte
	Extra    []byte // what the queue wants back besides; usually nil
	Body     []byte
	// Shared is non-nil if the same body goes to two or more durable logs
	// with one publish: the body is then stored once, in the chunk that has
	// these records. All of them carry the same pointer.
	Shared *SharedBody
	// Redelivered is set on Load after a restart if the message may have been
	// delivered before. It is ignored by Append.
	Redelivered bool
}

// A Definition is one change for Store.PutAll.
type Definition struct {
	Kind  Kind
	Key   string
	Value []byte // nil deletes
}

// A Store keeps logs and definitions. Its methods are safe for concurrent use.
type Store interface {
	// NewLog makes the log of a new queue. The caller records the id in the
	// queue's definition; a log whose id is in no definition is dropped by
	// Recovered.
	NewLog() (Log, error)
	// OpenLog opens a log that was there when the store was opened.
	OpenLog(id LogID) (Log, error)
	// Recovered ends the recovery after a start: logs that were not opened by
	// then belong to no queue any more and are dropped.
	Recovered() error

	// Together calls fn. What fn appends, to whatever logs, is taken for the same
	// round of commits; see Log.WriteAhead. Until fn returns no round begins, so fn
	// should append, settle and be done. What waits for a commit would wait for ever
	// there: Put, Delete, PutAll, Wait, Together itself, and any lock that others
	// hold while they wait for one of these. Load may wait for a commit, too.
	Together(fn func())

	// Put writes a definition; it is durable when Put returns.
	Put(kind Kind, key string, value []byte) error
	// Delete removes a definition, durably; a missing one is no error.
	Delete(kind Kind, key string) error
	// PutAll writes and deletes many definitions, in this order but not as one:
	// a crash may leave the first of them only. All are durable when it returns
	// nil; else it returns an error for each of them, nil for those that are. They
	// share commits, so that a thousand cost little more than one.
	PutAll(defs []Definition) []error
	// All lists the definitions of a kind by key order. The values may be kept. Of
	// what is changed meanwhile it has either state.
	All(kind Kind) iter.Seq2[string, []byte]

	// Wait blocks while more is uncommitted than the store's limit: publishers
	// call it after a publish, with no lock held.
	Wait(ctx context.Context) error
	// Health is what the store is like now, for alarms and metrics.
	Health() Health
	// Watch returns a channel that gets a value, without blocking, when Health
	// may have changed in Err, DiskLow or DiskFree.
	Watch() <-chan struct{}
	// Close commits what is pending and closes the store. Logs must not be
	// used any more, but that a Load under way is waited for, and a later one
	// of a store on disk fails with ErrClosed.
	Close() error
}

// A Log is the durable side of one queue. Its methods may be called with the
// queue's lock held: they take a short lock, buffer, and never wait for disk,
// but for Load.
type Log interface {
	ID() LogID
	// Append takes records in rising id order. When all of them are durable,
	// or were settled before they had to be, it releases r (which may be nil)
	// once, from any goroutine, perhaps before Append returns. If the store
	// has failed it calls r.Fail and then releases. recs may be reused after
	// the call; the bytes it points to may not.
	//
	// It returns false if the store had failed already: the log then has none of
	// the records. Those it took can be loaded even if the store fails later,
	// until the store is closed.
	Append(recs []Record, r *message.Receipt) (taken bool)
	// WriteAhead makes this a log of what is known of the records of other logs: of
	// all that one Together appends, its own records are durable first. It is
	// called once, before Append.
	WriteAhead()
	// Settle forgets records for good. Ids that the log does not hold are
	// ignored; order does not matter, ascending is fastest.
	Settle(ids []uint64)
	// SettleRange forgets all records of the lane with from <= id <= to
	// without reading them, and returns how many those were. An uncommitted
	// record counts.
	SettleRange(lane Lane, from, to uint64) int
	// Delivered notes that records with an id up to this one have been handed
	// to a consumer; after a restart those are loaded with Redelivered set. It
	// costs no write of its own: it travels with the next commit that has
	// something of this log, or with Close.
	Delivered(upTo uint64)
	// Load appends to dst the live records of a lane with id >= from, in order,
	// until their bodies and headers exceed maxBytes (but at least one) or
	// there are no more, and returns it. It reads what is pending too. The
	// records own their bytes.
	Load(lane Lane, from uint64, dst []Record, maxBytes int) ([]Record, error)
	// Holds says whether there is a live record with this id, committed or not. It
	// reads nothing.
	Holds(id uint64) bool
	// Durable says up to which id every live record of the log is committed:
	// a record with a higher id may still be only in memory. Queues drop
	// bodies from memory up to here.
	Durable() uint64
	// Lanes describes what the log holds, by lane, in order of lane; lanes
	// with nothing in them are left out. After OpenLog it says what was
	// recovered.
	Lanes() []LaneInfo
	// LastID is the highest id the log ever saw, 0 if none. After a crash it may be
	// lower, but not lower than that of a record that is still there, or than it was
	// at the last Close: what is missing up to it was settled.
	LastID() uint64
	// Drop deletes the log with all it holds. It does not wait: once the
	// definition that names it is gone, a crash does not bring it back.
	Drop()
}

// LaneInfo is what one lane of a log holds.
type LaneInfo struct {
	Lane  Lane
	Count int // live records
	// Bytes is the bytes of their bodies. It is exact but for the chunks of
	// which a part is settled: those count in proportion, as if their bodies
	// were of one size.
	Bytes int64
	First uint64
	Last  uint64
	// Earliest is no later than the expiry of any record, Unix milliseconds; 0
	// if none can expire. It may be that of a record settled since.
	Earliest int64
}

// A SharedBody ties together the records of one publish to several logs.
// The zero value is ready; make one per publish.
type SharedBody struct {
	state sharedState
}

// Health is the state of a store.
type Health struct {
	// Err is why the store has stopped for good: a failed write or sync. Since
	// then nothing is confirmed. It is nil while all is well.
	Err error
	// DiskLow says that free space is below DiskLimit: publishers must stop
	// until it is back.
	DiskLow bool
	// DiskFree and DiskLimit are in bytes; both 0 for a store that uses no disk.
	DiskFree, DiskLimit int64
	// DiskUsed is what the store's files take on disk, in bytes.
	DiskUsed int64
	// Live is the bytes of chunks that hold at least one live record.
	Live int64
	// Uncommitted is the bytes appended and not yet committed.
	Uncommitted int64
	// Commits and Records count group commits and the records they wrote.
	Commits, Records uint64
	// Latency says how long group commits took, with their sync, in nanoseconds.
	Latency message.Distribution
	// Synced is false if a confirm may leave before the sync (level relaxed).
	Synced bool
}

// Errors that callers tell apart with errors.Is.
var (
	// ErrLocked: another process uses the data directory.
	ErrLocked = errors.New("the data directory is in use by another broker")
	// ErrFormat: the data directory was written by a newer version.
	ErrFormat = errors.New("the data directory has a format that this version does not know")
	// ErrClosed: the store is closed.
	ErrClosed = errors.New("store closed")
)
