package management

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/stream"
	"github.com/leveretmq/leveret/vhost"
)

// A transfer moves or copies messages of a queue elsewhere. A message leaves its
// queue only after the target has confirmed it.
type transfer struct {
	from   queue.Queue
	stream *streamSource // nil unless the queue is a stream
	filter *messageFilter
	count  int // at most so many are transferred
	rate   int // messages a second; 0 is no limit
	keep   bool
	tell   func() // of progress; nil is nobody
	to     func(m *message.Message) (exchange, key string, ok bool)
	pub    *vhost.Publisher
	may    func(m *message.Message) error // whether the user may publish it
	// unique is the queue's name if its messages must not come back to it: it would
	// take them for duplicates of themselves. Else it is "".
	unique string

	held   []queue.Delivery // looked at, and given back in the end
	size   int              // of the bodies of what was looked at, in bytes
	left   int              // ready when it began, and not looked at
	next   uint64           // of a stream: the offset of the first one that was not looked at
	result transferred
}

// transferred is what became of the messages.
type transferred struct{ transferred, skipped, unroutable, refused int }

// transferBatch is how many messages share a confirm.
const transferBatch = 100

// moveMessages handles POST /queues/V/N/move, which RabbitMQ does not have. The
// body names the target as to: a queue, or an exchange with a routing key that
// replaces the message's own; in another vhost if it says so.
func moveMessages(r *request) (reply, error) { return r.transfer(false, (*transfer).readTarget) }

// copyMessages handles POST /queues/V/N/copy; see moveMessages.
func copyMessages(r *request) (reply, error) { return r.transfer(true, (*transfer).readTarget) }

// redriveMessages handles POST /queues/V/N/redrive: it moves dead letters back
// to the queue that each has come from last. Out of a stream it copies them.
func redriveMessages(r *request) (reply, error) { return r.transfer(false, (*transfer).redrive) }

// transfer reads what all transfers have in common: count, rate in messages a
// second, filter, offset of a stream, and progress, which makes the answer a line of
// JSON now and then.
func (r *request) transfer(keep bool, target func(t *transfer, r *request, b body) error) (reply, error) {
	b, err := r.body()
	if err != nil {
		return reply{}, err
	}
	if err := b.only("to", "count", "rate", "filter", "offset", "progress"); err != nil {
		return reply{}, err
	}
	t := &transfer{keep: keep, count: maxScan}
	for name, to := range map[string]*int{"count": &t.count, "rate": &t.rate} {
		n, there, err := b.limited(name, maxScan)
		if err != nil {
			return reply{}, err
		}
		if there {
			*to = n
		}
	}
	progress, err := b.boolean("progress")
	if err != nil {
		return reply{}, err
	}
	if t.filter, err = readFilter(b); err != nil {
		return reply{}, err
	}
	if t.from, err = r.readable(r.arg("queue")); err != nil {
		return reply{}, err
	}
	if err := target(t, r, b); err != nil {
		return reply{}, err
	}
	if err := t.open(r, b); err != nil {
		return reply{}, err
	}
	if progress {
		return reply{status: http.StatusOK, stream: func() error { return r.streamTransfer(t) }}, nil
	}
	if err := t.run(r); err != nil {
		return reply{}, channelError(err)
	}
	return ok(t.report())
}

// open begins to read the queue.
func (t *transfer) open(r *request, b body) error {
	s, isStream := t.from.(*stream.Queue)
	offset, there, err := b.integer("offset")
	if err != nil {
		return err
	}
	if !isStream {
		if there {
			return badRequest("queue '%s' is no stream and has no offsets", t.from.Name())
		}
		t.left = t.from.Status().Ready
		return nil
	}
	if redrives := strings.HasSuffix(r.http.URL.Path, "/redrive"); !t.keep && !redrives {
		return badRequest("messages cannot be moved out of stream '%s', which keeps them; copy them", s.Name())
	}
	t.keep = true
	t.stream, t.left, err = newStreamSource(s, offset)
	t.next = uint64(t.stream.end) - uint64(t.left)
	return err
}

// report is the answer: what became of the messages, how many were not looked at,
// and whether they are still in the queue, too. Of a stream it has the offset to go on
// from.
func (t *transfer) report() object {
	o := object{{"transferred", t.result.transferred}, {"skipped", t.result.skipped},
		{"unroutable", t.result.unroutable}, {"refused", t.result.refused}, {"left", t.left}, {"kept", t.keep}}
	if t.stream != nil {
		o.add("next_offset", t.next)
	}
	return o
}

// progressEvery is how often a transfer tells of its progress.
const progressEvery = time.Second

