package persistence

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"go.uber.org/zap"
)

// A badgerEngine is the engine on Badger, in managed mode: the committer gives
// the timestamps, so that a read need not wait for the commit in progress.
type badgerEngine struct {
	db    *badger.DB
	dir   string
	lim   limits
	log   *badgerLog
	files fileWatch
	ts    uint64       // of the last transaction; owned by the committer
	gate  sync.RWMutex // see reclaim
	// reading is held by get, and against it while a value file is removed.
	reading sync.RWMutex
}

var _ engine = (*badgerEngine)(nil)

// valueThreshold is the size, in bytes, from which values go to the value log.
// With less there, trickles fill the tree; with more, its compactions cost.
const valueThreshold = 1 << 10

func openBadger(o Options, dir string) (*badgerEngine, error) {
	if err := sweepEmptyFiles(dir); err != nil {
		return nil, err
	}
	if err := checkManifest(dir, o.Log); err != nil {
		return nil, err
	}
	warnTorn(dir, o.Log)
	e := &badgerEngine{dir: dir, log: &badgerLog{log: o.Log}}
	memtable := o.Profile.sizes().memtable
	if left, err := hasMemtables(dir); err != nil {
		return nil, err
	} else if left {
		memtable = max(memtable, Server.sizes().memtable)
	}
	db, err := badger.OpenManaged(badgerOptions(o, dir, memtable, e.log))
	if err != nil {
		return nil, damaged(dir, err)
	}
	e.db = db
	e.ts = db.MaxVersion()
	// A margin of an eighth: Badger counts a few bytes of its own.
	e.lim = limits{
		entries: int(db.MaxBatchCount()) * 7 / 8,
		bytes:   2 * int64(o.Profile.sizes().group),
		inline:  int(db.MaxBatchSize()) * 7 / 8,
		value:   valueThreshold,
		pointer: 12,

		memtable: memtable,
	}
	e.files.dir = dir
	return e, nil
}

// badgerOptions are those of a directory. The memtables that a crash has left are read
// into memory again, and Badger 4.9 ends the process if one is larger than they may be
// now: as large as those of any profile must fit.
func badgerOptions(o Options, dir string, memtable int64, log badger.Logger) badger.Options {
	p := o.Profile.sizes()
	b := badger.DefaultOptions(dir)
	b.SyncWrites = o.Durability == Synced
	b.MemTableSize = memtable
	b.NumMemtables = p.memtables
	b.ValueThreshold = valueThreshold
	b.ValueLogFileSize = p.vlog
	b.NumVersionsToKeep = 1
	b.DetectConflicts = false // one writer
	b.NumCompactors = 2
	b.NumLevelZeroTables = 1 // compact at once: it feeds the discard statistics
	b.NumLevelZeroTablesStall = 15
	b.Compression = options.None
	b.BlockCacheSize = 0
	b.IndexCacheSize = 0
	b.MetricsEnabled = false
	b.CompactL0OnClose = false
	b.VerifyValueChecksum = false // our values carry checksums of their own
	b.ChecksumVerificationMode = options.NoVerification
	b.Logger = log
	return b
}

// sweepEmptyFiles removes files that a crash left between their creation and
// their first byte: Badger 4.9 refuses to open a directory with one. The lock
// on the directory must be held.
func sweepEmptyFiles(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read the store's directory: %w", err)
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != ".mem" && ext != ".vlog" {
			continue
		}
		info, err := e.Info()
		if err != nil || info.Size() > 0 {
			continue // gone in between, or in use
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("remove an empty file: %w", err)
		}
	}
	return nil
}

// hasMemtables says whether there are logs of memtables: an orderly stop leaves none.
func hasMemtables(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, fmt.Errorf("read the store's directory: %w", err)
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return filepath.Ext(e.Name()) == ".mem" }), nil
}

func (e *badgerEngine) limits() limits { return e.lim }

