package persistence

import (
	"testing"
	"testing/synctest"
	"time"
)

// A noEngine is for a committer that commits nothing.
type noEngine struct{ engine }

func (noEngine) limits() limits { return limits{} }

// fullRefill is what a commit brings for which publishers wait.
var fullRefill = refill{appended: 8000, bytes: 8000, entries: 200, took: time.Second}

// refillWait runs awaitRefill after a commit in a bubble; during is called while it
// waits, and the result is how long it waited.
func refillWait(t *testing.T, last refill, during func(s *Disk)) (waited time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newDisk(Options{}, noEngine{})
		c := &s.com
		c.unconsumed, c.refill = refillTrust, last
		done := make(chan time.Duration)
		start := time.Now()
		go func() {
			timer := time.NewTimer(0)
			defer timer.Stop()
			c.awaitRefill(timer)
			done <- time.Since(start)
		}()
		synctest.Wait()
		during(s)
		waited = <-done
		if got := s.enough.Load(); got != int64(s.sizes.group) {
			t.Errorf("%d bytes are enough afterwards, want a group of %d", got, s.sizes.group)
		}
	})
	return waited
}

func TestRefillEndsWhenMostIsBack(t *testing.T) {
	waited := refillWait(t, fullRefill, func(s *Disk) {
		time.Sleep(time.Millisecond)
		s.gathered(6999, true)
		time.Sleep(time.Millisecond)
		s.gathered(1, true)
	})
	if waited != 2*time.Millisecond {
		t.Errorf("waited for %v, want until 7/8 of the bytes were back after 2 ms", waited)
	}
}

func TestRefillIsBounded(t *testing.T) {
	quick := fullRefill
	quick.took = time.Millisecond
	for _, tt := range []struct {
		name string
		last refill
		want time.Duration
	}{
		{"by refillMost", fullRefill, refillMost},
		{"by what the commit took", quick, time.Millisecond},
	} {
		if got := refillWait(t, tt.last, func(s *Disk) { s.gathered(100, true) }); got != tt.want {
			t.Errorf("%s: waited for %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestRefillDoesNotWait(t *testing.T) {
	few, early, late := fullRefill, fullRefill, fullRefill
	few.entries = refillRecords - 1
	early.bytes = early.appended / 2
	late.settled = late.entries / 2
	for name, last := range map[string]refill{"few records": few, "settled before": early, "settled meanwhile": late, "none": {}} {
		if got := refillWait(t, last, func(*Disk) {}); got != 0 {
			t.Errorf("%s: waited for %v", name, got)
		}
	}
}

// One commit that nobody settles anything of says little.
func TestRefillWaitsOnlyAfterSomeCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &newDisk(Options{}, noEngine{}).com
		timer := time.NewTimer(0)
		defer timer.Stop()
		late := fullRefill
		late.settled = late.entries / 2
		for _, last := range []refill{fullRefill, late, fullRefill} {
			n := 0
			for start := time.Now(); time.Since(start) == 0 && n < 2*refillTrust && (n == 0 || last.settled == 0); n++ {
				c.refill = last
				c.awaitRefill(timer)
			}
			if last.settled == 0 && n != refillTrust {
				t.Errorf("waited after %d commits, want %d", n, refillTrust)
			}
		}
	})
}

func TestRefillEndsForADefinition(t *testing.T) {
	waited := refillWait(t, fullRefill, func(s *Disk) {
		s.submit(nil)
	})
	if waited != 0 {
		t.Errorf("a definition waited for %v", waited)
	}
}

func TestRefillEndsWithTheStore(t *testing.T) {
	if waited := refillWait(t, fullRefill, func(s *Disk) { close(s.stop) }); waited != 0 {
		t.Errorf("Close waited for %v", waited)
	}
	if waited := refillWait(t, fullRefill, func(s *Disk) { s.stopFor(ErrClosed) }); waited != 0 {
		t.Errorf("a failure waited for %v", waited)
	}
}