// streamTransfer runs a transfer and writes how far it is as lines of JSON: the last
// one has done, and the error if it has failed.
func (r *request) streamTransfer(t *transfer) error {
	r.w.Header().Set("Content-Type", "application/x-ndjson")
	r.w.Header().Set("Cache-Control", "no-cache")
	r.w.WriteHeader(http.StatusOK)
	control, told := http.NewResponseController(r.w), time.Time{}
	line := func(o object) {
		r.w.Write(append(appendJSON(nil, o), '\n')) // a client that has gone ends the context
		control.Flush()                             // likewise
		told = time.Now()
	}
	t.tell = func() {
		if time.Since(told) >= progressEvery {
			line(append(t.report(), member{"done", false}))
		}
	}
	err := t.run(r)
	last := append(t.report(), member{"done", true})
	if f := failureOf(channelError(err)); err != nil && f != nil {
		last.add("error", f.reason)
	} else if err != nil {
		last.add("error", err.Error())
	}
	line(last)
	return nil
}

// readTarget reads the target of a move or copy.
func (t *transfer) readTarget(r *request, b body) error {
	m, isObject := b["to"].(map[string]any)
	if !isObject {
		return badRequest("to must be an object with a queue, or an exchange and a routing_key")
	}
	to := body(m)
	if err := to.only("queue", "exchange", "routing_key", "vhost"); err != nil {
		return err
	}
	v := r.vhost
	if name, err := to.text("vhost"); err != nil {
		return err
	} else if name != "" {
		other, exists := r.s.cfg.VHosts.Get(name)
		if !exists || !r.sees(name) {
			return badRequest("there is no virtual host '%s' for this user", name)
		}
		v = other
	}
	name, err := to.text("queue")
	if err != nil {
		return err
	}
	exchange, err := to.text("exchange")
	if err != nil {
		return err
	}
	key, err := to.routingKey()
	if err != nil {
		return err
	}
	if _, toDefault := to["exchange"]; name == "" && !toDefault {
		return badRequest("to must have a queue or an exchange")
	}
	if err := mustHave(v, name, exchange); err != nil {
		return err
	}
	t.publishIn(r, v)
	if t.unique != "" && (name == t.unique || leads(v, exchange, t.unique)) {
		return badRequest("queue '%s' takes no duplicate of what it holds: its messages cannot be moved where they may come back to it", t.unique)
	}
	t.to = func(m *message.Message) (string, string, bool) {
		switch {
		case name != "":
			return "", name, true
		case to["routing_key"] == nil:
			return exchange, m.RoutingKey, true
		}
		return exchange, key, true
	}
	return nil
}

// mustHave says if there is not the queue, or without one the exchange, that messages
// are to go to.
func mustHave(v *vhost.VHost, queue, exchange string) error {
	if queue != "" {
		_, err := v.QueueInfo(queue)
		return err
	}
	_, err := v.ExchangeInfo(exchange)
	return err
}

// leads says whether messages of an exchange can get into a queue by its bindings and
// those of the exchanges behind it, its alternate among them. To the default exchange
// that depends on the key.
func leads(v *vhost.VHost, exchange, queue string) bool {
	seen := map[string]bool{"": true, exchange: true} // the default exchange is no alternate
	for behind := []string{exchange}; exchange != "" && len(behind) > 0; behind = behind[1:] {
		var next []string
		for b := range v.BindingsFrom(behind[0]) {
			if !b.ToExchange && b.Destination == queue {
				return true
			}
			if b.ToExchange {
				next = append(next, b.Destination)
			}
		}
		if info, err := v.ExchangeInfo(behind[0]); err == nil { // else it is no more
			alternate, _ := info.X.Alternate()
			next = append(next, alternate)
		}
		for _, name := range next {
			if !seen[name] {
				seen[name] = true
				behind = append(behind, name)
			}
		}
	}
	return false
}

// redrive makes the target the queue that a dead letter has come from.
func (t *transfer) redrive(r *request, _ body) error {
	t.publishIn(r, r.vhost)
	t.to = func(m *message.Message) (string, string, bool) {
		name, ok := lastDeath(m)
		return "", name, ok
	}
	return nil
}

// lastDeath is the queue of the newest event in a message's x-death header.
func lastDeath(m *message.Message) (queue string, ok bool) {
	v, _ := newestDeath(m).Lookup("queue")
	queue, ok = v.(string)
	return queue, ok
}

// newestDeath is the newest event in a message's x-death header; nil if it was not
// dead-lettered.
func newestDeath(m *message.Message) frames.Table {
	var p frames.Properties
	if p.Parse(m.Header) != nil {
		return nil // it was checked when it came in
	}
	t, _ := p.Table() // Parse has checked it
	v, _ := t.Lookup("x-death")
	deaths, _ := v.([]any)
	if len(deaths) == 0 {
		return nil
	}
	death, _ := deaths[0].(frames.Table)
	return death
}

// publishIn makes the publisher for a vhost. The user's permissions there count.
func (t *transfer) publishIn(r *request, v *vhost.VHost) {
	by := r.actorIn(v.Name())
	t.pub = v.NewPublisher()
	t.pub.Again = true
	t.pub.Source = vhost.TraceSource{Connection: "management", User: by.User()}
	t.may = func(m *message.Message) error { return mayPublishTo(v, by, m) }
	info, err := r.vhost.QueueInfo(t.from.Name())
	if err == nil && v == r.vhost && !t.keep && info.Spec.Arguments.Deduplication != "" {
		t.unique = info.Spec.Name
	}
}

