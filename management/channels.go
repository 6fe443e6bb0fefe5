package management

func (r *request) visibleChannels() []Channel {
	var list []Channel
	for _, c := range r.s.cfg.Connections.Channels() {
		if (r.monitors() || c.User == r.user.Name) && (r.vhost == nil || c.VHost == r.vhost.Name()) {
			list = append(list, c)
		}
	}
	return list
}

func channels(r *request) (reply, error) {
	return r.channelList(func(*Channel) bool { return true })
}

func connectionChannels(r *request) (reply, error) {
	c, err := r.connection()
	if err != nil {
		return reply{}, err
	}
	return r.channelList(func(ch *Channel) bool { return ch.Connection == c.Name })
}

// connectionSessions handles GET /connections/N/sessions: AMQP 1.0 has them, AMQP
// 0-9-1 none.
func connectionSessions(r *request) (reply, error) {
	if _, err := r.connection(); err != nil {
		return reply{}, err
	}
	return noObjects(r)
}

func (r *request) channelList(keep func(*Channel) bool) (reply, error) {
	peers := r.s.peers()
	var all []row
	for _, c := range r.visibleChannels() {
		if keep(&c) {
			all = append(all, row{c.VHost, channelName(c.Connection, c.Number), func(r *request, d details) object { return r.channelObject(&c, peers, d) }})
		}
	}
	return r.pagedUnlessPart(all)
}

// peers are the open connections by name.
func (s *Server) peers() map[string]object {
	m := make(map[string]object)
	for _, c := range s.cfg.Connections.Connections() {
		m[c.Name] = peerObject(&c)
	}
	return m
}

func oneChannel(r *request) (reply, error) {
	d, err := r.details()
	if err != nil {
		return reply{}, err
	}
	for _, c := range r.s.cfg.Connections.Channels() {
		if channelName(c.Connection, c.Number) != r.arg("channel") {
			continue
		}
		if !r.monitors() && c.User != r.user.Name {
			return reply{}, notAuthorised("User not authorised to access object")
		}
		o := r.channelObject(&c, r.s.peers(), d)
		if r.withoutStats() {
			return ok(o)
		}
		o.add("consumer_details", r.s.consumersWhere(func(x *Consumer) bool {
			return x.Connection == c.Connection && x.Channel == c.Number
		}))
		o.add("publishes", []any{})
		o.add("deliveries", []any{})
		return ok(o)
	}
	return reply{}, errNotFound
}

func channelState(c *Channel) string {
	if c.Closing {
		return "closing"
	}
	return "running"
}

func (r *request) channelObject(c *Channel, peers map[string]object, d details) object {
	name := channelName(c.Connection, c.Number)
	o := object{
		{"name", name}, {"number", int(c.Number)}, {"node", r.s.cfg.Node}, {"vhost", c.VHost}, {"user", c.User},
		{"user_who_performed_action", c.User}, {"state", channelState(c)}, {"connection_details", peers[c.Connection]},
	}
	if r.withoutStats() {
		return o
	}
	o = append(o, member{"consumer_count", c.Consumers}, member{"prefetch_count", c.Prefetch},
		member{"messages_unacknowledged", c.Unacked}, member{"messages_unconfirmed", c.Unconfirmed}, member{"messages_uncommitted", c.Uncommitted},
		member{"acks_uncommitted", c.AcksWaiting}, member{"pending_raft_commands", 0}, member{"confirm", c.Confirm}, member{"transactional", c.Tx})
	if c.GlobalPrefetch > 0 {
		o.add("global_prefetch_count", c.GlobalPrefetch)
	}
	addRuntime(&o)
	figures := channelCounters(c)
	w := r.s.sampler.view(part{aChannel, c.VHost, name})
	if !w.idle.IsZero() {
		o.add("idle_since", timeText(w.idle))
	}
	if stats := r.messageStats(&figures, w, d); stats != nil {
		o.add("message_stats", stats)
	}
	return o
}
