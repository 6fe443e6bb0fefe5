package auth

import (
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/persistence"
)

// Permissions are a user's regular expressions in one virtual host, each
// searched for anywhere in a resource's name. The empty one matches only the
// empty name. The JSON form is the management API's.
type Permissions struct {
	User      string `json:"user"`
	VHost     string `json:"vhost"`
	Configure string `json:"configure"`
	Write     string `json:"write"`
	Read      string `json:"read"`
}

// TopicPermissions are a user's regular expressions for the keys of one topic
// exchange: Write for routing keys, Read for binding keys. {username} and
// {vhost} stand for the user's name and the virtual host's.
type TopicPermissions struct {
	User     string `json:"user"`
	VHost    string `json:"vhost"`
	Exchange string `json:"exchange"`
	Write    string `json:"write"`
	Read     string `json:"read"`
}

// VHostAccess refuses with a 530 a user that has no permissions in the virtual
// host.
func (a *Authority) VHostAccess(u User, vhost string) error {
	if g := a.find(u.Name, vhost); g != nil && g.Granted() {
		return nil
	}
	return frames.Errorf(frames.NotAllowed, "access to vhost '%s' refused for user '%s'", vhost, u.Name)
}

// Check refuses with a 403 what the user may not do to the resource. Who checks
// often keeps the Grants instead.
func (a *Authority) Check(user, vhost string, r Resource, p Permission) error {
	return a.orNone(user, vhost).Check(r, p)
}

// CheckTopic refuses with a 403 a key of a topic exchange that the user may not
// use; see Grants.CheckTopic.
func (a *Authority) CheckTopic(user, vhost, exchange string, p Permission, key string) error {
	return a.orNone(user, vhost).CheckTopic(exchange, p, key)
}

// Grants returns the handle for a user in a virtual host. A connection takes it
// once, after VHostAccess, and keeps it. After the user or the virtual host is
// gone it refuses everything for good, even if one of that name is made anew.
func (a *Authority) Grants(user, vhost string) *Grants {
	if g := a.find(user, vhost); g != nil {
		return g
	}
	return a.handle(user, vhost)
}

// SetPermissions replaces a user's permissions in a virtual host, which the
// caller knows to exist. It says whether there were none before.
func (a *Authority) SetPermissions(user, vhost, configure, write, read string) (created bool, err error) {
	a.edit.Lock()
	defer a.edit.Unlock()
	if _, err := a.account(user); err != nil {
		return false, err
	}
	created = !a.orNone(user, vhost).Granted()
	if err := a.putPermissions(Permissions{user, vhost, configure, write, read}); err != nil {
		return false, err
	}
	a.event("permission.created", field("user", user), field("vhost", vhost),
		field("configure", configure), field("write", write), field("read", read))
	a.log.Info("permissions set", zap.String("user", user), zap.String("vhost", vhost),
		zap.String("configure", configure), zap.String("write", write), zap.String("read", read))
	return created, nil
}

// putPermissions stores a row and puts it in force.
func (a *Authority) putPermissions(row Permissions) error {
	if err := checkNames(row.VHost); err != nil {
		return err
	}
	next, err := a.orNone(row.User, row.VHost).cur.Load().with(row)
	if err != nil {
		return err
	}
	if err := a.put(persistence.Permissions, permissionsKey(row.User, row.VHost), storedPermissions{formatVersion, row}); err != nil {
		return err
	}
	a.publish(row.User, row.VHost, next)
	return nil
}

// ClearPermissions takes a user's permissions in a virtual host away; topic
// permissions stay. Without any it does nothing and says false.
func (a *Authority) ClearPermissions(user, vhost string) (existed bool, err error) {
	a.edit.Lock()
	defer a.edit.Unlock()
	return a.clearPermissions(user, vhost)
}

