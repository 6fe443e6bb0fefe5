package auth

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func TestPutUserReplacesPasswordAndTagsOnly(t *testing.T) {
	a := newAuthority(t, Config{})
	must(t, a.SetLimit("joe", MaxConnections, 3))
	permit(t, a, "joe", "/", "", "", ".*")
	created, err := a.PutUser("joe", Secret{Password: "new"}, []string{" monitoring ", "", "x"})
	if created || err != nil {
		t.Fatalf("created %v, %v", created, err)
	}
	u, _ := a.User("joe")
	if !slices.Equal(u.Tags, []string{"monitoring", "x"}) || u.Limits[MaxConnections] != 3 {
		t.Errorf("user is %+v", u)
	}
	wantReply(t, a.VHostAccess(User{Name: "joe"}, "/"), "")
	if _, err := a.Authenticate("joe", "secret", Credentials{}); err == nil {
		t.Error("the old password is still good")
	}
	if created, err := a.PutUser("ann", Secret{}, nil); !created || err != nil {
		t.Errorf("a new user: created %v, %v", created, err)
	}
}

func TestChangesOfUsersThatAreRefused(t *testing.T) {
	a := newAuthority(t, Config{MinPasswordLength: 3, PasswordPattern: "[a-z]"})
	put := func(name string, s Secret, tags ...string) error {
		_, err := a.PutUser(name, s, tags)
		return err
	}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{put("", Secret{}), "PRECONDITION_FAILED - a user name must not be empty"},
		{put("\xff", Secret{}), `PRECONDITION_FAILED - name "\xff" is not valid UTF-8`},
		{put("u", Secret{}, "\xff"), `PRECONDITION_FAILED - name "\xff" is not valid UTF-8`},
		{put("u", Secret{Password: "abc", Hash: "AAAA"}), "PRECONDITION_FAILED - give either password or password_hash, not both"},
		{put("u", Secret{Hash: "no base64"}), "PRECONDITION_FAILED - password_hash is not base64"},
		{put("u", Secret{Hash: "AAAA", Algorithm: "crc32"}), "PRECONDITION_FAILED - unknown hashing_algorithm 'crc32': use rabbit_password_hashing_sha256, rabbit_password_hashing_sha512 or rabbit_password_hashing_md5"},
		{put("u", Secret{Password: "ab"}), "PRECONDITION_FAILED - minimum required password length: 3"},
		{put("u", Secret{Password: "1234"}), "PRECONDITION_FAILED - provided password does not match the validator regular expression"},
		{put("joe", Secret{Password: "ab"}), "PRECONDITION_FAILED - minimum required password length: 3"},
		{a.DeleteUser("no"), "NOT_FOUND - no user 'no'"},
		{a.SetLimit("no", MaxChannels, 1), "NOT_FOUND - no user 'no'"},
		{a.SetLimit("joe", "max-queues", 1), "PRECONDITION_FAILED - unknown user limit 'max-queues': use max-connections or max-channels"},
		{a.ClearLimit("no", MaxChannels), "NOT_FOUND - no user 'no'"},
		{a.ClearLimit("joe", "x"), "PRECONDITION_FAILED - unknown user limit 'x': use max-connections or max-channels"},
	} {
		wantReply(t, tt.err, tt.want)
	}
	if got := slices.Collect(a.Users()); len(got) != 2 {
		t.Errorf("users are %+v, want guest and joe", got)
	}
}

func TestUsersAreListedByName(t *testing.T) {
	a := newAuthority(t, Config{})
	putUser(t, a, "ann", Secret{Hash: "AAAAAAAA", Algorithm: SHA512}, "policymaker")
	var names []string
	for u := range a.Users() {
		names = append(names, u.Name)
	}
	if want := []string{"ann", "guest", "joe"}; !slices.Equal(names, want) {
		t.Errorf("users are %q, want %q", names, want)
	}
	for u := range a.Users() {
		if u.Name != "ann" || u.PasswordHash != "AAAAAAAA" || u.Algorithm != SHA512 || !slices.Equal(u.Tags, []string{"policymaker"}) {
			t.Errorf("first user is %+v", u)
		}
		break
	}
}

