package management

import (
	"github.com/leveretmq/leveret/auth"
)

func permissionObject(p auth.Permissions) object {
	return object{{"user", p.User}, {"vhost", p.VHost}, {"configure", p.Configure}, {"write", p.Write}, {"read", p.Read}}
}

func topicPermissionObject(p auth.TopicPermissions) object {
	return object{{"user", p.User}, {"vhost", p.VHost}, {"exchange", p.Exchange}, {"write", p.Write}, {"read", p.Read}}
}

// vhostName is the name of the path's vhost, "" if it names none.
func (r *request) vhostName() string {
	if r.vhost == nil {
		return ""
	}
	return r.vhost.Name()
}

// permissions lists all permissions, those of a user, or those in a vhost.
func permissions(r *request) (reply, error) {
	if err := r.knownUser(); err != nil {
		return reply{}, err
	}
	list := []object{}
	for p := range r.s.cfg.Auth.Permissions(r.arg("user"), r.vhostName()) {
		list = append(list, permissionObject(p))
	}
	return plain(list)
}

func onePermission(r *request) (reply, error) {
	for p := range r.s.cfg.Auth.Permissions(r.arg("user"), r.vhostName()) {
		return ok(permissionObject(p))
	}
	return reply{}, errNotFound
}

func putPermission(r *request) (reply, error) {
	b, err := r.body()
	if err != nil {
		return reply{}, err
	}
	user, vhost := r.arg("user"), r.arg("vhost")
	existed := false
	for range r.s.cfg.Auth.Permissions(user, vhost) {
		existed = true
	}
	return put(!existed, r.acting().grant(user, vhost, b))
}

// grant sets a user's permissions from a body. A vhost or user that is missing
// is a 400 (RabbitMQ 4.0).
func (c *acting) grant(user, vhost string, b body) error {
	if err := c.knows(user, vhost); err != nil {
		return err
	}
	if err := b.need("configure", "write", "read"); err != nil {
		return err
	}
	var expr [3]string
	for i, name := range []string{"configure", "write", "read"} {
		var err error
		if expr[i], err = b.string(name); err != nil {
			return err
		}
	}
	_, err := c.auth.SetPermissions(user, vhost, expr[0], expr[1], expr[2])
	return notFoundIsBad(err, "vhost_or_user_not_found")
}

// knows says whether there are the vhost and the user that a permission is for.
func (c *acting) knows(user, vhost string) error {
	_, isVHost := c.s.cfg.VHosts.Get(vhost)
	_, isUser := c.s.cfg.Auth.User(user)
	if !isVHost || !isUser {
		return badRequest("vhost_or_user_not_found")
	}
	return nil
}

func deletePermission(r *request) (reply, error) {
	existed, err := r.acting().auth.ClearPermissions(r.arg("user"), r.vhostName())
	if err == nil && !existed {
		err = errNotFound
	}
	return done(err)
}

// topicPermissions lists all, those of a user, those in a vhost, or both.
func topicPermissions(r *request) (reply, error) {
	if err := r.knownUser(); err != nil {
		return reply{}, err
	}
	list := []object{}
	for p := range r.s.cfg.Auth.TopicPermissions(r.arg("user"), r.vhostName()) {
		list = append(list, topicPermissionObject(p))
	}
	if len(list) == 0 && r.vhost != nil && r.arg("user") != "" {
		return reply{}, errNotFound
	}
	return plain(list)
}

func putTopicPermission(r *request) (reply, error) {
	b, err := r.body()
	if err != nil {
		return reply{}, err
	}
	return put(r.acting().grantTopic(r.arg("user"), r.arg("vhost"), b))
}

func (c *acting) grantTopic(user, vhost string, b body) (created bool, err error) {
	if err := c.knows(user, vhost); err != nil {
		return false, err
	}
	if err := b.need("exchange", "write", "read"); err != nil {
		return false, err
	}
	var text [3]string
	for i, name := range []string{"exchange", "write", "read"} {
		if text[i], err = b.string(name); err != nil {
			return false, err
		}
	}
	if _, exists := c.s.cfg.VHosts.Get(vhost); !exists {
		return false, badRequest("vhost_or_user_not_found")
	}
	created, err = c.auth.SetTopicPermissions(user, vhost, text[0], text[1], text[2])
	return created, notFoundIsBad(err, "vhost_or_user_not_found")
}

// deleteTopicPermissions clears those of one exchange, or all of a user in a vhost.
func deleteTopicPermissions(r *request) (reply, error) {
	user, vhost, only := r.arg("user"), r.vhostName(), r.arg("exchange")
	var exchanges []string
	some := false
	for p := range r.s.cfg.Auth.TopicPermissions(user, vhost) {
		some = true
		if only == "" || only == p.Exchange {
			exchanges = append(exchanges, p.Exchange)
		}
	}
	if !some {
		return reply{}, errNotFound // with some for other exchanges it is 204 (RabbitMQ 4.0)
	}
	for _, x := range exchanges {
		if _, err := r.acting().auth.ClearTopicPermissions(user, vhost, x); err != nil {
			return reply{}, err
		}
	}
	return noContent, nil
}
