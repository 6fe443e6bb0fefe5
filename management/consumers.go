package management

import (
	"cmp"
	"slices"
)

// consumers handles GET /consumers and /consumers/V.
func consumers(r *request) (reply, error) {
	list, peers := []object{}, r.s.peers()
	for _, c := range r.s.sortedConsumers() {
		if (r.monitors() || c.User == r.user.Name) && (r.vhost == nil || c.VHost == r.vhost.Name()) {
			list = append(list, r.s.consumerObject(&c, peers))
		}
	}
	return plain(list)
}

func (s *Server) sortedConsumers() []Consumer {
	all := s.cfg.Connections.Consumers()
	slices.SortStableFunc(all, func(a, b Consumer) int {
		return cmp.Or(cmp.Compare(a.VHost, b.VHost), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Tag, b.Tag))
	})
	return all
}

// consumersWhere lists the consumers that are wanted.
func (s *Server) consumersWhere(want func(*Consumer) bool) []object {
	list, peers := []object{}, s.peers()
	for _, c := range s.sortedConsumers() {
		if want(&c) {
			list = append(list, s.consumerObject(&c, peers))
		}
	}
	return list
}

func (s *Server) consumerObject(c *Consumer, peers map[string]object) object {
	active, status, timeout := s.activity(c)
	details := object{{"name", channelName(c.Connection, c.Channel)}, {"number", int(c.Channel)}, {"node", s.cfg.Node},
		{"connection_name", c.Connection}, {"user", c.User}}
	return object{
		{"consumer_tag", c.Tag}, {"queue", object{{"name", c.Queue}, {"vhost", c.VHost}}},
		{"channel_details", withPeer(details, peers[c.Connection])},
		{"ack_required", c.AckRequired}, {"exclusive", c.Exclusive}, {"prefetch_count", c.Prefetch},
		{"arguments", c.Arguments}, {"active", active}, {"activity_status", status}, {"consumer_timeout", timeout},
	}
}

// withPeer appends where a connection comes from; one that has just ended is
// in no list any more.
func withPeer(o, peer object) object {
	if len(peer) == 0 {
		return o
	}
	return append(o, peer[1:]...)
}

// activity says whether a consumer gets messages, which only one does of a
// queue with a single active consumer, and how long it may keep one, in
// milliseconds.
func (s *Server) activity(c *Consumer) (active bool, status string, timeout int64) {
	timeout = s.cfg.ConsumerTimeout.Milliseconds()
	v, exists := s.cfg.VHosts.Get(c.VHost)
	if !exists {
		return true, "up", timeout
	}
	info, err := v.QueueInfo(c.Queue)
	if err != nil {
		return true, "up", timeout
	}
	st := info.Queue.Status()
	if st.ConsumerTimeout > 0 {
		timeout = st.ConsumerTimeout
	}
	switch {
	case !info.Spec.Arguments.SingleActive:
		return true, "up", timeout
	case st.ActiveTag == c.Tag:
		return true, "single_active", timeout
	}
	return false, "waiting", timeout
}
