package message

import "testing"

// BenchmarkSizes is what counting sizes costs the hot path for one message of a batch
// of 64: "with" against "without", which passes over the same messages. "large" have
// bodies in the last buckets but two.
func BenchmarkSizes(b *testing.B) {
	var bodies [64][]byte
	for i := range bodies {
		bodies[i] = make([]byte, 16+i)
	}
	large := make([]byte, 5e6)
	var to Sizes
	var batch SizeBatch
	var total int
	b.Run("without", func(b *testing.B) {
		for n := 0; n < b.N; n += len(bodies) {
			for i := range bodies {
				total += len(bodies[i])
			}
		}
	})
	b.Run("with", func(b *testing.B) {
		for n := 0; n < b.N; n += len(bodies) {
			for i := range bodies {
				total += len(bodies[i])
				batch.Add(len(bodies[i]))
			}
			batch.Flush(&to)
		}
	})
	b.Run("large", func(b *testing.B) {
		for n := 0; n < b.N; n += len(bodies) {
			for range bodies {
				total += len(large)
				batch.Add(len(large))
			}
			batch.Flush(&to)
		}
	})
	if total < 0 {
		b.Fatal(total)
	}
}
