package amqp

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// Readers that never wait take turns with one that has little to read. Without a
// turnstile some ten thousand turns go by until the scheduler looks at its socket.
func TestReadersThatNeverWaitLetOthersRead(t *testing.T) {
	if !canReadNow {
		return // there are only ordinary yields on this system
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	ours, theirs := socketPair(t)
	var turns turnstile
	defer turns.close()
	var now, passed, began atomic.Int64
	var readers sync.WaitGroup
	quiet := make(chan int64, 1)
	go func() { // ends with the byte, which the socket's end would be, too
		var b [1]byte
		ours.Read(b[:])
		quiet <- passed.Load() - began.Load()
	}()
	stop := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				passed.Add(1)
				turns.pass(now.Add(turnEvery) + 1<<60)
			}
		})
	}
	for passed.Load() < 100 {
		runtime.Gosched()
	}
	began.Store(passed.Load())
	theirs.Write([]byte{0})
	if n := <-quiet; n > 500 {
		t.Errorf("the quiet reader had its turn after %d turns of the others, want at most 500", n)
	}
	close(stop)
	readers.Wait()
}

func TestATurnstileLetsEveryReaderThrough(t *testing.T) {
	var turns turnstile
	defer turns.close()
	var readers sync.WaitGroup
	for i := range 8 {
		readers.Go(func() {
			for n := range 1000 {
				turns.pass(int64(n * (i % 3)))
			}
		})
	}
	readers.Wait()
}

func TestATurnstileWithoutAPipeYields(t *testing.T) {
	turns := turnstile{fails: true}
	turns.pass(1)
	if turns.round != nil || turns.ended != 0 {
		t.Error("a round has begun")
	}
	turns.close()
	turns.pass(2)
}
