package quorum

import (
	"testing"

	"github.com/leveretmq/leveret/queue/queuetest"
)

func TestDedupContract(t *testing.T) { queuetest.RunDedup(t, New) }