func (e *badgerEngine) commit(w []write, done func(error)) {
	e.gate.RLock()
	e.ts++
	ts := e.ts
	txn := e.db.NewTransactionAt(math.MaxUint64, true)
	for i := range w {
		entry := badger.NewEntry(w[i].key, w[i].val).WithMeta(w[i].meta)
		var err error
		if w[i].del {
			err = txn.Delete(w[i].key)
		} else {
			err = txn.SetEntry(entry)
		}
		if err != nil {
			txn.Discard()
			e.gate.RUnlock()
			go done(fmt.Errorf("build a transaction of %d writes: %w", len(w), err))
			return
		}
	}
	// The error of CommitAt is given to the callback.
	_ = txn.CommitAt(ts, func(err error) {
		if err == nil {
			// Badger logs a failed sync of the value log and goes on.
			err = e.log.failure()
		}
		if err == nil {
			e.db.SetDiscardTs(ts)
		}
		e.gate.RUnlock()
		done(err)
	})
}

func (e *badgerEngine) get(key []byte, fn func(val []byte, meta byte) error) error {
	e.reading.RLock()
	defer e.reading.RUnlock()
	txn := e.db.NewTransactionAt(math.MaxUint64, false)
	defer txn.Discard()
	it, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return errNoKey
	}
	if err != nil {
		return err
	}
	meta := it.UserMeta()
	return it.Value(func(val []byte) error { return fn(val, meta) })
}

func (e *badgerEngine) scan(prefix []byte, fn func(item) error) error {
	txn := e.db.NewTransactionAt(math.MaxUint64, false)
	defer txn.Discard()
	o := badger.DefaultIteratorOptions
	o.PrefetchValues = false
	o.Prefix = prefix
	it := txn.NewIterator(o)
	defer e.closeIterator(it)
	for it.Rewind(); it.Valid(); it.Next() {
		i := it.Item()
		err := fn(item{key: i.Key(), meta: i.UserMeta(), size: i.ValueSize(), value: i.Value})
		if err != nil {
			return err
		}
	}
	return nil
}

// reclaim runs value-log collection until nothing is left to take.
//
// Badger 4.9 reads the memtable's newest version there without a lock. That
// does no harm, as an old version only keeps more than needed; but the race
// detector is right to complain, so in its builds commits wait.
func (e *badgerEngine) reclaim(share float64) error {
	if raceDetector {
		e.gate.Lock()
		defer e.gate.Unlock()
	}
	defer e.files.used.at.Store(0)
	e.files.advised.Store(0) // reading has mapped old files again
	for {
		err := e.collect(share)
		switch {
		case errors.Is(err, badger.ErrNoRewrite), errors.Is(err, badger.ErrRejected):
			return nil
		case err != nil:
			return fmt.Errorf("collect the value log: %w", err)
		}
		e.release() // collection has read a whole file
	}
}

// collect takes one file, if there is one to take.
//
// Badger 4.9 removes it although somebody may have found a value to be in it and
// not have read it yet, who then gets an empty one. While there is an iterator it
// leaves that to its Close, and there nobody is reading.
func (e *badgerEngine) collect(share float64) error {
	txn := e.db.NewTransactionAt(math.MaxUint64, false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{keyHead}})
	defer e.closeIterator(it)
	return e.db.RunValueLogGC(share)
}

// closeIterator closes one while nobody reads: the last one that is closed removes
// the files that were taken meanwhile.
func (e *badgerEngine) closeIterator(it *badger.Iterator) {
	e.reading.Lock()
	defer e.reading.Unlock()
	it.Close()
}

func (e *badgerEngine) release() {
	e.files.advised.Store(0)
	e.advise()
}

// rests looks for the files of memtables, which are removed after their flush, and
// at the levels: a compaction of level 0 leaves its tables there to the end, of
// another level its score hides what is on its way, but it follows one of level 0.
func (e *badgerEngine) rests() bool {
	memtables, err := filepath.Glob(filepath.Join(e.files.dir, "*.mem"))
	if err != nil || len(memtables) > 1 {
		return false
	}
	for _, level := range e.db.Levels() {
		if level.Score >= 1 {
			return false
		}
	}
	return true
}

func (e *badgerEngine) close() error {
	if err := e.db.Close(); err != nil {
		return fmt.Errorf("close the store: %w", err)
	}
	return e.log.failure()
}

// A badgerLog sends Badger's log to ours, and catches the one failure that
// Badger only logs.
type badgerLog struct {
	log  *zap.Logger
	fail atomic.Pointer[error]
}

// syncFailed starts the line Badger 4.9 logs when it could not sync the value log.
const syncFailed = "Error while curlf sync"

