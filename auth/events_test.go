package auth

import (
	"slices"
	"testing"

	"github.com/leveretmq/leveret/frames"
)

func TestChangesAreEvents(t *testing.T) {
	a := newAuthority(t, Config{})
	var got []string
	a.OnEvent = func(key string, fields frames.Table) {
		name, _ := fields.Lookup("name")
		if name == nil {
			name, _ = fields.Lookup("user")
		}
		got = append(got, key+" "+name.(string))
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := a.PutUser("joe", Secret{Password: "x"}, []string{"monitoring"})
	do(err)
	do(a.ChangePassword("joe", Secret{Password: "y"}))
	do(a.ClearPassword("joe"))
	do(a.SetTags("joe", nil))
	_, err = a.SetPermissions("joe", "/", "a", "b", "c")
	do(err)
	_, err = a.SetTopicPermissions("joe", "/", "x", "b", "c")
	do(err)
	_, err = a.ClearTopicPermissions("joe", "/", "x")
	do(err)
	_, err = a.ClearPermissions("joe", "/")
	do(err)
	do(a.SetLimit("joe", MaxChannels, 3))
	do(a.ClearLimit("joe", MaxChannels))
	do(a.DeleteUser("joe"))
	want := []string{"user.created joe", "user.tags.set joe", "user.password.changed joe", "user.password.cleared joe", "user.tags.set joe",
		"permission.created joe", "topic.permission.created joe", "topic.permission.deleted joe", "permission.deleted joe",
		"user.limits.set joe", "user.limits.cleared joe", "user.deleted joe"}
	if !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}
