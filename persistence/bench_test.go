package persistence

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// cpuTime is the processor time of this process so far.
func cpuTime() time.Duration {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+2:]))
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// writtenBytes is what this process caused to be written to disks so far.
func writtenBytes() int64 { return procNumber("/proc/self/io", "write_bytes:") }

// residentBytes is the anonymous memory of this process.
func residentBytes() int64 { return procNumber("/proc/self/status", "RssAnon:") << 10 }

func procNumber(path, field string) int64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n
		}
	}
	return 0
}

func benchRecords(n, size int) []Record {
	recs := make([]Record, n)
	for i := range recs {
		recs[i] = Record{ID: uint64(i + 1), Time: 1e12, Key: "key", Header: make([]byte, 14), Body: randomBody(size)}
	}
	return recs
}

func randomBody(n int) []byte {
	b := make([]byte, n)
	x := uint32(n + 7)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// BenchmarkCommit appends batches of 64 records to one log, with up to 16 MiB
// uncommitted, and waits for the last commit. The case file is an append to a
// file and fdatasync of the same bytes in groups of 1 MiB: the limit.
func BenchmarkCommit(b *testing.B) {
	for _, size := range []int{100, 1024} {
		for _, p := range []Profile{Tiny, Server} {
			b.Run(fmt.Sprintf("%dB/%s", size, []string{"tiny", "server"}[p]), func(b *testing.B) {
				s := openTest(b, Options{Dir: b.TempDir(), Profile: p})
				defer closeTest(b, s)
				l, _ := s.NewLog()
				recs := benchRecords(64, size)
				measure(b, size, func() {
					id := uint64(1)
					for n := 0; n < b.N; n += len(recs) {
						for i := range recs {
							recs[i].ID = id
							id++
						}
						l.Append(recs, nil)
						if err := s.Wait(b.Context()); err != nil {
							b.Fatal(err)
						}
					}
					r, w := newWaiter()
					l.Append([]Record{{ID: id}}, r)
					w.wait()
				})
				b.ReportMetric(float64(s.commits.Load()), "commits")
			})
		}
		b.Run(fmt.Sprintf("%dB/file", size), func(b *testing.B) {
			f, err := os.Create(filepath.Join(b.TempDir(), "log"))
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			one := randomBody(size + 20)
			measure(b, size, func() {
				var group []byte
				for range b.N {
					group = append(group, one...)
					if len(group) >= 1<<20 {
						writeSync(b, f, group)
						group = group[:0]
					}
				}
				writeSync(b, f, group)
			})
		})
	}
}

func writeSync(b *testing.B, f *os.File, group []byte) {
	if _, err := f.Write(group); err != nil {
		b.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
}

// measure reports processor time and written bytes per record of size bytes.
func measure(b *testing.B, size int, fn func()) {
	runtime.GC()
	b.ReportAllocs()
	cpu, written := cpuTime(), writtenBytes()
	b.ResetTimer()
	fn()
	b.StopTimer()
	b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(writtenBytes()-written)/float64(b.N*size), "written/payload")
}

// BenchmarkFanout appends one record to each of many logs, in another order than
// that of their ids, as an exchange does, and waits for all.
func BenchmarkFanout(b *testing.B) {
	for _, n := range []int{500, 50_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s := openTest(b, Options{Dir: b.TempDir(), MaxUncommitted: 1 << 30})
			defer closeTest(b, s)
			logs := make([]Log, n)
			for i := range logs {
				logs[i], _ = s.NewLog()
			}
			rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { logs[i], logs[j] = logs[j], logs[i] })
			recs := benchRecords(1, 100)
			cpu := cpuTime()
			b.ResetTimer()
			for range b.N {
				recs[0].Shared = new(SharedBody)
				r, w := newWaiter()
				r.Hold(n - 1)
				s.Together(func() {
					for _, l := range logs {
						l.Append(recs, r)
					}
				})
				w.wait()
				recs[0].ID++
			}
			b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(b.N*n), "cpu-ns/record")
		})
	}
}

