package management

import (
	"net/http"
	"time"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/vhost"
)

// alivenessQueue is the queue of the test; users need configure and read on it
// (RabbitMQ 4.0).
const alivenessQueue = "aliveness-test"

// aliveness handles GET /aliveness-test/V: it sends a message through a queue
// and gets it. Unlike RabbitMQ's it leaves no queue behind.
func aliveness(r *request) (reply, error) {
	r.s.alive.Lock()
	defer r.s.alive.Unlock()
	by := r.actor()
	_, missing := r.vhost.QueueInfo(alivenessQueue)
	q, err := r.vhost.DeclareQueue(by, vhost.QueueDeclare{Name: alivenessQueue})
	if err != nil {
		return reply{}, r.refused(err)
	}
	if missing != nil {
		defer r.vhost.DeleteQueue(by, alivenessQueue, queue.Condition{}) // left behind, it does no harm
	}
	m := message.New(2, 0)
	m.Body, m.RoutingKey, m.Time = []byte("test_message"), alivenessQueue, time.Now().UnixMilli()
	if _, err := r.s.publish(r.http.Context(), r.vhost, by, r.user, m); err != nil {
		return reply{}, r.refused(err)
	}
	if err := by.MayQueue(vhost.Read, alivenessQueue); err != nil {
		return reply{}, r.refused(err)
	}
	if _, _, found, err := q.Get(true); err != nil || !found {
		return reply{status: http.StatusServiceUnavailable, body: object{{"status", "failed"}, {"reason", "the test message did not arrive"}}}, err
	}
	return healthy(r)
}
