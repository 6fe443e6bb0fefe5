package persistence

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"
)

// The crash test kills a process that appends, settles and collects garbage,
// and looks at what the next one finds. The process says on its standard output
//
//	L log      a log was made
//	A log id   the record is durable
//	s log id   the record is about to be settled
//	S log id   the settle is durable
const crashDir = "LEVERET_CRASH_DIR"

// crashLogs is how many logs the process writes to.
const crashLogs = 5

// TestCrash kills a few times; LEVERET_CRASH_ROUNDS says how often instead.
func TestCrash(t *testing.T) {
	rounds := 6
	if n, err := strconv.Atoi(os.Getenv("LEVERET_CRASH_ROUNDS")); err == nil {
		rounds = n
	}
	for _, d := range []Durability{Synced, Relaxed} {
		t.Run([]string{"synced", "relaxed"}[d], func(t *testing.T) {
			c := &crashed{t: t, dir: t.TempDir(), durability: d, logs: make(map[LogID]map[uint64]byte)}
			for n := range (rounds + 1) / 2 {
				c.kill()
				if n%2 == 0 {
					c.check()
				}
			}
			c.check()
			t.Logf("%d records were durable, %d were loaded", c.durable, c.loaded)
		})
	}
}

// crashed is what is known of the store of killed processes.
type crashed struct {
	t          *testing.T
	dir        string
	durability Durability
	logs       map[LogID]map[uint64]byte // the last letter said of each record
	durable    int
	loaded     int
}

// kill runs a process for a while.
func (c *crashed) kill() {
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrashProcess$")
	cmd.Env = append(os.Environ(), crashDir+"="+c.dir, "LEVERET_CRASH_DURABILITY="+strconv.Itoa(int(c.durability)))
	for id := range c.logs {
		cmd.Env = append(cmd.Env, fmt.Sprintf("LEVERET_CRASH_LOG_%d=1", id))
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	timer := time.AfterFunc(time.Duration(150+rand.IntN(700))*time.Millisecond, func() { cmd.Process.Kill() })
	defer timer.Stop()
	c.read(out)
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() > 0 {
		c.t.Fatalf("the process ended by itself: %v", err)
	}
}

func (c *crashed) read(out io.Reader) {
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return // the last line may be half a line
		}
		var what byte
		var log LogID
		var id uint64
		n, _ := fmt.Sscanf(line, "%c %d %d", &what, &log, &id)
		switch {
		case n == 2 && what == 'L':
			c.logs[log] = make(map[uint64]byte)
		case n == 3:
			c.logs[log][id] = what
			if what == 'A' {
				c.durable++
			}
		}
	}
}

// check opens the store and compares.
func (c *crashed) check() {
	c.t.Helper()
	s := openTest(c.t, Options{Dir: c.dir, Durability: c.durability, DiskLimit: 1})
	defer closeTest(c.t, s)
	for id, said := range c.logs {
		l, err := s.OpenLog(id)
		if err != nil {
			c.t.Fatalf("OpenLog: %v", err)
		}
		found := make(map[uint64]bool)
		var recs []Record
		for from := uint64(0); ; from = recs[len(recs)-1].ID + 1 {
			if recs, err = l.Load(0, from, recs[:0], 1<<20); err != nil {
				c.t.Fatalf("Load: %v", err)
			}
			if len(recs) == 0 {
				break
			}
			for _, r := range recs {
				found[r.ID] = true
				c.loaded++
				if !bytes.Equal(r.Body, crashBody(id, r.ID)) {
					c.t.Errorf("record %d of log %d has the wrong body", r.ID, id)
				}
			}
		}
		for rec, what := range said {
			if what == 'A' && !found[rec] {
				c.t.Errorf("record %d of log %d was durable and is lost", rec, id)
			}
			if what == 'S' && found[rec] {
				c.t.Errorf("record %d of log %d was settled durably and is back", rec, id)
			}
			if !found[rec] {
				said[rec] = 'S' // it must never come back
			}
		}
	}
}

