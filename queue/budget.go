package queue

import "sync/atomic"

// A Budget bounds the memory that the bodies of waiting messages take in all
// queues together. A queue that finds it exceeded drops bodies that are stored
// and reads them back later.
type Budget struct {
	limit atomic.Int64 // in bytes; 0 is no limit
	used  atomic.Int64
}

// NewBudget returns a budget of so many bytes; 0 is no limit.
func NewBudget(limit int64) *Budget {
	b := &Budget{}
	b.limit.Store(limit)
	return b
}

// Add counts n bytes more, or less if n is negative.
func (b *Budget) Add(n int64) { b.used.Add(n) }

// Used is how much is counted now, in bytes.
func (b *Budget) Used() int64 { return b.used.Load() }

// Limit is the budget in bytes; 0 is none.
func (b *Budget) Limit() int64 { return b.limit.Load() }

// SetLimit changes the limit in bytes; 0 is none.
func (b *Budget) SetLimit(n int64) { b.limit.Store(n) }

// Excess is how many bytes have to go, once the limit is exceeded, until a
// eighth of it is free; 0 or less if none.
func (b *Budget) Excess() int64 {
	limit := b.limit.Load()
	if limit <= 0 {
		return 0
	}
	return b.used.Load() - limit/8*7
}

// Pressed says whether the limit is exceeded by more than an eighth: queues that
// keep a little each are too many.
func (b *Budget) Pressed() bool {
	limit := b.limit.Load()
	return limit > 0 && b.used.Load() > limit/8*9
}

// Exceeded says whether more is used than allowed.
func (b *Budget) Exceeded() bool {
	limit := b.limit.Load()
	return limit > 0 && b.used.Load() > limit
}
