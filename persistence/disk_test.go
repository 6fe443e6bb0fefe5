package persistence

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestWarnsOnlyOfRecordsThatAreDropped opens stores with a log that nobody opens. The
// chunk that it shares with another log is there as long as that one's records.
func TestWarnsOnlyOfRecordsThatAreDropped(t *testing.T) {
	for name, tt := range map[string]struct {
		drop  bool
		wants []int // warnings of each opening
	}{
		"with records": {false, []int{1, 0, 0}},
		"dropped":      {true, []int{0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openTest(t, Options{Dir: dir})
			kept, gone := mustLog(t, s), mustLog(t, s)
			r, committed := newWaiter()
			s.Together(func() {
				kept.Append(testRecords(1), nil)
				gone.Append(testRecords(1), r)
			})
			committed.wait()
			if tt.drop {
				gone.Drop()
			}
			closeTest(t, s)
			for i, want := range tt.wants {
				core, logged := observer.New(zap.WarnLevel)
				s := openTest(t, Options{Dir: dir, Log: zap.New(core)})
				if _, err := s.OpenLog(kept.ID()); err != nil {
					t.Fatal(err)
				}
				if err := s.Recovered(); err != nil {
					t.Fatal(err)
				}
				if got := logged.FilterField(zap.Uint32("log", uint32(gone.ID()))).Len(); got != want {
					t.Errorf("opening %d: %d warnings, want %d: %v", i+1, got, want, logged.All())
				}
				closeTest(t, s)
			}
		})
	}
}
