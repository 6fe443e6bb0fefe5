package persistence

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// commitTime is what a commit of a slowEngine takes.
const commitTime = time.Millisecond

// A slowEngine commits after commitTime and keeps nothing but the count.
type slowEngine struct {
	noEngine
	commits atomic.Int32
}

func (*slowEngine) limits() limits {
	return limits{entries: 1000, bytes: 1 << 30, inline: 1 << 20, value: 1 << 10, pointer: 12, memtable: 1 << 20}
}
func (*slowEngine) rotated() bool { return false }
func (*slowEngine) advise()       {}
func (*slowEngine) used() int64   { return 0 }
func (*slowEngine) close() error  { return nil }

func (e *slowEngine) commit(_ []write, done func(error)) {
	e.commits.Add(1)
	time.AfterFunc(commitTime, func() { done(nil) })
}

// A promptTest is a store in a bubble with a log whose consumers have shown that
// they settle at once.
type promptTest struct {
	*testing.T
	s      *Disk
	eng    *slowEngine
	log    *diskLog
	lastID uint64
}

func testPrompt(t *testing.T, fn func(*promptTest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := new(slowEngine)
		s := newDisk(Options{diskFree: func(string) (int64, error) { return 1 << 40, nil }}, e)
		s.unlock = func() error { return nil }
		s.com.took = commitTime
		s.wg.Add(1)
		go s.com.run()
		l, _ := s.NewLog()
		p := &promptTest{T: t, s: s, eng: e, log: l.(*diskLog)}
		for range promptTrust {
			w := p.append(p.log)
			p.settle(p.log)
			synctest.Wait()
			if !w.settled() {
				t.Error("a record that was settled during its commit is not confirmed")
			}
			time.Sleep(commitTime)
			synctest.Wait()
		}
		time.Sleep(2 * settleDelay) // for what is written of those
		e.commits.Store(0)
		fn(p)
		if err := s.Close(); err != nil && err != ErrClosed {
			t.Error(err)
		}
	})
}

// append appends one record.
func (p *promptTest) append(l *diskLog) waiter {
	p.lastID++
	r, w := newWaiter()
	l.Append(testRecords(p.lastID), r)
	synctest.Wait()
	return w
}

func (p *promptTest) settle(l *diskLog) { l.Settle([]uint64{p.lastID}) }

// confirmedAfter is how long it takes until the receipt is released.
func (p *promptTest) confirmedAfter(w waiter) time.Duration {
	start := time.Now()
	<-w
	return time.Since(start)
}

func TestPromptRecordsAreNotWritten(t *testing.T) {
	testPrompt(t, func(p *promptTest) {
		for range 100 {
			w := p.append(p.log)
			time.Sleep(commitTime / 2)
			p.settle(p.log)
			if !w.settled() {
				t.Fatal("a settled record is not confirmed")
			}
		}
		time.Sleep(time.Second)
		if n := p.eng.commits.Load(); n != 0 {
			t.Errorf("%d commits, want none", n)
		}
	})
}

// Records that come and go for longer than a commit takes do not add up: each has
// its time.
func TestPromptRecordsMayOverlap(t *testing.T) {
	testPrompt(t, func(p *promptTest) {
		for range 100 {
			p.append(p.log)
			time.Sleep(commitTime / 3)
			if p.lastID > promptTrust+1 {
				p.log.Settle([]uint64{p.lastID - 1})
			}
		}
		if n := p.eng.commits.Load(); n != 0 {
			t.Errorf("%d commits, want none", n)
		}
	})
}

func TestWhatIsLeftIsWrittenInTime(t *testing.T) {
	testPrompt(t, func(p *promptTest) {
		w := p.append(p.log)
		if got, want := p.confirmedAfter(w), 3*commitTime; got != want {
			t.Errorf("confirmed after %v, want two times to be settled and a commit, %v", got, want)
		}
		w = p.append(p.log) // the favour is lost
		if got := p.confirmedAfter(w); got != commitTime {
			t.Errorf("then confirmed after %v, want a commit, %v", got, commitTime)
		}
	})
}

func TestOthersDoNotWaitForPromptLogs(t *testing.T) {
	testPrompt(t, func(p *promptTest) {
		l, _ := p.s.NewLog()
		left := p.append(p.log)
		w := p.append(l.(*diskLog))
		if got := p.confirmedAfter(w); got != commitTime {
			t.Errorf("confirmed after %v, want a commit, %v", got, commitTime)
		}
		if !left.settled() {
			t.Error("what was left was not written with it")
		}
	})
}

func TestDefinitionsDoNotWaitForPromptLogs(t *testing.T) {
	testPrompt(t, func(p *promptTest) {
		p.append(p.log)
		start := time.Now()
		if err := p.s.do([]write{{key: []byte("d"), val: []byte("x")}}); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got != commitTime {
			t.Errorf("written after %v, want %v", got, commitTime)
		}
	})
}

func TestMuchIsNotLeft(t *testing.T) {
	testPrompt(t, func(p *promptTest) {
		recs := testRecords(p.lastID + 1)
		recs[0].Body = make([]byte, p.s.sizes.group)
		r, w := newWaiter()
		p.log.Append(recs, r)
		if got := p.confirmedAfter(w); got != commitTime {
			t.Errorf("a group's worth was confirmed after %v, want a commit, %v", got, commitTime)
		}
	})
}

func TestCloseWritesWhatIsLeft(t *testing.T) {
	testPrompt(t, func(p *promptTest) {
		w := p.append(p.log)
		closed := make(chan error)
		go func() { closed <- p.s.Close() }()
		if got := p.confirmedAfter(w); got != commitTime {
			t.Errorf("confirmed after %v, want a commit, %v", got, commitTime)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// What is settled waits for company, also after a commit.
func TestSettlesWaitForCompany(t *testing.T) {
	testPrompt(t, func(p *promptTest) {
		l, _ := p.s.NewLog()
		<-p.append(l.(*diskLog))
		<-p.append(l.(*diskLog))
		time.Sleep(commitTime)
		p.eng.commits.Store(0)
		l.Settle([]uint64{p.lastID - 1})
		synctest.Wait()
		time.Sleep(settleDelay - time.Nanosecond)
		synctest.Wait()
		if n := p.eng.commits.Load(); n != 0 {
			t.Errorf("%d commits before the delay, want none", n)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if n := p.eng.commits.Load(); n != 1 {
			t.Errorf("%d commits after the delay, want 1", n)
		}
		time.Sleep(time.Second)
	})
}

// What is appended before Close is committed, even if the committer has looked for
// it already and is about to wait.
func TestCloseCommitsWhatIsPending(t *testing.T) {
	for range 30 { // the committer takes one of two ways
		e := new(slowEngine)
		s := newDisk(Options{diskFree: func(string) (int64, error) { return 1 << 40, nil }}, e)
		s.unlock = func() error { return nil }
		l, _ := s.NewLog()
		r, w := newWaiter()
		appended := make(chan struct{})
		s.com.waits = func() {
			s.com.waits = nil
			l.Append(testRecords(1), r)
			close(appended)
			<-s.stop
		}
		s.wg.Add(1)
		go s.com.run()
		<-appended
		closeTest(t, s)
		if w.wait() {
			t.Fatal("Close has failed what was appended before it")
		}
	}
}
