package management

import (
	"github.com/leveretmq/leveret/queue/quorum"
)

// quorumStatus handles GET /queues/quorum/V/N/status: the members of a quorum
// queue. It has one, which leads, in the first term: who is alone holds no other
// election. What is in the log is applied at once and committed with the next group
// commit.
func quorumStatus(r *request) (reply, error) {
	info, err := r.vhost.QueueInfo(r.arg("queue"))
	if err != nil {
		return reply{}, orNotFound(err)
	}
	q, isQuorum := info.Queue.(*quorum.Queue)
	if !isQuorum {
		return reply{}, badRequest("queue '%s' in vhost '%s' is not a quorum queue", info.Spec.Name, r.vhost.Name())
	}
	f := q.Figures()
	return plain([]object{{{"Node Name", r.s.cfg.Node}, {"Raft State", "leader"}, {"Membership", "voter"}, {"Last Log Index", f.Last},
		{"Last Written", f.Committed}, {"Last Applied", f.Last}, {"Commit Index", f.Committed}, {"Snapshot Index", -1}, {"Term", 1},
		{"Machine Version", 1}}})
}

// noReplicas is for what changes where the replicas of quorum queues are: on one
// node there is one of each.
func noReplicas(*request) (reply, error) {
	return reply{}, badRequest("a quorum queue has one replica on a single node; it cannot be added to, moved or deleted")
}
