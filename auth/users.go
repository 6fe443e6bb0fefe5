package auth

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/persistence"
)

// A User is who logged in, as of the login.
type User struct {
	Name string
	Tags []string
}

// The tags that mean something (RabbitMQ 4.0); others are kept and shown.
const (
	Administrator = "administrator"
	Monitoring    = "monitoring"
	Policymaker   = "policymaker"
	Management    = "management"
	Impersonator  = "impersonator" // may publish with any user-id
)

// Has says whether the user has the tag.
func (u User) Has(tag string) bool { return slices.Contains(u.Tags, tag) }

// An Account is what there is to know about a user. The JSON form is the
// management API's.
type Account struct {
	Name         string        `json:"name"`
	PasswordHash string        `json:"password_hash"` // "" if there is no password
	Algorithm    Algorithm     `json:"hashing_algorithm"`
	Tags         []string      `json:"tags"`
	Limits       map[Limit]int `json:"limits"`
}

// account is a user in memory. It is immutable: a change makes a new one.
type account struct {
	name   string
	hash   hash
	tags   []string
	limits map[Limit]int
}

func (u *account) user() User { return User{Name: u.name, Tags: u.tags} }

func (u *account) public() Account {
	return Account{
		Name:         u.name,
		PasswordHash: u.hash.text,
		Algorithm:    u.hash.algorithm,
		Tags:         append([]string{}, u.tags...),
		Limits:       u.copyLimits(),
	}
}

func (u *account) copyLimits() map[Limit]int {
	limits := make(map[Limit]int, len(u.limits))
	maps.Copy(limits, u.limits)
	return limits
}

// PutUser makes a user, or replaces the password and tags of one; limits and
// permissions stay. It says whether the user is new.
func (a *Authority) PutUser(name string, s Secret, tags []string) (created bool, err error) {
	if name == "" {
		return false, frames.Errorf(frames.PreconditionFailed, "a user name must not be empty")
	}
	tags = cleanTags(tags)
	if err := checkNames(append([]string{name}, tags...)...); err != nil {
		return false, err
	}
	h, err := a.hashOf(s)
	if err != nil {
		return false, err
	}
	a.edit.Lock()
	defer a.edit.Unlock()
	next := account{name: name}
	old := a.lookup(name)
	if old != nil {
		next = *old
	}
	next.hash, next.tags = h, tags
	if err := a.putAccount(&next); err != nil {
		return false, err
	}
	if old == nil {
		a.event("user.created", field("name", name))
	} else {
		a.event("user.password.changed", field("name", name))
	}
	a.event("user.tags.set", field("name", name), field("tags", list(tags)))
	a.log.Info("user set", zap.String("user", name), zap.Strings("tags", tags), zap.Bool("created", old == nil))
	return old == nil, nil
}

// cleanTags drops empty tags and the blanks around the others.
func cleanTags(tags []string) []string {
	clean := make([]string, 0, len(tags))
	for _, t := range tags {
		if t = strings.TrimSpace(t); t != "" {
			clean = append(clean, t)
		}
	}
	return clean
}

// change replaces an account by a changed copy.
func (a *Authority) change(name string, edit func(*account)) error {
	a.edit.Lock()
	defer a.edit.Unlock()
	old, err := a.account(name)
	if err != nil {
		return err
	}
	next := *old
	edit(&next)
	return a.putAccount(&next)
}

// DeleteUser deletes a user with its permissions and calls OnUserDeleted.
func (a *Authority) DeleteUser(name string) error {
	if err := a.deleteUser(name); err != nil {
		return err
	}
	a.event("user.deleted", field("name", name))
	a.log.Info("user deleted", zap.String("user", name))
	if a.OnUserDeleted != nil {
		a.OnUserDeleted(name)
	}
	return nil
}

func (a *Authority) deleteUser(name string) error {
	a.edit.Lock()
	defer a.edit.Unlock()
	if _, err := a.account(name); err != nil {
		return err
	}
	// Permissions go first: a crash in between must not leave some behind for
	// a later user of that name.
	if err := a.dropGrants(func(k grantKey) bool { return k.user == name }); err != nil {
		return err
	}
	if err := a.defs.Delete(persistence.Users, name); err != nil {
		return err
	}
	a.mu.Lock()
	delete(a.users, name)
	a.mu.Unlock()
	return nil
}

// Users lists all users in order of name.
func (a *Authority) Users() iter.Seq[Account] {
	return func(yield func(Account) bool) {
		a.mu.RLock()
		users := maps.Clone(a.users)
		a.mu.RUnlock()
		for _, name := range sortedKeys(users) {
			if !yield(users[name].public()) {
				return
			}
		}
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// User returns a user; ok is false if there is none of that name.
func (a *Authority) User(name string) (u Account, ok bool) {
	if found := a.lookup(name); found != nil {
		return found.public(), true
	}
	return Account{}, false
}

func (a *Authority) lookup(name string) *account {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.users[name]
}

// account is lookup for those to whom a missing user is an error.
func (a *Authority) account(name string) (*account, error) {
	if u := a.lookup(name); u != nil {
		return u, nil
	}
	return nil, frames.Errorf(frames.NotFound, "no user '%s'", name)
}

// putAccount stores an account and puts it in force. a.edit must be held.
func (a *Authority) putAccount(u *account) error {
	err := a.put(persistence.Users, u.name, storedAccount{formatVersion, u.public()})
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.users[u.name] = u
	a.mu.Unlock()
	return nil
}

func (a *Authority) put(kind persistence.Kind, key string, v any) error {
	value, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return a.defs.Put(kind, key, value)
}

// formatVersion is the version of the JSON in the store.
const formatVersion = 1

func checkVersion(version int) error {
	if version != formatVersion {
		return fmt.Errorf("format version %d is not known, only %d: use the broker version that wrote it", version, formatVersion)
	}
	return nil
}

// storedAccount is the store's form of a user.
type storedAccount struct {
	Version int `json:"version"`
	Account
}

func decodeAccount(value []byte) (*account, error) {
	var s storedAccount
	if err := json.Unmarshal(value, &s); err != nil {
		return nil, err
	}
	if err := checkVersion(s.Version); err != nil {
		return nil, err
	}
	h, err := parseHash(s.Algorithm, s.PasswordHash)
	if err != nil {
		return nil, err
	}
	return &account{name: s.Name, hash: h, tags: s.Tags, limits: s.Limits}, nil
}
