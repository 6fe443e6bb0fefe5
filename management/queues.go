package management

import (
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
	"weak"

	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/quorum"
	"github.com/leveretmq/leveret/queue/stream"
	"github.com/leveretmq/leveret/vhost"
)

// queues handles GET /queues, /queues/detailed and /queues/V.
func queues(r *request) (reply, error) {
	vhosts := r.vhosts()
	if len(vhosts) == 1 {
		return r.rows(r.s.queues.of(vhosts[0], r.s.cfg.VHosts))
	}
	var all []row
	for _, v := range vhosts {
		all = append(all, r.s.queues.of(v, r.s.cfg.VHosts)...)
	}
	return r.rows(all)
}

// A queueRow is one queue of a list.
type queueRow struct {
	vhost string
	info  vhost.QueueInfo
}

// newQueueRow is a queue of a list, looked at when it is shown. One that has gone by
// then is not shown.
func newQueueRow(v *vhost.VHost, name string) row {
	return row{v.Name(), name, func(r *request, d details) object {
		info, err := v.QueueInfo(name)
		if err != nil {
			return nil
		}
		return r.queueObject(&queueRow{v.Name(), info}, d, r.detailed())
	}}
}

// queueLists keep the names of queues in order until a queue comes or goes, and a
// moment longer if there are many and they come and go all the time. What is shown
// of them is always fresh. The zero value is ready.
type queueLists struct {
	mu      sync.Mutex // guards byVHost; held while a list is made, which many then share
	byVHost map[*vhost.VHost]queueList
}

type queueList struct {
	at   time.Time
	took time.Duration
	of   weak.Pointer[vhost.QueueRef] // the first of what the rows were made of; nil for none
	rows []row                        // not to be changed
}

const (
	// A list that took longer than slowListing is used again for listingShare
	// times as long (RabbitMQ 4.0 does the same with 5 times).
	slowListing  = 2 * time.Millisecond
	listingShare = 200
	// maxStale is how old a list or a total may be at most.
	maxStale = time.Second
	// maxLists bounds the vhosts whose lists are kept.
	maxLists = 100
)

// stale says that the list must be made again, the queues being what refs says.
func (l *queueList) stale(refs []vhost.QueueRef) bool {
	if l.of == firstOf(refs) {
		return false // the very same slice: vhosts make a new one after each change
	}
	return l.took < slowListing || time.Since(l.at) >= min(listingShare*l.took, maxStale)
}

// firstOf tells a slice apart from others, without keeping the queues.
func firstOf(refs []vhost.QueueRef) weak.Pointer[vhost.QueueRef] {
	if len(refs) == 0 {
		return weak.Pointer[vhost.QueueRef]{}
	}
	return weak.Make(&refs[0])
}

// of lists the queues of a vhost by name.
func (l *queueLists) of(v *vhost.VHost, all *vhost.Set) []row {
	l.mu.Lock()
	defer l.mu.Unlock()
	refs := v.QueueRefs()
	if kept, ok := l.byVHost[v]; ok && !kept.stale(refs) {
		return kept.rows
	}
	list := queueList{at: time.Now(), of: firstOf(refs), rows: make([]row, len(refs))}
	for i := range refs {
		list.rows[i] = newQueueRow(v, refs[i].Spec.Name)
	}
	slices.SortFunc(list.rows, func(a, b row) int { return strings.Compare(a.name, b.name) })
	list.took = time.Since(list.at)
	l.forgetLocked(all)
	l.byVHost[v] = list
	return list.rows
}

// forgetLocked makes room: it lets go of vhosts that are no more, and of all if there
// are too many. l.mu must be held.
func (l *queueLists) forgetLocked(all *vhost.Set) {
	if l.byVHost == nil || len(l.byVHost) >= maxLists {
		l.byVHost = make(map[*vhost.VHost]queueList)
	}
	for v := range l.byVHost {
		if now, _ := all.Get(v.Name()); now != v {
			delete(l.byVHost, v)
		}
	}
}

