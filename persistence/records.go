package persistence

import "iter"

// recordsBlock is how much Records reads of a lane at once, in bytes.
const recordsBlock = 1 << 20

// Records reads the live records of a lane with id >= from, in order. It waits for
// disk, block by block. A record is there until the next one is asked for; the
// bytes that it points to may be kept. An error comes alone and last.
func Records(log Log, lane Lane, from uint64) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		var recs []Record
		for {
			var err error
			if recs, err = log.Load(lane, from, recs[:0], recordsBlock); err != nil {
				yield(nil, err)
				return
			}
			if len(recs) == 0 {
				return
			}
			for i := range recs {
				if !yield(&recs[i], nil) {
					return
				}
			}
			from = recs[len(recs)-1].ID + 1
			clear(recs) // what the caller did not keep need not wait for the end
		}
	}
}
