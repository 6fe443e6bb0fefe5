package broker

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/config"
	"github.com/leveretmq/leveret/pattern"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/vhost"
)

// A seed is what new vhosts are given: users with permissions, limits, operator
// policies (RabbitMQ 4.0: default_users, default_limits, default_policies).
type seed struct {
	cfg  config.Config
	auth *auth.Authority
	log  *zap.Logger
}

// plant gives a new vhost what is configured for its name.
func (s seed) plant(v *vhost.VHost) error {
	for _, u := range s.cfg.DefaultUsers {
		if !matches(u.VHosts, v.Name()) {
			continue
		}
		if err := s.user(u, v.Name()); err != nil {
			return fmt.Errorf("make the user %s of default_users: %w", u.Name, err)
		}
	}
	if err := s.limits(v); err != nil {
		return err
	}
	for _, p := range s.cfg.DefaultPolicies {
		if !matches(p.VHosts, v.Name()) {
			continue
		}
		if err := policy(p, v); err != nil {
			return fmt.Errorf("make the policy %s of default_policies: %w", p.Name, err)
		}
	}
	return nil
}

// user makes a user unless it is there already, and lets it into the vhost.
func (s seed) user(u config.DefaultUser, vhost string) error {
	if _, there := s.auth.User(u.Name); !there {
		if _, err := s.auth.PutUser(u.Name, auth.Secret{Password: u.Password}, u.Tags); err != nil {
			return err
		}
	}
	_, err := s.auth.SetPermissions(u.Name, vhost, u.Permissions.Configure, u.Permissions.Write, u.Permissions.Read)
	return err
}

// limits sets the limits of the first pattern that matches.
func (s seed) limits(v *vhost.VHost) error {
	for _, l := range s.cfg.DefaultLimits {
		if !matches(l.VHosts, v.Name()) {
			continue
		}
		for name, n := range map[string]int{"max-connections": l.MaxConnections, "max-queues": l.MaxQueues} {
			if n < 0 {
				continue
			}
			if err := v.SetLimit(vhost.System, name, int64(n)); err != nil {
				return fmt.Errorf("set the limits %s of default_limits: %w", l.ID, err)
			}
		}
		s.log.Info("default limits set", zap.String("vhost", v.Name()), zap.String("id", l.ID))
		return nil
	}
	return nil
}

func policy(p config.DefaultPolicy, v *vhost.VHost) error {
	definition := queue.Definition{}
	for name, n := range p.Definition {
		definition[name] = float64(n) // as decoded from JSON
	}
	return v.SetPolicy(vhost.System, vhost.Policy{Name: p.Name, Pattern: p.Queues, ApplyTo: p.ApplyTo, Definition: definition}, true)
}

// matches says whether a pattern that config has checked is in a name.
func matches(expr, name string) bool {
	p, err := pattern.Compile(expr)
	return err == nil && p.MatchString(name)
}