func oneQueue(r *request) (reply, error) {
	d, err := r.details()
	if err != nil {
		return reply{}, err
	}
	info, err := r.vhost.QueueInfo(r.arg("queue"))
	if err != nil {
		return reply{}, orNotFound(err)
	}
	o := r.queueObject(&queueRow{r.vhost.Name(), info}, d, true)
	if r.withoutStats() {
		return ok(o)
	}
	o.add("consumer_details", r.s.consumersWhere(func(c *Consumer) bool {
		return c.VHost == r.vhost.Name() && c.Queue == info.Spec.Name
	}))
	o.add("incoming", []any{})
	o.add("deliveries", []any{})
	return ok(o)
}

// detailed says that a list of queues shows all that a single one does (RabbitMQ
// 4.0: also when columns are asked for).
func (r *request) detailed() bool {
	return r.resource != nil && r.resource.segments[len(r.resource.segments)-1] == "detailed" || r.query.Get("columns") != ""
}

// withoutStats says that the answer has no figures.
func (r *request) withoutStats() bool { return r.s.cfg.DisableStats || r.flag("disable_stats") }

// queueObject describes a queue. The object of a single one, or of a detailed list,
// has its policies as null if there are none; a list leaves them out (RabbitMQ 4.0). It is good until
// the request describes the next one.
func (r *request) queueObject(q *queueRow, d details, single bool) object {
	info := &q.info
	o := append(r.scratch[:0], member{"name", info.Spec.Name}, member{"vhost", q.vhost}, member{"durable", info.Spec.Durable},
		member{"auto_delete", info.Spec.AutoDelete}, member{"exclusive", info.Spec.Exclusive}, member{"arguments", info.Spec.Arguments.Table},
		member{"node", r.s.cfg.Node}, member{"state", "running"}, member{"type", info.Spec.Arguments.Type})
	stats := !r.withoutStats()
	addPolicies(&o, info, single && stats)
	defer func() { r.scratch = o }() // with the room it has found
	if stats {
		addEffective(&o, info)
		r.addQueueFigures(&o, q, d, single)
		return o
	}
	totals, here := r.s.cfg.EnableQueueTotals || r.flag("enable_queue_totals"), []string{r.s.cfg.Node}
	if totals {
		st := info.Queue.Status()
		o = append(o, member{"messages", st.Messages()}, member{"messages_ready", st.Ready},
			member{"messages_unacknowledged", st.Unacked})
	}
	replicated := info.Spec.Arguments.Type != queue.Classic
	if totals || replicated {
		o.add("online", here)
	}
	if replicated {
		o = append(o, member{"leader", r.s.cfg.Node}, member{"members", here})
	}
	return o
}

func addPolicies(o *object, info *vhost.QueueInfo, single bool) {
	addOrNull(o, "policy", info.Policy, info.Policy != "", single)
	addOrNull(o, "operator_policy", info.Operator, info.Operator != "", single)
}

func addEffective(o *object, info *vhost.QueueInfo) {
	if len(info.Effective) == 0 {
		o.add("effective_policy_definition", noMembers)
		return
	}
	o.add("effective_policy_definition", map[string]any(info.Effective))
}

