package management

import (
	"net/http"

	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/quorum"
	"github.com/leveretmq/leveret/vhost"
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
		return unhealthy(notQuorum(info))
	}
	f := q.Figures()
	return plain([]object{{{"Node Name", r.s.cfg.Node}, {"Raft State", "leader"}, {"Membership", "voter"}, {"Last Log Index", f.Last},
		{"Last Written", f.Committed}, {"Last Applied", f.Last}, {"Commit Index", f.Committed}, {"Snapshot Index", -1}, {"Term", 1},
		{"Machine Version", 1}}})
}

// notQuorum says why a queue of another type has no replicas (RabbitMQ 4.0).
func notQuorum(info vhost.QueueInfo) string {
	if info.Spec.Arguments.Type == queue.Classic {
		return "classic_queue_not_supported"
	}
	return "not_quorum_queue"
}

// addReplica handles POST …/replicas/add. On one node a quorum queue has its one
// replica already.
func addReplica(r *request) (reply, error) {
	node, err := r.replicaNode()
	if err != nil {
		return reply{}, err
	}
	if reason := r.noReplicas(); reason != "" {
		return reply{}, unavailable(reason)
	}
	if node != r.s.cfg.Node {
		return reply{}, unavailable("node_not_running")
	}
	return noContent, nil
}

// deleteReplica handles DELETE …/replicas/delete. The last replica stays, and others
// there are none.
func deleteReplica(r *request) (reply, error) {
	if _, err := r.vhost.QueueInfo(r.arg("queue")); err != nil {
		return reply{}, orNotFound(err)
	}
	node, err := r.replicaNode()
	if err != nil {
		return reply{}, err
	}
	if reason := r.noReplicas(); reason != "" {
		return reply{}, unavailable(reason)
	}
	if node == r.s.cfg.Node {
		return reply{}, unavailable("last_node")
	}
	return reply{status: http.StatusAccepted}, nil
}

// replicaNode reads the body of a request about one replica.
func (r *request) replicaNode() (string, error) {
	b, err := r.body()
	if err != nil {
		return "", err
	}
	if err := b.need("node"); err != nil {
		return "", err
	}
	return b.string("node")
}

// noReplicas says why the queue of the path has no replicas; "" if it has.
func (r *request) noReplicas() string {
	if r.vhost == nil {
		return "not_found"
	}
	info, err := r.vhost.QueueInfo(r.arg("queue"))
	if err != nil {
		return "not_found"
	}
	if info.Spec.Arguments.Type != queue.Quorum {
		return notQuorum(info)
	}
	return ""
}

// unavailable is the answer to what replicas cannot do.
func unavailable(reason string) *failure {
	return &failure{http.StatusServiceUnavailable, "service_unavailable", reason}
}

// growReplicas handles POST …/grow: there is nowhere to grow to on one node.
func growReplicas(r *request) (reply, error) {
	b, err := r.body()
	if err != nil {
		return reply{}, err
	}
	return noContent, b.need("vhost_pattern", "queue_pattern", "strategy")
}

// shrinkReplicas handles DELETE …/shrink: no queue gives its last replica up.
func shrinkReplicas(*request) (reply, error) { return reply{status: http.StatusAccepted}, nil }
