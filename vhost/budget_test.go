package vhost

import (
	"fmt"
	"math"
	"runtime"
	"testing"
)

// heapUse is how many bytes of the heap fn leaves in use.
func heapUse(fn func()) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	fn()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// idleQueueBudget is what an idle queue may keep in memory, in bytes, with its log
// and its name: a hundred thousand of them have to fit in 150 MB.
const idleQueueBudget = 1800

func TestAllocIdleQueue(t *testing.T) {
	store := openDisk(t, t.TempDir())
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	set := openClassic(t, store)
	v, _ := set.Get("/")
	for _, durable := range []bool{false, true} {
		const n = 2000
		each := int64(math.MaxInt64)
		for round := range 3 { // what else is going on is not in all of them
			each = min(each, heapUse(func() {
				var by laterActor
				for i := range n {
					if _, err := v.DeclareQueue(&by, QueueDeclare{Name: fmt.Sprintf("idle-%t-%d", durable, round*n+i), Durable: durable}); err != nil {
						t.Fatal(err)
					}
				}
				if err := by.changes.Wait(); err != nil {
					t.Fatal(err)
				}
			})/n)
		}
		if each > idleQueueBudget {
			t.Errorf("durable %t: an idle queue keeps %d bytes, the budget is %d", durable, each, idleQueueBudget)
		}
		t.Logf("durable %t: %d bytes each", durable, each)
	}
	runtime.KeepAlive(set)
}
