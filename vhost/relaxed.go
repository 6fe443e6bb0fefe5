package vhost

import "github.com/leveretmq/leveret/queue"

// relaxed is a declaration as it is compared with the queue that is there, and
// whether it may leave out who owns it. If the node says so, a quorum queue may
// be declared again as a classic one, whatever the flags: applications that are
// not changed yet (RabbitMQ 4.0:
// quorum_queue.property_equivalence.relaxed_checks_on_redeclaration).
func (v *VHost) relaxed(e *queueEntry, d QueueDeclare) (_ QueueDeclare, lax bool) {
	declared := queue.QueueType(d.Arguments)
	if !v.set.config.RelaxedQuorumQueues || e.spec.Arguments.Type != queue.Quorum || declared != queue.Classic && declared != "" {
		return d, false
	}
	d.Durable, d.AutoDelete = e.spec.Durable, e.spec.AutoDelete
	d.Arguments = d.Arguments.Set(queueTypeArgument, queue.Quorum)
	return d, true
}
