package quorum

import (
	"flag"
	"os"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

// TestMain leaves out what the common contract says of queues that have
// transient messages, conditional deletes and unchanged headers; TestStoresEverything,
// TestDeleteTakesNoConditions and TestStatus say what a quorum queue does.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.skip", "^TestContract$/^(DeleteConditions|PersistentWaitsForCommit|RestartKeepsMessage|RestartKeepsPersistent|StatusCounts)$"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestContract(t *testing.T) { queuetest.Run(t, New) }

func newHarness(t testing.TB, a queue.Arguments) *queuetest.Harness {
	t.Helper()
	return queuetest.New(t, New, queue.Spec{Durable: true, Arguments: a})
}

func wantText(t testing.TB, err error, text string) {
	t.Helper()
	if err == nil || err.Error() != text {
		t.Errorf("error %v, want %q", err, text)
	}
}

var _ = frames.NotFound
