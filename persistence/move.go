package persistence

// tinyRun is the size of a chunk, in bytes, below which its runs are worth
// merging, and mergeTiny how many of them a lane may have.
const (
	tinyRun   = 4 << 10
	mergeTiny = 1000
)

type move struct{}

func (c *committer) moved(*move) {}

func (s *Disk) wantMerge(l *diskLog) {}

func (k *keeper) mergeRuns() {}

func (k *keeper) relocate() {}
