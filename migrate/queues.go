package migrate

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A State is what became of a queue.
type State string

// The states of a queue. Only in the first four it is where it should be.
const (
	Planned     State = "planned" // a dry run looked at it
	Empty       State = "empty"   // there was nothing to move
	Moved       State = "moved"
	Copied      State = "copied"      // a stream: it stays at the source, too
	Exclusive   State = "exclusive"   // it belongs to one connection and ends with it
	Busy        State = "busy"        // the source's consumers have it
	Missing     State = "missing"     // the target has no queue of this name
	Failed      State = "failed"      // see the reason; the rest is still at the source
	Interrupted State = "interrupted" // the rest is still at the source
)

func (s State) fine() bool { return s == Planned || s == Empty || s == Moved || s == Copied }

// A Queue is what became of one queue. The numbers are of ready messages; those
// of the target include what it had before.
type Queue struct {
	VHost        string `json:"vhost"`
	Name         string `json:"name"`
	Type         string `json:"type"`
	Before       int64  `json:"source_before"`
	Moved        int64  `json:"moved"`
	After        int64  `json:"source_after"`
	TargetBefore int64  `json:"target_before"`
	TargetAfter  int64  `json:"target_after"`
	State        State  `json:"state"`
	Reason       string `json:"reason,omitempty"`

	listed listing
}

// fail gives a queue a state that is not what was asked for.
func (q *Queue) fail(s State, format string, args ...any) {
	q.State, q.Reason = s, fmt.Sprintf(format, args...)
}

// A listing is a queue as the source's HTTP API has it. Its figures may be some
// seconds old.
type listing struct {
	VHost     string
	Name      string
	Type      string
	Exclusive bool
	Arguments item
	Ready     int64 `json:"messages_ready"`
	Unacked   int64 `json:"messages_unacknowledged"`
	Bytes     int64 `json:"message_bytes"`
	Consumers int64 `json:"consumers"`
	Owner     any   `json:"owner_pid_details"` // an object if it is exclusive
}

// columns keeps the listing of many queues small.
const columns = "vhost,name,type,exclusive,arguments,messages_ready,messages_unacknowledged,message_bytes,consumers,owner_pid_details"

