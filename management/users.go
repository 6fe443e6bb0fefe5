package management

import (
	"maps"
	"slices"

	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/frames"
)

func accountObject(a auth.Account) object {
	limits := object{}
	for _, l := range []auth.Limit{auth.MaxConnections, auth.MaxChannels} {
		if n, limited := a.Limits[l]; limited {
			limits.add(string(l), n)
		}
	}
	return object{{"name", a.Name}, {"password_hash", a.PasswordHash}, {"hashing_algorithm", string(a.Algorithm)}, {"tags", a.Tags}, {"limits", limits}}
}

func users(r *request) (reply, error) {
	return r.rows(r.accounts(func(auth.Account) bool { return true }))
}

func usersWithoutPermissions(r *request) (reply, error) {
	granted := map[string]bool{}
	for p := range r.s.cfg.Auth.Permissions("", "") {
		granted[p.User] = true
	}
	return r.rows(r.accounts(func(a auth.Account) bool { return !granted[a.Name] }))
}

func (r *request) accounts(keep func(auth.Account) bool) []row {
	var all []row
	for a := range r.s.cfg.Auth.Users() {
		if keep(a) {
			all = append(all, row{name: a.Name, object: func(*request, details) object { return accountObject(a) }})
		}
	}
	return all
}

func oneUser(r *request) (reply, error) {
	a, exists := r.s.cfg.Auth.User(r.arg("user"))
	if !exists {
		return reply{}, errNotFound
	}
	return ok(accountObject(a))
}

func putUser(r *request) (reply, error) {
	b, err := r.body()
	if err != nil {
		return reply{}, err
	}
	return put(r.acting().putUser(r.arg("user"), b))
}

// putUser makes or changes a user from a request's or a definition's body.
func (c *acting) putUser(name string, b body) (created bool, err error) {
	tags, there, err := b.tags("tags")
	if err != nil {
		return false, err
	}
	if !there {
		return false, badRequest("tags_not_present")
	}
	secret, err := readSecret(b)
	if err != nil {
		return false, err
	}
	created, err = c.auth.PutUser(name, secret, tags)
	if err != nil {
		return created, err
	}
	return created, c.putGrants(name, b)
}

func readSecret(b body) (auth.Secret, error) {
	var s auth.Secret
	_, password := b["password"]
	_, hash := b["password_hash"]
	if password && hash {
		return s, badRequest("both_password_and_password_hash_are_provided")
	}
	var err error
	if password { // null is no password but a mistake of who wanted to set one
		s.Password, err = b.string("password")
	}
	if hash {
		s.Hash, err = b.string("password_hash")
	}
	if err != nil {
		return s, err
	}
	algorithm, err := b.text("hashing_algorithm")
	s.Algorithm = auth.Algorithm(algorithm)
	return s, err
}

// putGrants sets the permissions that a user's body may have (RabbitMQ 4.1).
func (c *acting) putGrants(user string, b body) error {
	byVHost, there := b["permissions"].(map[string]any)
	if !there {
		return nil
	}
	for vhost, v := range byVHost {
		p, isObject := v.(map[string]any)
		if !isObject {
			return badRequest("permissions must be an object of virtual hosts")
		}
		if err := c.grant(user, vhost, p); err != nil {
			return err
		}
	}
	return nil
}

func deleteUser(r *request) (reply, error) {
	return done(orNotFound(r.acting().auth.DeleteUser(r.arg("user"))))
}

// deleteUsers handles POST /users/bulk-delete; unknown names are no error.
func deleteUsers(r *request) (reply, error) {
	b, err := r.body()
	if err != nil {
		return reply{}, err
	}
	if err := b.need("users"); err != nil {
		return reply{}, err
	}
	if _, isList := b["users"].([]any); !isList {
		return reply{}, badRequest("users must be a list of strings")
	}
	names, _, err := b.tags("users")
	if err != nil {
		return reply{}, err
	}
	for _, name := range names {
		if err := orNotFound(r.acting().auth.DeleteUser(name)); err != nil && err != error(errNotFound) {
			return reply{}, err
		}
	}
	return noContent, nil
}

// userQueues lists the queues that a user has declared.
func userQueues(r *request) (reply, error) {
	var all []row
	for _, v := range r.vhosts() {
		for info := range v.Queues() {
			if info.User == r.arg("user") {
				all = append(all, newQueueRow(v, info.Spec.Name))
			}
		}
	}
	return r.rows(all)
}

// userLimits handles GET /user-limits and /user-limits/U. All users see all of them
// (RabbitMQ 4.0).
func userLimits(r *request) (reply, error) {
	name := r.arg("user")
	if _, exists := r.s.cfg.Auth.User(name); name != "" && !exists {
		return reply{}, errNotFound
	}
	list := []object{}
	for a := range r.s.cfg.Auth.Users() {
		if (name == "" || name == a.Name) && len(a.Limits) > 0 {
			limits, _ := accountObject(a).get("limits")
			list = append(list, object{{"user", a.Name}, {"value", limits}})
		}
	}
	return ok(list)
}

func putUserLimit(r *request) (reply, error) {
	b, err := r.body()
	if err != nil {
		return reply{}, err
	}
	if err := b.need("value"); err != nil {
		return reply{}, err
	}
	limits := body{r.arg("limit"): b["value"]}
	if err := checkUserLimits(limits); err != nil {
		return reply{}, err
	}
	err = r.acting().setUserLimits(r.arg("user"), limits)
	return done(notFoundIsBad(err, "no_such_user"))
}

// checkUserLimits refuses limits of a user that there are none of, or no numbers, in
// RabbitMQ's words.
func checkUserLimits(limits body) error {
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		value := limits[name]
		if !isUserLimit(name) {
			return badRequest("Unrecognised terms [{%s,%s}] in user-limits", frames.BinaryTerm(name), jsonTerm(value))
		}
		if reason := wrongLimit(name, value); reason != "" {
			return badRequest("%s", reason)
		}
	}
	return nil
}

// setUserLimits sets limits of a user that are checked.
func (c *acting) setUserLimits(user string, limits body) error {
	for name := range limits {
		n, _, err := limits.integer(name)
		if err != nil {
			return err
		}
		if err := c.auth.SetLimit(user, auth.Limit(name), int(n)); err != nil {
			return err
		}
	}
	return nil
}

func isUserLimit(name string) bool {
	return name == string(auth.MaxConnections) || name == string(auth.MaxChannels)
}

// deleteUserLimit takes a limit away, be it one that there is not (RabbitMQ 4.0).
func deleteUserLimit(r *request) (reply, error) {
	if err := r.knownUser(); err != nil || !isUserLimit(r.arg("limit")) {
		return done(err)
	}
	return done(orNotFound(r.acting().auth.ClearLimit(r.arg("user"), auth.Limit(r.arg("limit")))))
}

// knownUser says whether a path's user exists.
func (r *request) knownUser() error {
	name := r.arg("user")
	if name == "" {
		return nil
	}
	if _, exists := r.s.cfg.Auth.User(name); !exists {
		return errNotFound
	}
	return nil
}

// anyOf says whether one of the names is in the list.
func anyOf(list []string, names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(list, n) })
}
