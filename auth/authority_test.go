package auth

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/persistence"
)

// fakeStore keeps definitions in memory.
type fakeStore struct {
	mu   sync.Mutex
	data map[persistence.Kind]map[string][]byte
	err  error // what every write answers
}

func newFakeStore() *fakeStore {
	return &fakeStore{data: map[persistence.Kind]map[string][]byte{
		persistence.Users: {}, persistence.Permissions: {}, persistence.TopicPermissions: {},
	}}
}

func (s *fakeStore) Put(kind persistence.Kind, key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.data[kind][key] = slices.Clone(value)
	return nil
}

func (s *fakeStore) Delete(kind persistence.Kind, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	delete(s.data[kind], key)
	return nil
}

func (s *fakeStore) All(kind persistence.Kind) iter.Seq2[string, []byte] {
	s.mu.Lock()
	defer s.mu.Unlock()
	snapshot := maps.Clone(s.data[kind])
	return func(yield func(string, []byte) bool) {
		for _, key := range slices.Sorted(maps.Keys(snapshot)) {
			if !yield(key, snapshot[key]) {
				return
			}
		}
	}
}

func open(t testing.TB, cfg Config, store *fakeStore) *Authority {
	t.Helper()
	a, err := New(cfg, store)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// newAuthority has the user joe, password secret, without permissions.
func newAuthority(t testing.TB, cfg Config) *Authority {
	t.Helper()
	a := open(t, cfg, newFakeStore())
	putUser(t, a, "joe", Secret{Password: "secret"})
	return a
}

func putUser(t testing.TB, a *Authority, name string, s Secret, tags ...string) {
	t.Helper()
	if _, err := a.PutUser(name, s, tags); err != nil {
		t.Fatal(err)
	}
}

func permit(t testing.TB, a *Authority, user, vhost, configure, write, read string) {
	t.Helper()
	if _, err := a.SetPermissions(user, vhost, configure, write, read); err != nil {
		t.Fatal(err)
	}
}

func permitTopic(t testing.TB, a *Authority, user, vhost, exchange, write, read string) {
	t.Helper()
	if _, err := a.SetTopicPermissions(user, vhost, exchange, write, read); err != nil {
		t.Fatal(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantReply fails unless err is a protocol error with this reply text; "" is no
// error.
func wantReply(t testing.TB, err error, want string) {
	t.Helper()
	got := ""
	if e, ok := errors.AsType[*frames.Error](err); ok {
		got = e.ReplyText()
	} else if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFirstStartMakesTheDefaultUser(t *testing.T) {
	store := newFakeStore()
	a := open(t, Config{}, store)
	u, ok := a.User("guest")
	if !ok || !slices.Equal(u.Tags, []string{"administrator"}) || u.Algorithm != SHA256 {
		t.Errorf("default user is %+v, %v", u, ok)
	}
	want := []Permissions{{"guest", "/", ".*", ".*", ".*"}}
	if got := slices.Collect(a.Permissions("", "")); !slices.Equal(got, want) {
		t.Errorf("permissions are %+v, want %+v", got, want)
	}
	if _, err := a.Authenticate("guest", "guest", Credentials{Loopback: true}); err != nil {
		t.Errorf("guest/guest: %v", err)
	}
}

func TestFirstStartTakesTheDefaultUserFromTheConfig(t *testing.T) {
	a := open(t, Config{
		DefaultUser: "root", DefaultPass: "pw", DefaultVHost: "main", DefaultTags: []string{},
		DefaultPermissions: Permissions{Configure: "^$", Write: "^w", Read: "^r"},
	}, newFakeStore())
	if u, ok := a.User("root"); !ok || len(u.Tags) != 0 {
		t.Errorf("default user is %+v, %v", u, ok)
	}
	want := []Permissions{{"root", "main", "^$", "^w", "^r"}}
	if got := slices.Collect(a.Permissions("", "")); !slices.Equal(got, want) {
		t.Errorf("permissions are %+v, want %+v", got, want)
	}
}

func TestDefaultUserIsMadeOnlyInAnEmptyStore(t *testing.T) {
	store := newFakeStore()
	a := open(t, Config{}, store)
	putUser(t, a, "joe", Secret{})
	must(t, a.DeleteUser("guest"))
	a = open(t, Config{}, store)
	if _, ok := a.User("guest"); ok {
		t.Error("guest is back after a restart")
	}
	empty := newFakeStore()
	open(t, Config{NoDefaultUser: true}, empty)
	if n := len(empty.data[persistence.Users]); n != 0 {
		t.Errorf("%d users in a store that was to stay empty", n)
	}
}

func TestReopenFindsEverything(t *testing.T) {
	store := newFakeStore()
	a := open(t, Config{}, store)
	putUser(t, a, "jo\x00e ü", Secret{Password: "pw"}, "monitoring", "custom")
	must(t, a.SetLimit("jo\x00e ü", MaxChannels, 7))
	permit(t, a, "jo\x00e ü", "v \"1\"", "^c", "^w", "^r")
	permitTopic(t, a, "jo\x00e ü", "v \"1\"", "amq.topic", "^{username}", "")
	b := open(t, Config{}, store)
	if got, want := slices.Collect(b.Permissions("", "")), slices.Collect(a.Permissions("", "")); !slices.Equal(got, want) || len(got) != 2 {
		t.Errorf("permissions are %+v, want %+v", got, want)
	}
	if got, want := slices.Collect(b.TopicPermissions("", "")), slices.Collect(a.TopicPermissions("", "")); !slices.Equal(got, want) || len(got) != 1 {
		t.Errorf("topic permissions are %+v, want %+v", got, want)
	}
	u, err := b.Authenticate("jo\x00e ü", "pw", Credentials{})
	if err != nil || !u.Has("monitoring") || !u.Has("custom") || u.Has("administrator") {
		t.Errorf("login after reopening: %+v, %v", u, err)
	}
	if n, ok := b.Limit("jo\x00e ü", MaxChannels); n != 7 || !ok {
		t.Errorf("limit is %d, %v, want 7", n, ok)
	}
	wantReply(t, b.CheckTopic("jo\x00e ü", "v \"1\"", "amq.topic", Write, "jo\x00e ü.x"), "")
}

func TestPermissionsOfNobodyAreDroppedAtStart(t *testing.T) {
	store := newFakeStore()
	a := open(t, Config{}, store)
	putUser(t, a, "joe", Secret{})
	permit(t, a, "joe", "/", ".*", ".*", ".*")
	permitTopic(t, a, "joe", "/", "x", ".*", ".*")
	delete(store.data[persistence.Users], "joe") // as if the broker had stopped half-way
	a = open(t, Config{}, store)
	putUser(t, a, "joe", Secret{})
	wantReply(t, a.VHostAccess(User{Name: "joe"}, "/"), "NOT_ALLOWED - access to vhost '/' refused for user 'joe'")
	a = open(t, Config{}, store)
	if got := slices.Collect(a.Permissions("joe", "")); len(got) != 0 {
		t.Errorf("permissions came back: %+v", got)
	}
	if n := len(store.data[persistence.TopicPermissions]); n != 0 {
		t.Errorf("%d topic permissions left in the store", n)
	}
}

func TestOpenRefusesWhatItCannotRead(t *testing.T) {
	for _, tt := range []struct {
		kind        persistence.Kind
		value, want string
	}{
		{persistence.Users, `{`, `read user "k": unexpected end of JSON input`},
		{persistence.Users, `{"version":2,"name":"k"}`, `read user "k": format version 2 is not known`},
		{persistence.Users, `{"version":1,"name":"k","password_hash":"*"}`, `password_hash is not base64`},
		{persistence.Permissions, `{"version":9}`, "read permissions k: format version 9"},
		{persistence.Permissions, `{"version":1,"user":"joe","vhost":"/","read":"("}`, "invalid regular expression '('"},
		{persistence.TopicPermissions, `[]`, "read topic permissions k: json"},
		{persistence.TopicPermissions, `{"version":1,"user":"joe","vhost":"/","read":"("}`, "invalid regular expression '('"},
	} {
		store := newFakeStore()
		store.data[persistence.Users]["joe"] = []byte(`{"version":1,"name":"joe"}`)
		store.data[tt.kind]["k"] = []byte(tt.value)
		if _, err := New(Config{}, store); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%c %s: %v, want %q", tt.kind, tt.value, err, tt.want)
		}
	}
}

func TestNewRefusesABadConfig(t *testing.T) {
	for _, tt := range []struct {
		cfg  Config
		want string
	}{
		{Config{Mechanisms: []string{"PLAIN", "RABBIT-CR-DEMO"}}, `unknown authentication mechanism "RABBIT-CR-DEMO"`},
		{Config{Algorithm: MD5}, `new passwords cannot be hashed with "rabbit_password_hashing_md5"`},
		{Config{PasswordPattern: "("}, "the pattern for new passwords"},
		{Config{DefaultPermissions: Permissions{Read: "*"}}, "create the default user"},
		{Config{MinPasswordLength: 20}, "minimum required password length: 20"},
	} {
		if _, err := New(tt.cfg, newFakeStore()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.cfg, err, tt.want)
		}
	}
}

func TestAFailedWriteChangesNothing(t *testing.T) {
	store := newFakeStore()
	a := open(t, Config{}, store)
	putUser(t, a, "joe", Secret{Password: "old"}, "management")
	permit(t, a, "joe", "/", "^c", "^w", "^r")
	permitTopic(t, a, "joe", "/", "x", "^w", "^r")
	g := a.Grants("joe", "/")
	before := g.Generation()
	store.err = errors.New("disk full")
	for name, change := range map[string]func() error{
		"put user":         func() error { _, err := a.PutUser("new", Secret{}, nil); return err },
		"replace user":     func() error { _, err := a.PutUser("joe", Secret{Password: "new"}, nil); return err },
		"limit":            func() error { return a.SetLimit("joe", MaxChannels, 1) },
		"clear limit":      func() error { return a.ClearLimit("joe", MaxChannels) },
		"delete user":      func() error { return a.DeleteUser("joe") },
		"permissions":      func() error { _, err := a.SetPermissions("joe", "/", "", "", ""); return err },
		"clear":            func() error { _, err := a.ClearPermissions("joe", "/"); return err },
		"topic":            func() error { _, err := a.SetTopicPermissions("joe", "/", "x", "", ""); return err },
		"clear topic":      func() error { _, err := a.ClearTopicPermissions("joe", "/", "x"); return err },
		"drop vhost":       func() error { return a.DropVHost("/") },
		"drop other vhost": func() error { _ = a.DropVHost("other"); return store.err }, // nothing to write
	} {
		if err := change(); !errors.Is(err, store.err) {
			t.Errorf("%s: %v, want the store's error", name, err)
		}
	}
	if _, ok := a.User("new"); ok || g.Generation() != before {
		t.Error("a change that was not stored is in force")
	}
	u, err := a.Authenticate("joe", "old", Credentials{})
	if err != nil || !u.Has("management") {
		t.Errorf("old login: %+v, %v", u, err)
	}
	wantReply(t, a.Check("joe", "/", Resource{Queue, "w1"}, Write), "")
}