// BenchmarkCommitAlone is the latency of one commit at rest: append one record, wait.
func BenchmarkCommitAlone(b *testing.B) {
	rec := benchRecords(1, 100)[0]
	b.Run("store", func(b *testing.B) {
		s := openTest(b, Options{Dir: b.TempDir()})
		defer closeTest(b, s)
		l, _ := s.NewLog()
		alone(b, func() {
			mustAppend(b, l, rec)
			rec.ID++
		})
	})
	b.Run("file", func(b *testing.B) {
		f, err := os.Create(filepath.Join(b.TempDir(), "log"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		alone(b, func() { writeSync(b, f, rec.Body) })
	})
}

func alone(b *testing.B, fn func()) {
	var took []time.Duration
	cpu := cpuTime()
	for b.Loop() {
		start := time.Now()
		fn()
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkSettleBeforeCommit is a message that is acknowledged at once.
func BenchmarkSettleBeforeCommit(b *testing.B) {
	s := openTest(b, Options{Dir: b.TempDir()})
	defer closeTest(b, s)
	l, _ := s.NewLog()
	recs := benchRecords(64, 100)
	ids := make([]uint64, len(recs))
	b.ReportAllocs()
	cpu := cpuTime()
	id := uint64(1)
	for n := 0; n < b.N; n += len(recs) {
		for i := range recs {
			recs[i].ID, ids[i] = id, id
			id++
		}
		l.Append(recs, nil)
		l.Settle(ids)
	}
	b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(s.records.Load())/float64(b.N), "written/op")
}

// fillBacklog writes n records and returns their log.
func fillBacklog(b testing.TB, s *Disk, n, size int) LogID {
	l, err := s.NewLog()
	if err != nil {
		b.Fatal(err)
	}
	recs := benchRecords(64, size)
	for id := uint64(1); id <= uint64(n); {
		for i := range recs {
			recs[i].ID = id
			id++
		}
		l.Append(recs, nil)
		if err := s.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	mustAppend(b, l, Record{ID: uint64(n) + 100})
	return l.ID()
}

// backlog is how many records BenchmarkRecover and BenchmarkPageIn keep;
// LEVERET_BACKLOG overrides it.
func backlog() int {
	if n, err := strconv.Atoi(os.Getenv("LEVERET_BACKLOG")); err == nil {
		return n
	}
	return 1_000_000
}

// BenchmarkRecover opens a store with a backlog of records of 100 bytes and
// loads the first of them.
func BenchmarkRecover(b *testing.B) {
	for _, p := range []Profile{Tiny, Server} {
		b.Run([]string{"tiny", "server"}[p], func(b *testing.B) {
			o := Options{Dir: b.TempDir(), Profile: p}
			s := openTest(b, o)
			id := fillBacklog(b, s, backlog(), 100)
			closeTest(b, s)
			runtime.GC()
			for b.Loop() {
				s = openTest(b, o)
				l, _ := s.OpenLog(id)
				if recs, err := l.Load(0, 0, nil, 1); err != nil || len(recs) != 1 {
					b.Fatal(len(recs), err)
				}
				b.ReportMetric(float64(residentBytes()>>20), "anon-MiB")
				b.StopTimer()
				closeTest(b, s)
				b.StartTimer()
			}
		})
	}
}

// BenchmarkPageIn loads a backlog in blocks of 256 KiB and settles it.
func BenchmarkPageIn(b *testing.B) {
	for _, size := range []int{100, 1024} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			s := openTest(b, Options{Dir: b.TempDir(), Profile: Server})
			defer closeTest(b, s)
			id := fillBacklog(b, s, max(b.N, 1000), size)
			l := s.logs[id]
			b.ReportAllocs()
			cpu := cpuTime()
			b.ResetTimer()
			var recs []Record
			var ids []uint64
			for from := uint64(0); ; {
				var err error
				if recs, err = l.Load(0, from, recs[:0], 256<<10); err != nil {
					b.Fatal(err)
				}
				if len(recs) == 0 {
					break
				}
				ids = ids[:0]
				for i := range recs {
					ids = append(ids, recs[i].ID)
				}
				l.Settle(ids)
				from = ids[len(ids)-1] + 1
			}
			b.StopTimer()
			b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}
