package persistence

import (
	"errors"
	"runtime"
	"testing"
)

// What was delivered last is known after an orderly stop, although nothing was
// written since.
func TestCloseKeepsTheDeliveredMark(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir})
	l := mustLog(t, s)
	mustAppend(t, l, testRecords(1, 2, 3)...)
	l.Delivered(2)
	for range 2 { // it is kept by a store that changes nothing, too
		closeTest(t, s)
		s = openTest(t, Options{Dir: dir})
		again, err := s.OpenLog(l.ID())
		if err != nil {
			t.Fatal(err)
		}
		recs, err := again.Load(0, 0, nil, 1<<20)
		if err != nil || len(recs) != 3 {
			t.Fatalf("Load() = %d records, %v, want 3", len(recs), err)
		}
		for _, r := range recs {
			if r.Redelivered != (r.ID <= 2) {
				t.Errorf("record %d: Redelivered is %t", r.ID, r.Redelivered)
			}
		}
	}
	closeTest(t, s)
}

// A readEngine stops at each get, once armed, until the test lets it go on, and
// tells when it is closed.
type readEngine struct {
	engine
	reading chan struct{} // nil until armed
	let     chan struct{}
	closing chan struct{}
}

func (e *readEngine) get(key []byte, fn func(val []byte, meta byte) error) error {
	if e.reading != nil {
		e.reading <- struct{}{}
		<-e.let
	}
	return e.engine.get(key, fn)
}

func (e *readEngine) close() error {
	close(e.closing)
	return e.engine.close()
}

// Queues that stop do not wait for what they read: the store does.
func TestCloseWaitsForLoads(t *testing.T) {
	e := &readEngine{let: make(chan struct{}), closing: make(chan struct{})}
	s := openTest(t, Options{Dir: t.TempDir(), wrap: func(inner engine) engine {
		e.engine = inner
		return e
	}})
	l, err := s.NewLog()
	if err != nil {
		t.Fatal(err)
	}
	r, w := newWaiter()
	l.Append(testRecords(1, 2), r)
	if w.wait() {
		t.Fatal("the receipt failed")
	}
	e.reading = make(chan struct{}, 100)
	loaded, closed := make(chan error), make(chan error)
	go func() {
		recs, err := l.Load(0, 0, nil, 1<<20)
		if err == nil && len(recs) != 2 {
			err = errors.New("not all was loaded")
		}
		loaded <- err
	}()
	<-e.reading
	go func() { closed <- s.Close() }()
	for s.loads.TryRLock() { // until Close waits
		s.loads.RUnlock()
		select {
		case <-e.closing:
			t.Fatal("the engine was closed under a Load")
		default:
			runtime.Gosched()
		}
	}
	close(e.let)
	if err := <-loaded; err != nil {
		t.Errorf("Load() = %v, want both records", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("Close() = %v", err)
	}
	if _, err := l.Load(0, 0, nil, 1<<20); !errors.Is(err, ErrClosed) {
		t.Errorf("Load() after Close = %v, want ErrClosed", err)
	}
}