func (a *Authority) clearPermissions(user, vhost string) (existed bool, err error) {
	g := a.find(user, vhost)
	if g == nil || !g.Granted() {
		return false, nil
	}
	if err := a.defs.Delete(persistence.Permissions, permissionsKey(user, vhost)); err != nil {
		return false, err
	}
	a.publish(user, vhost, g.cur.Load().without())
	a.event("permission.deleted", field("user", user), field("vhost", vhost))
	a.log.Info("permissions cleared", zap.String("user", user), zap.String("vhost", vhost))
	return true, nil
}

// SetTopicPermissions replaces a user's topic permissions for an exchange. It
// says whether the user had none in the vhost before.
func (a *Authority) SetTopicPermissions(user, vhost, exchange, write, read string) (created bool, err error) {
	a.edit.Lock()
	defer a.edit.Unlock()
	if _, err := a.account(user); err != nil {
		return false, err
	}
	if err := checkNames(vhost, exchange); err != nil {
		return false, err
	}
	row := TopicPermissions{user, vhost, exchange, write, read}
	now := a.orNone(user, vhost).cur.Load()
	next, err := now.withTopic(row)
	if err != nil {
		return false, err
	}
	if err := a.put(persistence.TopicPermissions, topicKey(row), storedTopicPermissions{formatVersion, row}); err != nil {
		return false, err
	}
	a.publish(user, vhost, next)
	a.event("topic.permission.created", field("user", user), field("vhost", vhost), field("exchange", exchange),
		field("write", write), field("read", read))
	a.log.Info("topic permissions set", zap.String("user", user), zap.String("vhost", vhost),
		zap.String("exchange", exchange), zap.String("write", write), zap.String("read", read))
	return len(now.topics) == 0, nil
}

// ClearTopicPermissions takes a user's topic permissions for an exchange away.
// Without any it does nothing and says false.
func (a *Authority) ClearTopicPermissions(user, vhost, exchange string) (existed bool, err error) {
	a.edit.Lock()
	defer a.edit.Unlock()
	return a.clearTopicPermissions(user, vhost, exchange)
}

func (a *Authority) clearTopicPermissions(user, vhost, exchange string) (existed bool, err error) {
	now := a.orNone(user, vhost).cur.Load()
	topic, ok := now.topics[exchange]
	if !ok {
		return false, nil
	}
	if err := a.defs.Delete(persistence.TopicPermissions, topicKey(topic.row)); err != nil {
		return false, err
	}
	a.publish(user, vhost, now.withoutTopic(exchange))
	a.event("topic.permission.deleted", field("user", user), field("vhost", vhost), field("exchange", exchange))
	a.log.Info("topic permissions cleared", zap.String("user", user), zap.String("vhost", vhost), zap.String("exchange", exchange))
	return true, nil
}

// DropVHost takes all permissions in a virtual host away: it was deleted.
func (a *Authority) DropVHost(vhost string) error {
	a.edit.Lock()
	defer a.edit.Unlock()
	return a.dropGrants(func(k grantKey) bool { return k.vhost == vhost })
}

// dropGrants takes the permissions of the chosen keys away and forgets their
// handles. a.edit must be held.
func (a *Authority) dropGrants(chosen func(grantKey) bool) error {
	for _, g := range a.handles() {
		key := grantKey{g.user, g.vhost}
		if !chosen(key) {
			continue
		}
		for exchange := range g.cur.Load().topics {
			if _, err := a.clearTopicPermissions(g.user, g.vhost, exchange); err != nil {
				return err
			}
		}
		if _, err := a.clearPermissions(g.user, g.vhost); err != nil {
			return err
		}
		a.mu.Lock()
		delete(a.grants, key)
		a.mu.Unlock()
	}
	return nil
}

// Permissions lists permissions in order of virtual host and user: those of one
// user, those in one virtual host, or all if both are "".
func (a *Authority) Permissions(user, vhost string) iter.Seq[Permissions] {
	return func(yield func(Permissions) bool) {
		for _, g := range a.handles() {
			now := g.cur.Load()
			if now.granted && g.belongs(user, vhost) && !yield(now.row) {
				return
			}
		}
	}
}

