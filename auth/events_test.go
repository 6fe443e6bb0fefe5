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
	_, err := a.PutUser("ann", Secret{Password: "x"}, []string{"monitoring"})
	do(err)
	_, err = a.PutUser("ann", Secret{Password: "y"}, nil)
	do(err)
	_, err = a.SetPermissions("ann", "/", "a", "b", "c")
	do(err)
	_, err = a.SetTopicPermissions("ann", "/", "x", "b", "c")
	do(err)
	_, err = a.ClearTopicPermissions("ann", "/", "x")
	do(err)
	_, err = a.ClearPermissions("ann", "/")
	do(err)
	do(a.SetLimit("ann", MaxChannels, 3))
	do(a.ClearLimit("ann", MaxChannels))
	do(a.DeleteUser("ann"))
	want := []string{"user.created ann", "user.tags.set ann", "user.password.changed ann", "user.tags.set ann",
		"permission.created ann", "topic.permission.created ann", "topic.permission.deleted ann", "permission.deleted ann",
		"user.limits.set ann", "user.limits.cleared ann", "user.deleted ann"}
	if !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}