// run transfers what was ready when it began, so that a move into the same
// queue ends; at most maxScan messages with maxScanBytes.
func (t *transfer) run(r *request) error {
	defer t.close()
	ctx, began := r.http.Context(), time.Now()
	for stop := max(0, t.left-maxScan); t.left > stop && t.size < maxScanBytes && t.result.transferred < t.count; {
		batch, taken, err := t.take(ctx, min(t.left-stop, t.batchSize(), t.count-t.result.transferred))
		if err == nil {
			err = t.send(batch)
		}
		if err != nil || taken == 0 {
			t.held = append(t.held, batch...)
			return err
		}
		t.left -= taken
		if t.stream != nil {
			t.next = uint64(t.stream.last)
		}
		if t.tell != nil {
			t.tell()
		}
		if err := t.pause(r, began); err != nil {
			return err
		}
	}
	return nil
}

// close gives back what is held.
func (t *transfer) close() {
	if t.stream != nil {
		t.stream.close()
		return
	}
	t.from.Settle(nil, t.held, queue.Returned)
}

// batchSize is how many messages share a confirm: a tenth of a second's at most.
func (t *transfer) batchSize() int {
	if t.rate == 0 {
		return transferBatch
	}
	return max(1, min(transferBatch, t.rate/10))
}

// pause waits until the rate allows more. The error says that nobody wants the
// transfer any more.
func (t *transfer) pause(r *request, began time.Time) error {
	ctx := r.http.Context()
	if t.rate == 0 {
		return ctx.Err()
	}
	due := began.Add(time.Duration(t.result.transferred) * time.Second / time.Duration(t.rate))
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	case <-r.s.closing:
		return badRequest("the broker is stopping; what was not transferred is where it was")
	}
}

// get gets a message.
func (t *transfer) get(ctx context.Context) (d queue.Delivery, found bool, err error) {
	if t.stream != nil {
		return t.stream.get(ctx)
	}
	d, _, found, err = t.from.Get(false)
	return d, found, err
}

// take gets up to n messages and returns those that match.
func (t *transfer) take(ctx context.Context, n int) (batch []queue.Delivery, taken int, err error) {
	for taken < n && t.size < maxScanBytes {
		d, found, err := t.get(ctx)
		if err != nil || !found {
			return batch, taken, err
		}
		taken++
		t.size += len(d.Msg.Body)
		if t.filter.matches(d.Msg) {
			batch = append(batch, d)
			continue
		}
		t.held = append(t.held, d)
		t.result.skipped++
	}
	return batch, taken, nil
}

// send publishes a batch, waits for the confirm and settles what has arrived.
// After an error nothing of the batch is settled.
func (t *transfer) send(batch []queue.Delivery) error {
	confirmed := make(confirm, 1)
	receipt := message.NewReceipt(confirmed, 1, uint64(len(batch)))
	receipt.Hold(1)
	routed := make([]bool, len(batch))
	for i := range batch {
		var err error
		if routed[i], err = t.add(batch[i].Msg, receipt, uint64(i+1)); err != nil {
			t.pub.Discard()
			receipt.Release()
			return err
		}
	}
	t.pub.Flush()
	receipt.Release()
	refused, failed := (<-confirmed).Outcome() // queues always settle a receipt
	for _, seq := range refused {
		if routed[seq-1] {
			routed[seq-1] = false
			t.result.refused++
			t.result.unroutable--
		}
	}
	if failed {
		return badRequest("rejected Unable to publish message. Check queue limits.")
	}
	t.settle(batch, routed)
	return nil
}

func (t *transfer) settle(batch []queue.Delivery, arrived []bool) {
	var gone []queue.Delivery
	for i := range batch {
		if !arrived[i] {
			t.result.unroutable++
			t.held = append(t.held, batch[i])
			continue
		}
		t.result.transferred++
		if t.keep {
			t.held = append(t.held, batch[i])
		} else {
			gone = append(gone, batch[i])
		}
	}
	if len(gone) > 0 { // never of a stream, which keeps its messages
		t.from.Settle(nil, gone, queue.Accepted)
	}
}

// add puts a copy of a message into the batch.
func (t *transfer) add(old *message.Message, receipt *message.Receipt, seq uint64) (routed bool, err error) {
	exchange, key, ok := t.to(old)
	if !ok || exchange == "" && key == t.unique && key != "" {
		return false, nil
	}
	m := &message.Message{Envelope: old.Envelope, Body: old.Body, Time: time.Now().UnixMilli()}
	e := m.Own()
	e.Exchange, e.RoutingKey, e.Mandatory = exchange, key, false
	if err := t.may(m); err != nil {
		return false, err
	}
	route, err := t.pub.Route([]byte(exchange), []byte(key))
	if err != nil {
		return false, err
	}
	return t.pub.Add(route, m, receipt, seq), nil
}
