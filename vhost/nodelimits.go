package vhost

import "github.com/leveretmq/leveret/frames"

// NodeLimits bound all vhosts together; 0 is no limit.
type NodeLimits struct{ VHosts, Queues, Exchanges int }

// vhostLimitLocked refuses a new vhost when there are as many as there may be.
// s.mu must be held.
func (s *Set) vhostLimitLocked(name string) error {
	if limit := s.config.Limits.VHosts; limit > 0 && len(s.vhosts) >= limit {
		return frames.Errorf(frames.PreconditionFailed, "cannot create vhost '%s': vhost limit of %d is reached", name, limit)
	}
	return nil
}

// queueLimit refuses a new queue when all vhosts together have as many as they
// may. Declarations at the same moment may exceed it by a few, as in RabbitMQ.
func (s *Set) queueLimit(name string) error {
	limit := s.config.Limits.Queues
	if limit <= 0 || s.sum(func(v *VHost) int { return len(v.queues) }) < limit {
		return nil
	}
	return frames.Errorf(frames.PreconditionFailed, "cannot declare queue '%s': queue limit in cluster (%d) is reached", name, limit)
}

// exchangeLimit is queueLimit for exchanges; those that every vhost has count.
func (s *Set) exchangeLimit(name string) error {
	limit := s.config.Limits.Exchanges
	if limit <= 0 || s.sum(func(v *VHost) int { return len(v.exchanges) }) < limit {
		return nil
	}
	return frames.Errorf(frames.PreconditionFailed, "cannot declare exchange '%s': exchange limit in cluster (%d) is reached", name, limit)
}

// sum adds up what count says of each vhost, whose lock is held for it. No lock
// must be held.
func (s *Set) sum(count func(*VHost) int) (n int) {
	for _, v := range s.all() {
		v.mu.RLock()
		n += count(v)
		v.mu.RUnlock()
	}
	return n
}

// refuseDeprecated refuses a queue that uses what the configuration does not
// permit: being neither durable nor exclusive, or naming a master locator.
func (s *Set) refuseDeprecated(d QueueDeclare) error {
	if s.config.RefuseTransientQueues && !d.Durable && !d.Exclusive {
		return notPermitted("transient_nonexcl_queues")
	}
	if !s.config.RefuseMasterLocator {
		return nil
	}
	if _, there := d.Arguments.Lookup("x-queue-master-locator"); there {
		return notPermitted("queue_master_locator")
	}
	return nil
}

// notPermitted is the error of a use of a deprecated feature (RabbitMQ 4.0: code
// and text).
func notPermitted(feature string) error {
	return frames.Errorf(frames.InternalError, "Feature `%s` is deprecated.\n"+
		"Its use is not permitted per the configuration (overriding the default, which is permitted):\n"+
		"    \"deprecated_features.permit.%s = false\"", feature, feature)
}
