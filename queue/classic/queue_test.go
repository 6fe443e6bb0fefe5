package classic

import (
	"testing"

	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

func TestContract(t *testing.T) { queuetest.Run(t, New) }

func TestAppender(t *testing.T) { queuetest.RunAppender(t, New) }

func TestRedeliveredOnDisk(t *testing.T) { queuetest.RunRedeliveredOnDisk(t, New) }

func TestBurial(t *testing.T) { queuetest.RunBurial(t, New) }

func newHarness(t *testing.T, spec queue.Spec) *queuetest.Harness {
	t.Helper()
	return queuetest.New(t, New, spec)
}