func (l *badgerLog) failure() error {
	if p := l.fail.Load(); p != nil {
		return *p
	}
	return nil
}

func (l *badgerLog) Errorf(format string, args ...any) {
	text := strings.TrimSpace(fmt.Sprintf(format, args...))
	if strings.HasPrefix(format, syncFailed) {
		err := fmt.Errorf("sync of the value log failed: %s", text)
		l.fail.CompareAndSwap(nil, &err)
	}
	l.log.Error("badger", zap.String("text", text))
}

func (l *badgerLog) Warningf(format string, args ...any) {
	l.log.Warn("badger", zap.String("text", strings.TrimSpace(fmt.Sprintf(format, args...))))
}

// Infof and Debugf are about Badger's own housekeeping.
func (l *badgerLog) Infof(format string, args ...any) {
	if ce := l.log.Check(zap.DebugLevel, "badger"); ce != nil {
		ce.Write(zap.String("text", strings.TrimSpace(fmt.Sprintf(format, args...))))
	}
}

func (l *badgerLog) Debugf(string, ...any) {}

// A fileWatch notices that Badger has begun a new file.
type fileWatch struct {
	dir  string
	next atomic.Pointer[[2]string] // the files that come next
	// advised is the number of the value file that was the newest at the last advice.
	advised atomic.Int64
	used    struct {
		at    atomic.Int64 // when measured, Unix nanoseconds
		bytes atomic.Int64
	}
}

// rotated costs two failing stats, about 2 µs a commit.
func (e *badgerEngine) rotated() bool {
	next := e.files.next.Load()
	if next == nil {
		return true
	}
	for _, path := range next {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
	}
	return false
}

func (e *badgerEngine) advise() {
	vlog, mem := e.newest()
	e.files.next.Store(&[2]string{
		filepath.Join(e.dir, fmt.Sprintf("%06d.vlog", vlog+1)),
		filepath.Join(e.dir, fmt.Sprintf("%05d.mem", mem+1)),
	})
	if err := adviseMappings(e.dir, int(e.files.advised.Load()), vlog, mem); err != nil {
		e.log.log.Debug("page advice", zap.Error(err))
	}
	e.files.advised.Store(int64(vlog))
}

// newest is the number of the youngest file of each kind.
func (e *badgerEngine) newest() (vlog, mem int) {
	entries, err := os.ReadDir(e.dir)
	if err != nil {
		return 0, 0
	}
	for _, entry := range entries {
		if n, ok := fileNumber(entry.Name(), ".vlog"); ok {
			vlog = max(vlog, n)
		} else if n, ok := fileNumber(entry.Name(), ".mem"); ok {
			mem = max(mem, n)
		}
	}
	return vlog, mem
}

// fileNumber is the number in a name such as 000012.vlog.
func fileNumber(name, ext string) (int, bool) {
	digits, ok := strings.CutSuffix(name, ext)
	if !ok || digits == "" {
		return 0, false
	}
	n := 0
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// used measures at most once a second.
func (e *badgerEngine) used() int64 {
	now := time.Now().UnixNano()
	if u := &e.files.used; now-u.at.Load() < int64(time.Second) {
		return u.bytes.Load()
	}
	entries, err := os.ReadDir(e.dir)
	if err != nil {
		return e.files.used.bytes.Load()
	}
	total := int64(0)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			total += diskBytes(info)
		}
	}
	e.files.used.at.Store(now)
	e.files.used.bytes.Store(total)
	return total
}

// sync makes all files durable that may have been written since they were last
// synced: values before the log that points to them. Badger's own Sync leaves
// out the write-ahead log of a memtable that is about to be flushed.
func (e *badgerEngine) sync() error {
	entries, err := os.ReadDir(e.dir)
	if err != nil {
		return fmt.Errorf("read the store's directory: %w", err)
	}
	vlog, _ := e.newest()
	for _, entry := range entries {
		if n, ok := fileNumber(entry.Name(), ".vlog"); ok && n >= vlog-syncedFiles {
			if err := syncFile(filepath.Join(e.dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) == ".mem" {
			if err := syncFile(filepath.Join(e.dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// syncedFiles is how many value files before the newest may have been written
// since the last sync, 200 ms ago.
const syncedFiles = 256

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // flushed to the tree, or collected, meanwhile
	}
	if err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}