func (r *request) addQueueFigures(o *object, q *queueRow, d details, single bool) {
	st := q.info.Queue.Status()
	c := queueCounters(&st)
	w := r.s.sampler.view(part{aQueue, q.vhost, q.info.Spec.Name})
	addFigures(o, levelMetrics, &c, w, d)
	*o = append(*o,
		member{"consumers", st.Consumers},
		member{"memory", queueMemory(&st)},
		member{"message_bytes", st.Bytes()},
		member{"message_bytes_ready", st.ReadyBytes},
		member{"message_bytes_unacknowledged", st.UnackedBytes},
		member{"message_bytes_ram", bytesInMemory(&st)},
		member{"message_bytes_persistent", share(st.Bytes(), st.Persistent, st.Messages())},
		member{"message_bytes_paged_out", st.ReadyBytes + st.UnackedBytes - bytesInMemory(&st)},
		member{"messages_ram", st.InMemory + st.Unacked},
		member{"messages_ready_ram", st.InMemory},
		member{"messages_unacknowledged_ram", st.Unacked},
		member{"messages_persistent", st.Persistent},
		member{"messages_paged_out", st.Ready - st.InMemory},
		member{"messages_delayed", st.Delayed},
		member{"storage_version", 2},
		member{"user_who_performed_action", q.info.User},
	)
	if single {
		addRuntime(o)
	}
	addOrNull(o, "exclusive_consumer_tag", st.ExclusiveTag, st.ExclusiveTag != "", single)
	addOrNull(o, "single_active_consumer_tag", st.ActiveTag, st.ActiveTag != "", single)
	addOrNull(o, "head_message_timestamp", st.HeadTimestamp, st.HeadTimestamp != 0, single)
	addUse(o, &st, w.idle)
	drain := r.s.sampler.drain(q.vhost, q.info.Spec.Name, st.Ready)
	addOrNull(o, "drain_seconds", drain, !math.IsNaN(drain), single)
	if stats := r.messageStats(&c, w, d); stats != nil {
		o.add("message_stats", stats)
	}
	r.addTypeFigures(o, q)
	if owner, named := q.info.Owner.(interface{ ConnectionName() string }); named {
		o.add("owner_pid_details", r.s.connectionDetails(owner.ConnectionName()))
	}
}

// addUse adds how well the consumers keep up, or since when there is nobody.
// The capacity is the chance that a message finds a consumer with room: it is
// certain while none is waiting.
func addUse(o *object, st *queue.Status, idle time.Time) {
	if st.IdleSince > 0 {
		idle = time.UnixMilli(st.IdleSince)
	}
	if !idle.IsZero() {
		o.add("idle_since", timeText(idle))
	}
	capacity := rate(consumerCapacity(st))
	o.add("consumer_capacity", capacity)
	o.add("consumer_utilisation", capacity)
}

// defaultDeliveryLimit is a quorum queue's (RabbitMQ 4.0).
const defaultDeliveryLimit = 20

// addTypeFigures adds the members that only some types of queue have.
func (r *request) addTypeFigures(o *object, q *queueRow) {
	if q.info.Spec.Arguments.Type == queue.Classic {
		return
	}
	here := []string{r.s.cfg.Node}
	*o = append(*o, member{"leader", r.s.cfg.Node}, member{"members", here}, member{"online", here})
	if s, isStream := q.info.Queue.(*stream.Queue); isStream {
		r.addStream(o, s)
		return
	}
	r.addQuorum(o, q)
}

// addStream adds what only streams have. The offsets and the places of tracked
// consumers go beyond RabbitMQ.
func (r *request) addStream(o *object, s *stream.Queue) {
	f, places := s.Figures(), object{}
	for _, tag := range slices.Sorted(maps.Keys(s.Places())) {
		places.add(tag, s.Places()[tag])
	}
	*o = append(*o, member{"segments", f.Segments}, member{"readers", object{{r.s.cfg.Node, s.Status().Consumers}}},
		member{"first_offset", f.First}, member{"next_offset", f.Next}, member{"last_chunk_timestamp", f.LastTime / 1000},
		member{"tracked_offsets", places})
}

// addQuorum adds what only quorum queues have.
func (r *request) addQuorum(o *object, q *queueRow) {
	if qq, isQuorum := q.info.Queue.(*quorum.Queue); isQuorum {
		f := qq.Figures()
		*o = append(*o, member{"messages_dlx", f.Dead}, member{"message_bytes_dlx", f.DeadBytes}, member{"messages_ready_high", f.High},
			member{"messages_ready_normal", f.Normal}, member{"messages_ready_returned", f.Returned})
	}
	limit := int64(defaultDeliveryLimit)
	if n := q.info.Spec.Arguments.DeliveryLimit; n != queue.NoDeliveryLimit {
		limit = n
	}
	if n, set := q.info.Effective["delivery-limit"].(float64); set {
		limit = int64(n)
	}
	o.add("delivery_limit", max(limit, -1))
	o.add("open_files", object{{r.s.cfg.Node, 0}})
}

// messageOverhead is what a message takes in memory besides its body, in bytes;
// an estimate.
const messageOverhead = 160