// crashBody is 50 bytes to 60 KB that follow from the id.
func crashBody(log LogID, id uint64) []byte {
	rnd := rand.New(rand.NewPCG(uint64(log), id))
	n := 50 + rnd.IntN(200)
	if rnd.IntN(5) == 0 {
		n = 50 + rnd.IntN(60_000)
	}
	b := make([]byte, n)
	for i := 0; i+8 <= n; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], rnd.Uint64())
	}
	return b
}

// TestCrashProcess is the process that TestCrash kills. It does nothing by itself.
func TestCrashProcess(t *testing.T) {
	dir := os.Getenv(crashDir)
	if dir == "" {
		return
	}
	d, _ := strconv.Atoi(os.Getenv("LEVERET_CRASH_DURABILITY"))
	s, err := Open(Options{Dir: dir, Durability: Durability(d), gcStep: 2 << 20, mergeTiny: 20, DiskLimit: 1})
	if err != nil {
		t.Fatal(err)
	}
	p := &crashProcess{t: t, s: s}
	for _, id := range slices.Sorted(func(yield func(LogID) bool) {
		for id := range s.logs {
			if !yield(id) {
				return
			}
		}
	}) {
		p.open(id)
	}
	for id := range LogID(100) {
		if os.Getenv(fmt.Sprintf("LEVERET_CRASH_LOG_%d", id)) != "" && s.logs[id] == nil {
			p.open(id)
		}
	}
	for len(p.logs) < crashLogs {
		p.create()
	}
	for {
		p.step()
	}
}

type crashProcess struct {
	t    *testing.T
	s    *Disk
	logs []*crashLog
	out  bytes.Buffer
}

type crashLog struct {
	l       Log
	next    uint64
	live    []uint64
	settled [4][]uint64 // by how many steps ago
}

func (p *crashProcess) create() {
	l, err := p.s.NewLog()
	if err != nil {
		p.t.Fatal(err)
	}
	fmt.Printf("L %d\n", l.ID())
	p.logs = append(p.logs, &crashLog{l: l, next: 1})
}

func (p *crashProcess) open(id LogID) {
	l, err := p.s.OpenLog(id)
	if err != nil {
		p.t.Fatal(err)
	}
	cl := &crashLog{l: l, next: l.LastID() + 1_000} // ids that were only in memory are not used again
	recs, err := l.Load(0, 0, nil, 1<<40)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, r := range recs {
		cl.live = append(cl.live, r.ID)
	}
	p.logs = append(p.logs, cl)
}

// step appends to all logs, waits, and settles what is old; some of it late.
func (p *crashProcess) step() {
	var waiters []waiter
	var said []byte
	for _, cl := range p.logs {
		var recs []Record
		for range 1 + rand.IntN(20) {
			recs = append(recs, Record{ID: cl.next, Body: crashBody(cl.l.ID(), cl.next)})
			said = fmt.Appendf(said, "A %d %d\n", cl.l.ID(), cl.next)
			cl.live = append(cl.live, cl.next)
			cl.next++
		}
		r, w := newWaiter()
		cl.l.Append(recs, r)
		waiters = append(waiters, w)
	}
	for _, w := range waiters {
		if w.wait() {
			p.t.Fatal("Append failed")
		}
	}
	p.out.Write(said)
	for _, cl := range p.logs {
		p.settle(cl)
	}
}

func (p *crashProcess) settle(cl *crashLog) {
	for _, id := range cl.settled[3] {
		fmt.Fprintf(&p.out, "S %d %d\n", cl.l.ID(), id)
	}
	keep, n := cl.live[:0], len(cl.live)
	var ids []uint64
	for i, id := range cl.live {
		if i < n-200 && id%64 != 0 || i < n-2000 || rand.IntN(50) == 0 {
			ids = append(ids, id)
			fmt.Fprintf(&p.out, "s %d %d\n", cl.l.ID(), id)
			continue
		}
		keep = append(keep, id)
	}
	cl.live = keep
	copy(cl.settled[1:], cl.settled[:3])
	cl.settled[0] = ids
	os.Stdout.Write(p.out.Bytes())
	p.out.Reset()
	cl.l.Settle(ids)
}