// TopicPermissions lists topic permissions in order of virtual host, user and
// exchange, chosen as Permissions does.
func (a *Authority) TopicPermissions(user, vhost string) iter.Seq[TopicPermissions] {
	return func(yield func(TopicPermissions) bool) {
		for _, g := range a.handles() {
			if !g.belongs(user, vhost) {
				continue
			}
			topics := g.cur.Load().topics
			for _, exchange := range sortedKeys(topics) {
				if !yield(topics[exchange].row) {
					return
				}
			}
		}
	}
}

func (g *Grants) belongs(user, vhost string) bool {
	return (user == "" || user == g.user) && (vhost == "" || vhost == g.vhost)
}

// handles lists all handles in order of virtual host and user.
func (a *Authority) handles() []*Grants {
	a.mu.RLock()
	list := make([]*Grants, 0, len(a.grants))
	for _, g := range a.grants {
		list = append(list, g)
	}
	a.mu.RUnlock()
	slices.SortFunc(list, func(x, y *Grants) int {
		if c := strings.Compare(x.vhost, y.vhost); c != 0 {
			return c
		}
		return strings.Compare(x.user, y.user)
	})
	return list
}

// find returns the handle for a user in a virtual host, nil if there is none.
func (a *Authority) find(user, vhost string) *Grants {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.grants[grantKey{user, vhost}]
}

// orNone is find, with a handle that refuses everything instead of nil.
func (a *Authority) orNone(user, vhost string) *Grants {
	if g := a.find(user, vhost); g != nil {
		return g
	}
	return newGrants(user, vhost)
}

// handle is find, but makes the handle if there is none.
func (a *Authority) handle(user, vhost string) *Grants {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := grantKey{user, vhost}
	g := a.grants[key]
	if g == nil {
		g = newGrants(user, vhost)
		a.grants[key] = g
	}
	return g
}

func newGrants(user, vhost string) *Grants {
	g := &Grants{user: user, vhost: vhost}
	g.cur.Store(&rules{})
	return g
}

// publish puts rules in force, with a generation of their own: a check that saw
// the old rules is remembered under an old number. a.edit must be held once the
// Authority is shared.
func (a *Authority) publish(user, vhost string, next *rules) {
	g := a.handle(user, vhost)
	next.generation = g.cur.Load().generation + 1
	g.cur.Store(next)
}

// permissionsKey and topicKey quote their parts: names may hold any character.
func permissionsKey(user, vhost string) string {
	return strconv.Quote(vhost) + " " + strconv.Quote(user)
}

func topicKey(row TopicPermissions) string {
	return permissionsKey(row.User, row.VHost) + " " + strconv.Quote(row.Exchange)
}

// checkNames refuses names that the store's JSON could not keep.
func checkNames(names ...string) error {
	for _, s := range names {
		if !utf8.ValidString(s) {
			return frames.Errorf(frames.PreconditionFailed, "name %q is not valid UTF-8", s)
		}
	}
	return nil
}

// storedPermissions and storedTopicPermissions are the store's form of a row.
type storedPermissions struct {
	Version int `json:"version"`
	Permissions
}

type storedTopicPermissions struct {
	Version int `json:"version"`
	TopicPermissions
}

func decodePermissions(value []byte) (Permissions, error) {
	var s storedPermissions
	if err := json.Unmarshal(value, &s); err != nil {
		return Permissions{}, err
	}
	return s.Permissions, checkVersion(s.Version)
}

func decodeTopicPermissions(value []byte) (TopicPermissions, error) {
	var s storedTopicPermissions
	if err := json.Unmarshal(value, &s); err != nil {
		return TopicPermissions{}, err
	}
	return s.TopicPermissions, checkVersion(s.Version)
}