// queues lists the source's queues that are to be moved, by vhost and name.
func (m *migration) queues(ctx context.Context) ([]*Queue, error) {
	var all []listing
	err := m.from.API.do(ctx, http.MethodGet, "/queues?"+url.Values{"columns": {columns}}.Encode(), nil, &all)
	if err != nil {
		return nil, fmt.Errorf("list the queues of the source: %w", advised(err, sourceOption))
	}
	var list []*Queue
	for _, l := range all {
		if m.chosen(l.VHost, l.Name) {
			list = append(list, &Queue{VHost: l.VHost, Name: l.Name, Type: cmp.Or(l.Type, l.Arguments.text("x-queue-type"), "classic"),
				Before: l.Ready, listed: l})
		}
	}
	slices.SortFunc(list, func(a, b *Queue) int {
		return cmp.Or(cmp.Compare(a.VHost, b.VHost), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

// moveMessages moves the messages of all queues, several queues at a time.
func (m *migration) moveMessages(ctx context.Context) error {
	list, err := m.queues(ctx)
	if err != nil {
		return err
	}
	var total int64
	for _, q := range list {
		total += q.listed.Ready
	}
	m.opts.Watch(Event{Messages: total, Queues: len(list)})
	if m.opts.DryRun {
		m.plan(list)
		return nil
	}
	takeBack, err := m.grantAccess(ctx, list)
	if err != nil {
		return err
	}
	defer takeBack()
	m.moveAll(ctx, list)
	for _, q := range list {
		m.report.Queues = append(m.report.Queues, *q)
		m.report.Moved += q.Moved
	}
	return nil
}

// plan is a dry run.
func (m *migration) plan(list []*Queue) {
	for _, q := range list {
		switch {
		case q.exclusive():
			q.fail(Exclusive, "it belongs to a connection and ends with it")
		case q.Type != "stream" && q.listed.Consumers > 0 && q.listed.Ready+q.listed.Unacked > 0:
			q.fail(Busy, "it has %d consumers; stop them first", q.listed.Consumers)
		default:
			q.State = Planned
		}
		q.After = q.Before
		m.report.Queues = append(m.report.Queues, *q)
		m.opts.Watch(Event{Queue: q})
	}
}

func (q *Queue) exclusive() bool {
	owner, isObject := q.listed.Owner.(map[string]any)
	return q.listed.Exclusive || isObject && len(owner) > 0
}

// grantAccess gives the target's login all permissions in the vhosts that it has
// none in. They are taken back by the function that it returns.
func (m *migration) grantAccess(ctx context.Context, list []*Queue) (takeBack func(), err error) {
	user := m.to.user()
	var granted []string
	takeBack = func() {
		for _, path := range granted {
			if err := m.to.API.do(context.WithoutCancel(ctx), http.MethodDelete, path, nil, nil); err != nil {
				m.say("the permissions of %s at the target could not be taken back: %v", user, err)
			}
		}
	}
	seen := map[string]bool{}
	for _, q := range list {
		if seen[q.VHost] {
			continue
		}
		seen[q.VHost] = true
		path := apiPath("permissions", q.VHost, user)
		err := m.to.API.do(ctx, http.MethodGet, path, nil, nil)
		if err == nil || !hasStatus(err, http.StatusNotFound) || hasStatus(m.to.API.do(ctx, http.MethodGet, apiPath("vhosts", q.VHost), nil, nil), http.StatusNotFound) {
			continue // whoever may not will hear it when connecting
		}
		all := map[string]string{"configure": ".*", "write": ".*", "read": ".*"}
		if err := m.to.API.do(ctx, http.MethodPut, path, all, nil); err != nil {
			takeBack()
			return nil, fmt.Errorf("give %s permissions in vhost '%s' of the target: %w", user, q.VHost, err)
		}
		granted = append(granted, path)
	}
	return takeBack, nil
}

// moveAll hands the queues to some workers, which end with the list.
func (m *migration) moveAll(ctx context.Context, list []*Queue) {
	work := make(chan *Queue, len(list))
	for _, q := range list {
		work <- q
	}
	close(work)
	var wg sync.WaitGroup
	for range min(m.opts.Parallel, len(list)) {
		wg.Go(func() {
			var l link
			defer l.close()
			for q := range work {
				m.move(ctx, &l, q)
				m.opts.Watch(Event{Queue: q})
			}
		})
	}
	wg.Wait()
}

// A link is a worker's connections to both brokers, in one vhost.
type link struct {
	vhost    string
	from, to *amqp.Connection
}

// open makes sure that the connections are there.
func (l *link) open(ctx context.Context, m *migration, vhost string) error {
	if l.from != nil && l.vhost == vhost && !l.from.IsClosed() && !l.to.IsClosed() {
		return nil
	}
	l.close()
	mark := rand.Text()
	from, err := m.from.dial(vhost, mark)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	to, err := m.to.dial(vhost, mark)
	if err != nil {
		_ = from.Close() // nothing was done with it
		return fmt.Errorf("target: %w", err)
	}
	l.vhost, l.from, l.to = vhost, from, to
	if m.to.has(ctx, from, mark) {
		l.close()
		return errOneBroker
	}
	return nil
}

// errOneBroker says that a queue would be moved into itself, which never ends.
var errOneBroker = errors.New("source and target are one broker; name another with --to")

// has says whether a connection with the mark is one to this endpoint's broker: what
// addresses do not tell, as those of one broker may be several. Where something between
// gives the connection other addresses it is not found.
func (e Endpoint) has(ctx context.Context, c *amqp.Connection, mark string) bool {
	var found struct {
		Properties struct {
			Mark string `json:"leveret_migration"`
		} `json:"client_properties"`
	}
	ctx, cancel := context.WithTimeout(ctx, cutOff)
	defer cancel()
	name := fmt.Sprintf("%s -> %s", c.LocalAddr(), c.RemoteAddr()) // RabbitMQ 4.0
	err := e.API.do(ctx, http.MethodGet, apiPath("connections", name), nil, &found)
	return err == nil && found.Properties.Mark == mark // what is wrong with the API is told where it is needed
}

// close ends the connections; what matters was settled before.
func (l *link) close() {
	if l.from != nil {
		_ = l.from.Close()
		_ = l.to.Close()
	}
	l.from, l.to = nil, nil
}

// cutOff is how long what is under way may take after an interruption.
const cutOff = 10 * time.Second

// move moves one queue.
func (m *migration) move(ctx context.Context, l *link, q *Queue) {
	switch {
	case ctx.Err() != nil:
		q.fail(Interrupted, "not begun")
		q.After = q.Before
		return
	case q.exclusive():
		q.fail(Exclusive, "it belongs to a connection and ends with it")
		if q.Before+q.listed.Unacked == 0 {
			q.State, q.Reason = Empty, "an exclusive queue, which ends with its connection"
		}
		q.After = q.Before
		return
	}
	if err := l.open(ctx, m, q.VHost); err != nil {
		q.fail(Failed, "%v", err)
		return
	}
	from, to := l.from, l.to
	stop := context.AfterFunc(ctx, func() { // a broker that does not answer must not hold up the end
		time.AfterFunc(cutOff, func() {
			_ = from.Close()
			_ = to.Close()
		})
	})
	defer stop()
	var err error
	if q.Type == "stream" {
		err = m.copyStream(ctx, l, q)
	} else {
		err = m.drain(ctx, l, q)
	}
	if err != nil && q.State == "" {
		q.fail(Failed, "%v", explain(err))
	}
	m.count(ctx, l, q)
}

// explain adds what to do about an error of one of the brokers.
func explain(err error) error {
	e, ok := errors.AsType[*amqp.Error](err)
	if !ok {
		return err
	}
	switch {
	case e.Code == amqp.PreconditionFailed && contains(e.Reason, "user_id"):
		return fmt.Errorf("%w: the message names the user who sent it, which only that user or one with the tag impersonator may; "+
			"give the target's login that tag (set_user_tags) and run it again", err)
	case e.Code == amqp.AccessRefused:
		return fmt.Errorf("%w: give the login permissions there (set_permissions) and run it again", err)
	}
	return err
}

// count looks how many messages the queue has now on both sides.
func (m *migration) count(ctx context.Context, l *link, q *Queue) {
	if l.open(ctx, m, q.VHost) != nil {
		return // the reason is there already
	}
	if n, err := ready(l.from, q.Name); err == nil {
		q.After = n
	}
	if n, err := ready(l.to, q.Name); err == nil {
		q.TargetAfter = n
	}
	if q.State == Moved && q.After > 0 {
		q.fail(Busy, "messages still arrive at the source; stop its publishers and run it again")
	}
}

// ready is how many messages of a queue wait for a consumer.
func ready(conn *amqp.Connection, queue string) (int64, error) {
	q, err := inspect(conn, queue)
	return int64(q.Messages), err
}

// inspect counts the ready messages and the consumers of a queue, on a channel of
// its own, as asking for one that is not there ends it.
func inspect(conn *amqp.Connection, queue string) (amqp.Queue, error) {
	ch, err := conn.Channel()
	if err != nil {
		return amqp.Queue{}, err
	}
	defer ch.Close()
	return ch.QueueDeclarePassive(queue, false, false, false, false, nil)
}
