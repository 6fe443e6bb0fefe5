package broker

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leveretmq/leveret/amqp"
	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// fakeHealth is a store in the state that the test says.
type fakeHealth struct {
	persistence.Store
	health persistence.Health
}

func (f *fakeHealth) Health() persistence.Health { return f.health }

func newTestAlarms(t *testing.T) (*alarms, *fakeHealth, *int64, *observer.ObservedLogs) {
	t.Helper()
	authority, err := auth.New(auth.Config{}, persistence.NewMemory())
	if err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.InfoLevel)
	store, used := &fakeHealth{}, new(int64)
	a := &alarms{server: amqp.NewServer(amqp.Config{Auth: authority}), store: store, budget: queue.NewBudget(0), limit: 1000,
		inUse: func() int64 { return *used }, log: zap.New(core)}
	return a, store, used, logs
}

func TestMemoryAlarm(t *testing.T) {
	a, _, used, _ := newTestAlarms(t)
	for _, tt := range []struct {
		used int64
		want string
	}{
		{800, ""},
		{801, "low on memory"},
		{760, "low on memory"}, // not yet far enough below
		{750, ""},
		{800, ""},
	} {
		*used = tt.used
		a.checkMemory()
		if got := a.server.Alarm(); got != tt.want {
			t.Errorf("%d bytes in use of 1000: alarm %q, want %q", tt.used, got, tt.want)
		}
	}
}

// A limit of 0 blocks publishers whatever is free, until there is another.
func TestMemoryAlarmWithoutMemory(t *testing.T) {
	a, _, _, logs := newTestAlarms(t)
	for _, tt := range []struct {
		limit int64
		want  string
	}{{0, "low on memory"}, {1000, ""}} {
		a.setMemoryLimit(tt.limit)
		a.checkMemory()
		if got := a.server.Alarm(); got != tt.want {
			t.Errorf("limit %d: alarm %q, want %q", tt.limit, got, tt.want)
		}
	}
	if n := logs.FilterMessageSnippet("until memory is free").Len(); n > 0 {
		t.Error("the log says that free memory ends it")
	}
}

// With little room left memory is looked at often, with much of it seldom.
func TestMemoryIsLookedAtBeforeItCanFillUp(t *testing.T) {
	a, _, used, _ := newTestAlarms(t)
	a.limit = 10 << 30
	for _, tt := range []struct {
		used int64
		want time.Duration
	}{
		{0, longestLook},
		{a.limit/100*80 - 1<<30, time.Second},
		{a.limit / 100 * 80, shortestLook},
		{a.limit, shortestLook},
		{a.limit / 100 * 76, shortestLook}, // the alarm is still on
	} {
		*used = tt.used
		if got := a.checkMemory(); got != tt.want {
			t.Errorf("%d bytes in use: looks again after %v, want %v", tt.used, got, tt.want)
		}
	}
}

func TestMemoryInUse(t *testing.T) {
	runtime.GC()
	if got := memoryInUse(); got < 100<<10 || got > 1<<30 {
		t.Errorf("memoryInUse = %d, which is not what a test holds", got)
	}
}

func TestStoreAlarm(t *testing.T) {
	a, store, _, logs := newTestAlarms(t)
	for _, tt := range []struct {
		health persistence.Health
		want   string
	}{
		{persistence.Health{}, ""},
		{persistence.Health{DiskLow: true}, "low on disk"},
		{persistence.Health{}, ""},
		{persistence.Health{Err: errors.New("write: no space left on device")}, "low on disk"},
		{persistence.Health{Err: errors.New("write: no space left on device")}, "low on disk"},
	} {
		store.health = tt.health
		a.checkStore()
		if got := a.server.Alarm(); got != tt.want {
			t.Errorf("%+v: alarm %q, want %q", tt.health, got, tt.want)
		}
	}
	if n := logs.FilterLevelExact(zap.ErrorLevel).Len(); n != 1 {
		t.Errorf("%d error lines for a failed store, want 1", n)
	}
}
