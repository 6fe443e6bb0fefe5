package management

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"time"
)

// fakeOperator notes what it is told.
type fakeOperator struct {
	level, category string
	memory, disk    int64
	suspended       bool
	resets          int
	failure         error
}

func (o *fakeOperator) SetLogLevel(category, level string) error {
	o.category, o.level = category, level
	return o.failure
}
func (o *fakeOperator) MemoryLimit() int64             { return o.memory }
func (o *fakeOperator) SetMemoryLimit(n int64)         { o.memory = n }
func (o *fakeOperator) MemoryAvailable() int64         { return 1000 }
func (o *fakeOperator) SetDiskFreeLimit(n int64) error { o.disk = n; return o.failure }
func (o *fakeOperator) SuspendListeners()              { o.suspended = true }
func (o *fakeOperator) ResumeListeners() error         { o.suspended = false; return o.failure }

func (o *fakeOperator) Reset() error { o.resets++; return o.failure }

func TestSettingsOfARunningNode(t *testing.T) {
	o := &fakeOperator{memory: 600}
	a := newAPI(t, func(c *Config) { c.Operator = o })
	node := "/nodes/" + a.s.cfg.Node
	for _, tt := range []struct {
		path, body string
		status     int
	}{
		{"/log-level", `{"level":"debug","category":"queue"}`, 204},
		{"/memory-limit", `{"fraction":0.25}`, 204},
		{"/memory-limit", `{"fraction":1.5}`, 400},
		{"/memory-limit", `{"fraction":-0.1}`, 400},
		{"/memory-limit", `{"bytes":0}`, 400},
		{"/memory-limit", `{"fraction":"x"}`, 400},
		{"/memory-limit", `{}`, 400},
		{"/disk-free-limit", `{"bytes":"123"}`, 204},
		{"/disk-free-limit", `{"bytes":-1}`, 400},
		{"/listeners", `{"accept":false}`, 204},
		{"/listeners", `{}`, 400},
	} {
		a.do("PUT", node+tt.path, tt.body, tt.status)
	}
	if want := (fakeOperator{level: "debug", category: "queue", memory: 250, disk: 123, suspended: true}); *o != want {
		t.Errorf("the operator was told %+v, want %+v", *o, want)
	}
	a.do("PUT", node+"/disk-free-limit", `{"fraction":2.0}`, 204)
	a.do("PUT", node+"/listeners", `{"accept":true}`, 204)
	if o.disk != 2000 || o.suspended {
		t.Errorf("the operator was told %+v, want a disk limit of twice the memory, and listeners", *o)
	}
	has(t, a.do("GET", node, "", 200), J{"mem_limit": 250.0})
	for _, none := range []string{`{"fraction":0}`, `{"bytes":0}`} {
		o.disk = 1
		if a.do("PUT", node+"/disk-free-limit", none, 204); o.disk != 0 {
			t.Errorf("%s: the operator was told of a disk limit of %d, want 0", none, o.disk)
		}
	}
	a.do("PUT", node+"/memory-limit", `{"fraction":0}`, 204)
	if o.memory != 0 {
		t.Errorf("the operator was told of a memory limit of %d, want 0", o.memory)
	}
	o.failure = errors.New("there is no log level \"x\"")
	has(t, a.do("PUT", node+"/log-level", `{"level":"x"}`, 400), J{"reason": `there is no log level "x"`})
	a.do("PUT", "/nodes/other/log-level", `{"level":"debug"}`, 404)
}

// fakeMaintenance is drained or not.
type fakeMaintenance struct{ drained bool }

func (m *fakeMaintenance) Drain(time.Duration) { m.drained = true }
func (m *fakeMaintenance) Revive()             { m.drained = false }
func (m *fakeMaintenance) InMaintenance() bool { return m.drained }

// A node is reset over the socket only, and in maintenance.
func TestResetOfANode(t *testing.T) {
	o, m := &fakeOperator{}, &fakeMaintenance{}
	a := newAPI(t, func(c *Config) { c.Operator, c.Maintenance = o, m })
	path := "/nodes/" + a.s.cfg.Node + "/reset"
	local := func(want int) {
		t.Helper()
		r := httptest.NewRequest("POST", "/api"+path, nil)
		w := httptest.NewRecorder()
		a.s.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), localKey{}, true)))
		if w.Code != want {
			t.Errorf("over the socket: %d %s, want %d", w.Code, w.Body, want)
		}
	}
	local(400)
	m.drained = true
	a.do("POST", path, "", 400)
	if o.resets != 0 {
		t.Fatal("the node was reset all the same")
	}
	local(204)
	if o.resets != 1 {
		t.Errorf("%d resets, want 1", o.resets)
	}
}

func TestSettingsWithoutAnOperator(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/nodes/"+a.s.cfg.Node+"/memory-limit", `{"bytes":1}`, 400)
}
