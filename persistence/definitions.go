package persistence

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"sync"
)

// definitions are small values under keys that people give. A value that would
// go to the value log is cut into fragments that do not: there it would keep a
// whole file from being collected, for as long as the definition stands.
type definitions struct {
	// mu guards fragments, and keeps two changes of a key in order.
	mu        sync.Mutex
	fragments map[string]int // kind and key: fragments besides the first, if any
}

// fragmentSize is below valueThreshold with a margin for the count. Values over
// maxFragmented, which are not expected, go to the value log in one piece. So do
// those of long keys, which each fragment repeats: all of them are written, or
// deleted, with one transaction, and that of the profile tiny holds 134 KiB.
const (
	fragmentSize  = 960
	maxFragmented = 64 << 10
	maxFragments  = 128 << 10 // with their keys
	// longestStored is the longest key of a definition that may be there, in bytes: the
	// engine takes 65,000 with the kind.
	longestStored = 65_000 - 2
)

// MaxKey is the longest key that a definition is stored under, in bytes.
const MaxKey = 32 << 10

// write makes many changes. They are submitted in their order and together, so
// that they share as few commits as they fit into; one that is refused costs only
// itself. See Store.PutAll for what it returns.
func (d *definitions) write(s *Disk, defs []Definition) (errs []error) {
	ops := make([]*op, 0, len(defs))
	which := make([]int, 0, len(defs)) // of defs an op is for
	note := func(i int, err error) {
		if errs == nil {
			errs = make([]error, len(defs))
		}
		errs[i] = err
	}
	d.mu.Lock()
	for i := range defs {
		writes, err := d.writesLocked(&defs[i], s.sizes.group)
		if err != nil {
			note(i, err)
			continue
		}
		if len(writes) > 0 {
			ops = append(ops, &op{writes: writes, done: make(chan error, 1)})
			which = append(which, i)
		}
	}
	s.submitAll(ops...)
	d.mu.Unlock()
	for i, o := range ops {
		if err := <-o.done; err != nil {
			note(which[i], err)
		}
	}
	return errs
}

func (d *definitions) writeOne(s *Disk, def Definition) error {
	if errs := d.write(s, []Definition{def}); errs != nil {
		return errs[0]
	}
	return nil
}

// writesLocked is what one change writes; limit is the largest value, in bytes.
func (d *definitions) writesLocked(def *Definition, limit int) ([]write, error) {
	if def.Value == nil && len(def.Key) > longestStored {
		return nil, nil // there is none
	}
	if def.Value == nil {
		writes := []write{{key: appendDefinitionKey(nil, def.Kind, def.Key), del: true}}
		return d.trimLocked(writes, def.Kind, def.Key, 0), nil
	}
	value := def.Value
	if len(def.Key) > MaxKey {
		return nil, fmt.Errorf("store a definition under a key of %d bytes: at most %d are allowed; choose a shorter name", len(def.Key), MaxKey)
	}
	if len(value) > limit {
		return nil, fmt.Errorf("store a definition of %d bytes: at most %d are allowed", len(value), limit)
	}
	n := fragmentsOf(len(def.Key), len(value))
	first := value
	if n > 0 {
		first = value[:fragmentSize]
	}
	writes := []write{{
		key: appendDefinitionKey(nil, def.Kind, def.Key),
		val: append(binary.AppendUvarint(nil, uint64(n)), first...),
	}}
	for i := 1; i <= n; i++ {
		part := value[i*fragmentSize : min((i+1)*fragmentSize, len(value))]
		writes = append(writes, write{key: appendFragmentKey(nil, def.Kind, i, def.Key), val: append([]byte(nil), part...)})
	}
	return d.trimLocked(writes, def.Kind, def.Key, n), nil
}

// fragmentsOf is how many fragments besides the first a value is cut into.
func fragmentsOf(key, value int) int {
	if value <= fragmentSize || value > maxFragmented {
		return 0
	}
	n := (value - 1) / fragmentSize
	if (n+1)*(key+fragmentSize+32) > maxFragments {
		return 0
	}
	return n
}

// trimLocked deletes the fragments that a definition has beyond n, and notes n.
func (d *definitions) trimLocked(writes []write, kind Kind, key string, n int) []write {
	name := string([]byte{byte(kind)}) + key
	for i := n + 1; i <= d.fragments[name]; i++ {
		writes = append(writes, write{key: appendFragmentKey(nil, kind, i, key), del: true})
	}
	if n == 0 {
		delete(d.fragments, name)
		return writes
	}
	if d.fragments == nil {
		d.fragments = make(map[string]int)
	}
	d.fragments[name] = n
	return writes
}

// errEnough ends a scan whose caller wants no more.
var errEnough = errors.New("enough")

// all reads while it yields: a hundred thousand definitions are never in memory
// together.
func (d *definitions) all(s *Disk, kind Kind) iter.Seq2[string, []byte] {
	prefix := []byte{keyDefinition, byte(kind)}
	return func(yield func(string, []byte) bool) {
		err := s.eng.scan(prefix, func(it item) error {
			key := string(it.key[len(prefix):])
			var value []byte
			err := it.value(func(val []byte) (err error) {
				value, _, err = joinFragments(s.eng, kind, key, val)
				return err
			})
			if err == nil && !yield(key, value) {
				err = errEnough
			}
			return err
		})
		if err != nil && err != errEnough {
			s.stopFor(fmt.Errorf("read the definitions of kind %q: %w", kind, err))
		}
	}
}

// joinFragments puts a definition together from its first value and the rest.
func joinFragments(eng engine, kind Kind, key string, first []byte) (value []byte, fragments int, err error) {
	n, size := binary.Uvarint(first)
	if size <= 0 || n > maxFragmented/fragmentSize {
		return nil, 0, fmt.Errorf("%w: definition %q", errCorrupt, key)
	}
	value = append([]byte(nil), first[size:]...)
	for i := 1; i <= int(n); i++ {
		err := eng.get(appendFragmentKey(nil, kind, i, key), func(val []byte, _ byte) error {
			value = append(value, val...)
			return nil
		})
		if err != nil {
			return nil, 0, fmt.Errorf("read fragment %d of definition %q: %w", i, key, err)
		}
	}
	return value, int(n), nil
}

// load learns which definitions have fragments.
func (d *definitions) load(eng engine) error {
	return eng.scan([]byte{keyFragment}, func(it item) error {
		if len(it.key) < 4 {
			return nil
		}
		name := string(it.key[1:2]) + string(it.key[4:])
		if d.fragments == nil {
			d.fragments = make(map[string]int)
		}
		d.fragments[name] = max(d.fragments[name], int(binary.BigEndian.Uint16(it.key[2:])))
		return nil
	})
}

// do has writes committed in one transaction and waits for it.
func (s *Disk) do(writes []write) error {
	return <-s.submit(writes).done
}
