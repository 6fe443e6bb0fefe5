package vhost

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"github.com/leveretmq/leveret/persistence"
)

// definitions writes definitions to the store without a lock of the topology
// held. What is to be written is decided under that lock, by set; the write is
// done afterwards, by wait, so that the writes of many clients, and of many
// operations of one, share a commit.
//
// What could not be written stays to be written: whoever builds on it tries again,
// and is told.
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

// last returns the last decision of the key if it is not durable yet. One whose
// write failed is tried again.
func (d *definitions) last(kind persistence.Kind, key string) (pending, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.slots[definitionID{kind, key}]
	if s == nil {
		return pending{}, false
	}
	if !s.writing {
		s.failed = 0
	}
	return pending{s, s.decided}, true
}

// wait returns when all of these decisions, or later ones of their keys, are
// durable. What no other goroutine writes it writes itself, all in one go, so that
// the definitions of an operation, or of many, share a commit. The error is the
// first one.
func (d *definitions) wait(all ...pending) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var first error
	var mine []*slot
	for {
		all, mine = d.sortLocked(all, mine[:0], &first)
		switch {
		case len(mine) > 0:
			d.writeLocked(mine)
		case len(all) > 0:
			all[0].slot.changed.Wait()
		default:
			return first
		}
	}
}

// sortLocked drops what is decided by now, and notes why the first of it failed. It
// returns the rest, and the slots of those that nobody writes, in their order.
func (d *definitions) sortLocked(all []pending, mine []*slot, first *error) ([]pending, []*slot) {
	rest := all[:0]
	for _, p := range all {
		s := p.slot
		switch {
		case s.durable >= p.decision:
			continue
		case s.failed >= p.decision:
			*first = cmp.Or(*first, s.err)
			continue
		case !s.writing:
			s.writing = true
			mine = append(mine, s)
		}
		rest = append(rest, p)
	}
	return rest, mine
}

// writeLocked writes the newest decisions of slots, which it was agreed to write.
// d.mu must be held; it is released during the write.
func (d *definitions) writeLocked(slots []*slot) {
	defs := make([]persistence.Definition, len(slots))
	decisions := make([]uint64, len(slots))
	for i, s := range slots {
		defs[i] = persistence.Definition{Kind: s.id.kind, Key: s.id.key, Value: s.value}
		decisions[i] = s.decided
	}
	d.mu.Unlock()
	errs := d.store.PutAll(defs)
	d.mu.Lock()
	for i, s := range slots {
		var err error
		if errs != nil && errs[i] != nil {
			err = fmt.Errorf("write definition %c %q: %w", s.id.kind, s.id.key, errs[i])
		}
		d.writtenLocked(s, decisions[i], err)
	}
}

// writtenLocked notes how the write of a decision went.
func (d *definitions) writtenLocked(s *slot, decision uint64, err error) {
	s.writing = false
	if err != nil {
		s.failed, s.err = decision, err
	} else {
		s.durable = decision
	}
	if s.durable == s.decided {
		delete(d.slots, s.id)
	}
	s.changed.Broadcast()
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