func TestAnAccountIsACopy(t *testing.T) {
	a := newAuthority(t, Config{})
	putUser(t, a, "joe", Secret{}, "management")
	u, _ := a.User("joe")
	u.Tags[0] = "administrator"
	u.Limits[MaxChannels] = 1
	again, _ := a.User("joe")
	if again.Tags[0] != "management" || len(again.Limits) != 0 {
		t.Errorf("account is %+v", again)
	}
}

func TestDeleteUserTakesPermissionsAndCallsTheHook(t *testing.T) {
	store := newFakeStore()
	a := open(t, Config{}, store)
	putUser(t, a, "joe", Secret{Password: "pw"})
	permit(t, a, "joe", "/", ".*", ".*", ".*")
	permitTopic(t, a, "joe", "v", "x", "a", "a")
	var deleted []string
	a.OnUserDeleted = func(name string) {
		if _, ok := a.User(name); ok {
			t.Error("the hook still sees the user")
		}
		deleted = append(deleted, name)
	}
	grants := a.Grants("joe", "/")
	must(t, a.DeleteUser("joe"))
	if !slices.Equal(deleted, []string{"joe"}) {
		t.Errorf("hook calls: %q", deleted)
	}
	refused := "ACCESS_REFUSED - write access to queue 'q' in vhost '/' refused for user 'joe'"
	wantReply(t, grants.Check(Resource{Queue, "q"}, Write), refused)
	if _, err := a.Authenticate("joe", "pw", Credentials{}); err == nil {
		t.Error("a deleted user logs in")
	}
	putUser(t, a, "joe", Secret{Password: "pw"})
	permit(t, a, "joe", "/", ".*", ".*", ".*")
	wantReply(t, a.Check("joe", "/", Resource{Queue, "q"}, Write), "")
	wantReply(t, grants.Check(Resource{Queue, "q"}, Write), refused) // the old connection's handle
	if got := slices.Collect(a.TopicPermissions("", "")); len(got) != 0 {
		t.Errorf("topic permissions are left: %+v", got)
	}
	if n := len(slices.Collect(maps.Keys(store.data['t']))); n != 0 {
		t.Errorf("%d topic permissions are left in the store", n)
	}
}

func TestLimits(t *testing.T) {
	a := newAuthority(t, Config{})
	want := func(l Limit, n int, ok bool) {
		t.Helper()
		if got, gotOK := a.Limit("joe", l); gotOK != ok || ok && got != n {
			t.Errorf("%s is %d, %v, want %d, %v", l, got, gotOK, n, ok)
		}
	}
	want(MaxConnections, 0, false)
	must(t, a.SetLimit("joe", MaxConnections, 0))
	must(t, a.SetLimit("joe", MaxChannels, 5))
	want(MaxConnections, 0, true)
	want(MaxChannels, 5, true)
	must(t, a.SetLimit("joe", MaxChannels, -1))
	want(MaxChannels, 0, false)
	u, _ := a.User("joe")
	if !maps.Equal(u.Limits, map[Limit]int{MaxConnections: 0, MaxChannels: -1}) {
		t.Errorf("limits are %v", u.Limits)
	}
	must(t, a.ClearLimit("joe", MaxConnections))
	must(t, a.ClearLimit("joe", MaxConnections)) // once more is no error
	want(MaxConnections, 0, false)
	if n, ok := a.Limit("no", MaxChannels); ok {
		t.Errorf("limit of nobody is %d", n)
	}
}

func TestPasswordsAreNotLogged(t *testing.T) {
	var out bytes.Buffer
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(&out), zap.DebugLevel))
	a := open(t, Config{Log: log, DefaultPass: "sw0rdfish"}, newFakeStore())
	putUser(t, a, "joe", Secret{Password: "sw0rdfish"})
	putUser(t, a, "joe", Secret{Password: "sw0rdfish"})
	_, err := a.Login(t.Context(), Credentials{Mechanism: Plain, Response: []byte("\x00ann\x00sw0rdfish")})
	if bytes.Contains(out.Bytes(), []byte("sw0rdfish")) || bytes.Contains([]byte(err.Error()), []byte("sw0rdfish")) {
		t.Errorf("the password is in %q or %q", out.String(), err)
	}
	u, _ := a.User("joe")
	if bytes.Contains(out.Bytes(), []byte(u.PasswordHash)) {
		t.Errorf("the hash is in %q", out.String())
	}
	if !bytes.Contains(out.Bytes(), []byte(`"msg":"user set","user":"joe"`)) {
		t.Errorf("no set user in %q", out.String())
	}
}
