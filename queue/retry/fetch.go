package retry

import (
	"slices"

	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// fetchBlock is what Fetch reads at once, in bytes.
const fetchBlock = 64 << 10

// Fetch reads the records of a lane that have these ids, which it sorts, and calls
// f with each that is there. It waits for disk.
func Fetch(log persistence.Log, lane persistence.Lane, ids []queue.ID, f func(rec *persistence.Record) error) error {
	slices.Sort(ids)
	for len(ids) > 0 {
		recs, err := log.Load(lane, uint64(ids[0]), nil, fetchBlock)
		if err != nil {
			return err
		}
		if len(recs) == 0 {
			return nil
		}
		for i := range recs {
			for len(ids) > 0 && uint64(ids[0]) < recs[i].ID {
				ids = ids[1:] // it is not there
			}
			if len(ids) == 0 {
				return nil
			}
			if uint64(ids[0]) != recs[i].ID {
				continue
			}
			if err := f(&recs[i]); err != nil {
				return err
			}
			ids = ids[1:]
		}
	}
	return nil
}
