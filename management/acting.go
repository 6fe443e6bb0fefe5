package management

import (
	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/vhost"
)

// An acting makes changes for a user, whom events then name.
type acting struct {
	s    *Server
	user string // "" is the broker itself, or its local administrator
	auth *auth.Authority
}

// acting is for changes that a user makes; "" is the broker itself.
func (s *Server) acting(user string) *acting {
	c := &acting{s, user, s.cfg.Auth}
	if user != "" {
		c.auth = s.cfg.Auth.As(user)
	}
	return c
}

// acting is for what the user of the request changes.
func (r *request) acting() *acting { return r.s.acting(r.account()) }

// in is the actor in a vhost, which may be yet to come.
func (c *acting) in(vhostName string) vhost.Actor {
	if c.user == "" {
		return vhost.System
	}
	return &actor{auth: c.auth, user: c.user, vhost: vhostName}
}
