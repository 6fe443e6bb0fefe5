package vhost

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"github.com/leveretmq/leveret/persistence"
)

// definitions writes definitions to the store without a lock of the topology
// held. What is to be written is decided under that lock, by set; the write is
// done afterwards, by wait, so that the writes of many clients share a commit.
//
// Two writes of one key never overlap, and a write always takes the newest
// decision, so the store ends with what was decided last, whoever was faster.
// Between different keys there is no order. None is needed: a binding's
// definition names the incarnations of its ends, and is stale when one of them
// is gone or is another one of the same name (see recovery).
type definitions struct {
	store persistence.Store

	// mu guards slots and what is in them; a leaf, never held across a write.
	mu    sync.Mutex
	slots map[definitionID]*slot // of the keys whose last decision is not durable
}

type definitionID struct {
	kind persistence.Kind
	key  string
}

// A slot is the state of one key. It is guarded by definitions.mu.
type slot struct {
	id      definitionID
	value   []byte // to be written; nil to delete
	decided uint64 // counts decisions
	durable uint64 // the decision that is durable
	failed  uint64 // the decision whose write failed with err
	err     error
	writing bool
	changed sync.Cond // durable, failed or writing has changed
}

// A pending is a decision that is on its way to the store.
type pending struct {
	slot     *slot
	decision uint64
}

func newDefinitions(store persistence.Store) *definitions {
	return &definitions{store: store, slots: make(map[definitionID]*slot)}
}

// set decides what is to be written under the key; nil deletes it. The caller
// holds the lock that orders the decisions of this key.
func (d *definitions) set(kind persistence.Kind, key string, value []byte) pending {
	id := definitionID{kind, key}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.slots[id]
	if s == nil {
		s = &slot{id: id}
		s.changed.L = &d.mu
		d.slots[id] = s
	}
	s.value = value
	s.decided++
	return pending{s, s.decided}
}

// last returns the last decision of the key if it is not durable yet.
func (d *definitions) last(kind persistence.Kind, key string) (pending, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.slots[definitionID{kind, key}]
	if s == nil {
		return pending{}, false
	}
	return pending{s, s.decided}, true
}

// wait returns when the decision, or a later one of its key, is durable. It
// writes itself unless another goroutine does.
func (d *definitions) wait(p pending) error {
	s := p.slot
	d.mu.Lock()
	defer d.mu.Unlock()
	for s.durable < p.decision {
		if s.failed >= p.decision {
			return s.err
		}
		if s.writing {
			s.changed.Wait()
			continue
		}
		d.writeLocked(s)
	}
	return nil
}

// writeLocked writes the newest decision. d.mu must be held; it is released
// during the write.
func (d *definitions) writeLocked(s *slot) {
	value, decision := s.value, s.decided
	s.writing = true
	d.mu.Unlock()
	err := d.write(s.id, value)
	d.mu.Lock()
	s.writing = false
	if err != nil {
		s.failed, s.err = decision, err
	} else {
		s.durable = decision
	}
	if s.decided == decision {
		delete(d.slots, s.id)
	}
	s.changed.Broadcast()
}

func (d *definitions) write(id definitionID, value []byte) error {
	var err error
	if value == nil {
		err = d.store.Delete(id.kind, id.key)
	} else {
		err = d.store.Put(id.kind, id.key, value)
	}
	if err != nil {
		return fmt.Errorf("write definition %c %q: %w", id.kind, id.key, err)
	}
	return nil
}

// maxWriters is how many definitions of one operation are written at a time;
// they share commits.
const maxWriters = 64

// waitAll waits for all of them and returns the first error.
func (d *definitions) waitAll(all []pending) error {
	if len(all) == 1 {
		return d.wait(all[0])
	}
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex // guards first
		first error
		slots = make(chan struct{}, maxWriters)
	)
	for _, p := range all {
		slots <- struct{}{}
		wg.Go(func() { // ends with its write
			err := d.wait(p)
			<-slots
			mu.Lock()
			if first == nil {
				first = err
			}
			mu.Unlock()
		})
	}
	wg.Wait()
	return first
}

// keyEscape keeps the separator out of the parts of a key: names may hold any
// character.
var keyEscape = strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02")

// definitionKey joins names to the key of a definition. Different lists of
// names have different keys.
func definitionKey(parts ...string) string {
	for i, s := range parts {
		if strings.ContainsAny(s, "\x00\x01") {
			parts[i] = keyEscape.Replace(s)
		}
	}
	return strings.Join(parts, "\x00")
}

// digest shortens encoded arguments for a key; it is "" for none.
func digest(args []byte) string {
	if len(args) == 0 {
		return ""
	}
	sum := sha256.Sum256(args)
	return hex.EncodeToString(sum[:16])
}
