package persistence

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"go.uber.org/zap"
)

// A log that is written ahead is never behind what was appended together with its
// records: neither when a round begins in between, nor when a round is more than
// one transaction.
func TestWriteAhead(t *testing.T) {
	s, f := openFaulty(t, Options{Profile: Tiny, Log: zap.NewNop()})
	data, _ := s.NewLog()
	ahead, _ := s.NewLog()
	ahead.WriteAhead()
	g := newGate(f)
	r, _ := newWaiter()
	s.Together(func() {
		for id := uint64(1); id <= 3; id++ {
			data.Append([]Record{{ID: id, Time: 1e12, Header: []byte{0}, Body: make([]byte, s.sizes.group)}}, nil)
			for range 1000 {
				runtime.Gosched() // the committer may have these when it likes, but for Together
			}
		}
		ahead.Append(testRecords(1), r)
	})
	<-g.seen
	g.let <- nil
	<-g.seen // the rest of the data: the broker is killed now
	g.let <- errors.New("killed")
	_ = s.Close() // it has failed
	s = openTest(t, Options{Dir: s.opts.Dir})
	defer closeTest(t, s)
	data, _ = s.OpenLog(data.ID())
	ahead, _ = s.OpenLog(ahead.ID())
	if got := loadedIDs(t, ahead); !slices.Equal(got, []uint64{1}) {
		t.Errorf("the log that is written ahead has %d", got)
	}
	if got := loadedIDs(t, data); len(got) == 3 {
		t.Error("all was in one transaction: the test shows nothing")
	}
}
