// Package auth says who a client is and what it may touch: users and their
// password hashes, tags and limits, permissions, topic permissions, and the
// SASL mechanisms of connection.start. It keeps them in memory, writes every
// change through to the store first, and never keeps or logs a password.
//
// It knows virtual hosts by name only: whether one exists, and which exchange
// is a topic exchange, is for the caller to know.
package auth

import (
	"crypto/rand"
	"fmt"
	"iter"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/persistence"
)

// Definitions is the part of the store that keeps users and permissions.
// persistence.Store satisfies it.
type Definitions interface {
	Put(kind persistence.Kind, key string, value []byte) error // durable on return
	Delete(kind persistence.Kind, key string) error
	All(kind persistence.Kind) iter.Seq2[string, []byte]
}

// An Authority holds all users and permissions of a node. Its methods are safe
// for concurrent use. A change is on disk when the method that made it returns,
// and open connections meet it with their next check.
type Authority struct {
	*state
	by string // immutable: who makes changes, for events
}

// internalUser is who makes the changes that no user has asked for (RabbitMQ 4.0).
const internalUser = "rmq-internal"

// As is the same authority for changes that a user makes: events name it.
func (a *Authority) As(user string) *Authority { return &Authority{a.state, user} }

// A state is what all views of an Authority share.
type state struct {
	// OnUserDeleted is called after a user is gone, with no lock held and from
	// the goroutine that deleted it: the front doors close what the user has
	// open. It may be nil; it must be set before the Authority is shared.
	OnUserDeleted func(name string)
	// OnEvent is told of every change of users, limits and permissions, by the
	// goroutine that made it, which may hold the lock of changes: it must not
	// change anything here. It may be nil; set it like OnUserDeleted.
	OnEvent func(key string, fields frames.Table)

	cfg  Config // immutable, defaults filled in
	rule passwordRule
	defs Definitions
	log  *zap.Logger

	guesses  guesses
	decoy    hash // of nobody's password; immutable
	attempts attempts

	// edit makes changes one at a time. It is held across the store's write
	// and taken before mu; nothing that only reads takes it.
	edit sync.Mutex

	// mu guards the maps below, for one map operation at a time. What they
	// point to is immutable (accounts) or updates itself (grants).
	mu     sync.RWMutex
	users  map[string]*account
	grants map[grantKey]*Grants
}

// New returns an Authority with what defs holds. If there is no user at all it
// makes the default user first, unless cfg says not to.
func New(cfg Config, defs Definitions) (*Authority, error) {
	cfg = cfg.withDefaults()
	rule, err := cfg.check()
	if err != nil {
		return nil, err
	}
	a := &Authority{by: internalUser, state: &state{
		cfg:    cfg,
		rule:   rule,
		defs:   defs,
		log:    cfg.Log,
		users:  make(map[string]*account),
		grants: make(map[grantKey]*Grants),
	}}
	a.decoy = newHash(cfg.Algorithm, rand.Text())
	if err := a.load(); err != nil {
		return nil, err
	}
	if len(a.users) > 0 || cfg.NoDefaultUser {
		return a, nil
	}
	return a, a.seed()
}

// seed makes the default user. Its permissions are written first: after a crash
// in between they belong to nobody, and the next start does both again.
func (a *Authority) seed() error {
	row := a.cfg.DefaultPermissions
	row.User, row.VHost = a.cfg.DefaultUser, a.cfg.DefaultVHost
	if err := a.putPermissions(row); err != nil {
		return fmt.Errorf("create the default user: %w", err)
	}
	if _, err := a.PutUser(a.cfg.DefaultUser, Secret{Password: a.cfg.DefaultPass}, a.cfg.DefaultTags); err != nil {
		return fmt.Errorf("create the default user: %w", err)
	}
	return nil
}

// CheckDefaultUser says why the default user could not be made, if there is to be one.
func (a *Authority) CheckDefaultUser() error {
	if a.cfg.NoDefaultUser {
		return nil
	}
	if err := a.rule.check(a.cfg.DefaultPass); err != nil {
		return fmt.Errorf("create the default user: %w", err)
	}
	return nil
}

// Reset deletes all users, and makes the default user as New does in an empty store.
func (a *Authority) Reset() error {
	for u := range a.Users() {
		if err := a.DeleteUser(u.Name); err != nil {
			return err
		}
	}
	if a.cfg.NoDefaultUser {
		return nil
	}
	return a.seed()
}

// load fills the maps from the store.
func (a *Authority) load() error {
	for key, value := range a.defs.All(persistence.Users) {
		u, err := decodeAccount(value)
		if err != nil {
			return fmt.Errorf("read user %q: %w", key, err)
		}
		a.users[u.name] = u
	}
	orphans, err := a.loadPermissions()
	if err != nil {
		return err
	}
	topicOrphans, err := a.loadTopicPermissions()
	if err != nil {
		return err
	}
	return a.drop(slices.Concat(orphans, topicOrphans))
}

// loadPermissions returns the rows whose user does not exist: what is left when
// the broker stopped in the middle of a change. They must not come to life when
// a user of that name is made again.
func (a *Authority) loadPermissions() (orphans []storedKey, err error) {
	for key, value := range a.defs.All(persistence.Permissions) {
		row, err := decodePermissions(value)
		if err != nil {
			return nil, fmt.Errorf("read permissions %s: %w", key, err)
		}
		if a.users[row.User] == nil {
			orphans = append(orphans, storedKey{persistence.Permissions, key})
			continue
		}
		next, err := a.handle(row.User, row.VHost).cur.Load().with(row)
		if err != nil {
			return nil, fmt.Errorf("read permissions %s: %w", key, err)
		}
		a.publish(row.User, row.VHost, next)
	}
	return orphans, nil
}

func (a *Authority) loadTopicPermissions() (orphans []storedKey, err error) {
	for key, value := range a.defs.All(persistence.TopicPermissions) {
		row, err := decodeTopicPermissions(value)
		if err != nil {
			return nil, fmt.Errorf("read topic permissions %s: %w", key, err)
		}
		if a.users[row.User] == nil {
			orphans = append(orphans, storedKey{persistence.TopicPermissions, key})
			continue
		}
		next, err := a.handle(row.User, row.VHost).cur.Load().withTopic(row)
		if err != nil {
			return nil, fmt.Errorf("read topic permissions %s: %w", key, err)
		}
		a.publish(row.User, row.VHost, next)
	}
	return orphans, nil
}

// A storedKey names one definition.
type storedKey struct {
	kind persistence.Kind
	key  string
}

func (a *Authority) drop(keys []storedKey) error {
	for _, k := range keys {
		if err := a.defs.Delete(k.kind, k.key); err != nil {
			return fmt.Errorf("delete definition %s: %w", k.key, err)
		}
	}
	return nil
}
