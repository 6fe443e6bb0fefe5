package management

import "github.com/leveretmq/leveret/queue"

// quorumStatus handles GET /queues/quorum/V/N/status: the members of a quorum
// queue. It has one, which leads.
func quorumStatus(r *request) (reply, error) {
	info, err := r.vhost.QueueInfo(r.arg("queue"))
	if err != nil {
		return reply{}, orNotFound(err)
	}
	if info.Spec.Arguments.Type != queue.Quorum {
		return reply{}, badRequest("queue '%s' in vhost '%s' is not a quorum queue", info.Spec.Name, r.vhost.Name())
	}
	st := info.Queue.Status()
	last := st.Published
	return plain([]object{{{"Node Name", r.s.cfg.Node}, {"Raft State", "leader"}, {"Membership", "voter"}, {"Last Log Index", last},
		{"Last Written", last}, {"Last Applied", last}, {"Commit Index", last}, {"Snapshot Index", -1}, {"Term", 1}, {"Machine Version", 1}}})
}

// noReplicas is for what changes where the replicas of quorum queues are: on one
// node there is one of each.
func noReplicas(*request) (reply, error) {
	return reply{}, badRequest("a quorum queue has one replica on a single node; it cannot be added to, moved or deleted")
}
