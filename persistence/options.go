package persistence

import (
	"time"

	"go.uber.org/zap"
)

// A Profile sizes the store's buffers and files.
type Profile int

const (
	// Tiny suits small machines and idle brokers: memtables of 1 MiB, value-log
	// files of 4 MiB.
	Tiny Profile = iota
	// Server suits a machine of its own: memtables of 4 MiB, value-log files of
	// 16 MiB. Bigger groups fit a commit.
	Server
)

// A Durability says when a record counts as durable.
type Durability int

const (
	// Synced: when its commit has been synced to the disk. It survives a power cut.
	Synced Durability = iota
	// Relaxed: when its commit has been written to the operating system. It
	// survives the death of the process; a power cut may take the last 200 ms.
	Relaxed
)

// Options say how to open a store. Only Dir is required.
type Options struct {
	// Dir is the directory of the store; it is made if it is missing. Nothing
	// else may be kept in it.
	Dir string
	// Profile is Tiny unless set.
	Profile Profile
	// Durability is Synced unless set.
	Durability Durability
	// Log is silent if nil.
	Log *zap.Logger
	// DiskLimit is the free space below which Health.DiskLow is set, in bytes.
	// 0 is 100 MB for Tiny and 1 GiB for Server.
	DiskLimit int64
	// MaxUncommitted is how much may be appended and not yet committed before
	// Wait blocks, in bytes. 0 is 16 MiB.
	MaxUncommitted int64
	// Linger delays a commit that nobody waits behind, so that more records
	// share it. 0 commits at once; under load the running sync is linger enough.
	Linger time.Duration
	// LockWait is how long Open waits for another process to let go of the
	// directory. 0 is 3 s, a negative value does not wait.
	LockWait time.Duration

	// wrap puts a layer over the engine; tests inject faults with it.
	wrap func(engine) engine
	// diskFree is replaced by tests.
	diskFree func(dir string) (int64, error)
	// gcStep and mergeTiny override the profile's.
	gcStep    int64
	mergeTiny int
}

const (
	defaultUncommitted = 16 << 20
	defaultLockWait    = 3 * time.Second
)

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.MaxUncommitted == 0 {
		o.MaxUncommitted = defaultUncommitted
	}
	if o.LockWait == 0 {
		o.LockWait = defaultLockWait
	}
	if o.diskFree == nil {
		o.diskFree = diskFree
	}
	p := o.Profile.sizes()
	if o.DiskLimit == 0 {
		o.DiskLimit = p.diskLimit
	}
	if o.gcStep == 0 {
		o.gcStep = p.gcStep
	}
	if o.mergeTiny == 0 {
		o.mergeTiny = mergeTiny
	}
	return o
}

// sizes are what a profile stands for; all in bytes.
type sizes struct {
	memtable  int64 // of the tree's write buffer
	memtables int   // how many of them may wait to be flushed
	vlog      int64 // of a value-log file
	chunk     int   // of a chunk's records
	group     int   // of a transaction's values
	gcStep    int64 // of dead chunks until a reclaim pass
	diskLimit int64 // of free space; below it publishers are stopped
	floor     int64 // of free space; below it nothing is written, see Options.floor
	verify    int64 // of the newest chunks, checked at Open
}

func (p Profile) sizes() sizes {
	if p == Server {
		return sizes{
			memtable: 4 << 20, memtables: 2, vlog: 16 << 20, chunk: 1 << 20, group: 4 << 20,
			gcStep: 256 << 20, diskLimit: 1 << 30, floor: 64 << 20, verify: 16 << 20,
		}
	}
	return sizes{
		memtable: 1 << 20, memtables: 1, vlog: 4 << 20, chunk: 512 << 10, group: 1 << 20,
		gcStep: 8 << 20, diskLimit: 100e6, floor: 16 << 20, verify: 4 << 20,
	}
}