// queueMemory estimates what a queue takes in memory, in bytes.
func queueMemory(st *queue.Status) int64 {
	return bytesInMemory(st) + int64(st.InMemory+st.Unacked)*messageOverhead
}

func bytesInMemory(st *queue.Status) int64 {
	return share(st.ReadyBytes, st.InMemory, st.Ready) + st.UnackedBytes
}

// share is the part of total that n of all have on average.
func share(total int64, n, all int) int64 {
	if n >= all {
		return total // exactly; 0 of an empty queue
	}
	return total / int64(all) * int64(n)
}

// addOrNull adds a value that a queue may not have: then a single queue's
// object has null, and one of a list has no such member (RabbitMQ 4.0).
func addOrNull(o *object, name string, v any, there, single bool) {
	switch {
	case there:
		o.add(name, v)
	case single:
		o.add(name, nil)
	}
}

// timeText writes a time as RabbitMQ does.
func timeText(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000+00:00") }

func putQueue(r *request) (reply, error) {
	b, err := r.body()
	if err != nil {
		return reply{}, err
	}
	if node, isText := b["node"].(string); isText && node != "" && node != r.s.cfg.Node {
		return reply{}, badRequest("Node %s could not be contacted", node)
	}
	d, err := readQueue(r.arg("queue"), b)
	if err != nil {
		return reply{}, err
	}
	_, missing := r.vhost.QueueInfo(d.Name)
	_, err = r.vhost.DeclareQueue(r.actor(), d)
	return put(missing != nil, err)
}

// maxNameLength is the longest name, in bytes: a shortstr.
const maxNameLength = 255

// readQueue reads a declaration from a request's or a definition's body. A
// queue of the API is never exclusive.
func readQueue(name string, b body) (vhost.QueueDeclare, error) {
	d := vhost.QueueDeclare{Name: name}
	if err := checkName("queue", name); err != nil {
		return d, err
	}
	var err error
	if d.Durable, err = b.boolean("durable"); err != nil {
		return d, err
	}
	if d.AutoDelete, err = b.boolean("auto_delete"); err != nil {
		return d, err
	}
	d.Arguments, err = b.table("arguments")
	return d, err
}

func checkName(what, name string) error {
	switch {
	case len(name) > maxNameLength:
		return badRequest("%s should be less than %d bytes, actually was %d\n", what, maxNameLength, len(name))
	case name == "" && what == "queue":
		return badRequest("the name of a queue must not be empty")
	}
	return checkUTF8(what, name)
}

// checkUTF8 refuses names that are not UTF-8: in definitions, which are JSON, they
// would be other ones.
func checkUTF8(what, name string) error {
	if utf8.ValidString(name) {
		return nil
	}
	return badRequest("the name of a %s must be UTF-8", what)
}

func deleteQueue(r *request) (reply, error) {
	name := r.arg("queue")
	if _, err := r.vhost.QueueInfo(name); err != nil {
		return reply{}, orNotFound(err)
	}
	_, err := r.vhost.DeleteQueue(r.actor(), name, queue.Condition{IfUnused: r.flag("if-unused"), IfEmpty: r.flag("if-empty")})
	return done(err)
}

func purge(r *request) (reply, error) {
	if _, err := r.vhost.QueueInfo(r.arg("queue")); err != nil {
		return reply{}, orNotFound(err) // to who may not read it, too (RabbitMQ 4.0)
	}
	_, err := r.vhost.PurgeQueue(r.actor(), r.arg("queue"))
	return done(orNotFound(err))
}

// queueActions handles POST …/actions. What RabbitMQ 3 had here was about
// mirrors.
func queueActions(r *request) (reply, error) {
	if !anyOf(r.user.Tags, "administrator") {
		return reply{}, notAuthorised("Not administrator user")
	}
	if _, err := r.vhost.Queue(r.actor(), r.arg("queue")); err != nil {
		return reply{}, missing(orNotFound(err), "queue_not_found")
	}
	b, err := r.body()
	if err != nil {
		return reply{}, err
	}
	if err := b.need("action"); err != nil {
		return reply{}, err
	}
	return reply{}, badRequest("unknown action '%s'", jsonText(b["action"]))
}
