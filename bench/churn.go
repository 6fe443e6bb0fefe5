package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leveretmq/leveret/frames"
)

// churnBuffer is the read buffer of a connection that carries no messages, in
// bytes.
const churnBuffer = 4096

// A worker does one operation again and again: it opens something and closes it.
type worker interface {
	open(ctx context.Context) error
	close() error
	// end gives back what the worker itself has; err is what it failed with.
	end(err error) error
}

// churn opens and closes things with as many workers as there are publishers.
func (r *run) churn(ctx context.Context) error {
	if err := r.introduce(ctx); err != nil {
		return err
	}
	workers := make([]worker, r.sc.Publishers)
	for i := range workers {
		var err error
		if workers[i], err = r.newWorker(ctx, i); err != nil {
			for _, w := range workers[:i] {
				err = errors.Join(err, w.end(nil))
			}
			return err
		}
	}
	var left atomic.Int64
	left.Store(r.sc.Messages)
	over := make(chan struct{})
	r.m.begin()
	for _, w := range workers {
		r.writers.Go(func() { r.work(ctx, w, &left) })
	}
	go func() { // ends with the workers
		r.writers.Wait()
		close(over)
	}()
	if r.sc.Warmup > 0 && r.sc.Messages == 0 {
		r.watch(ctx, "warm-up", r.sc.Warmup, over)
		r.m.begin()
	}
	limit := r.sc.Duration
	if r.sc.Messages > 0 {
		limit = r.sc.Timeout
	}
	r.watch(ctx, "measure", limit, over)
	r.m.end(r.result)
	r.stopped.Store(true)
	<-over
	r.report()
	return nil
}

// introduce asks the broker what it is.
func (r *run) introduce(ctx context.Context) error {
	c, err := dial(ctx, r.b, 0, churnBuffer)
	if err != nil {
		return err
	}
	r.result.Product = c.product
	return c.goodbye()
}

// newWorker makes the i-th worker.
func (r *run) newWorker(ctx context.Context, i int) (worker, error) {
	if r.sc.Kind == KindConnChurn {
		return &connWorker{r: r}, nil
	}
	c, err := dial(ctx, r.b, r.sc.Heartbeat, churnBuffer)
	if err != nil {
		return nil, err
	}
	if r.sc.Kind == KindChannelChurn {
		return &channelWorker{c: c}, nil
	}
	w := &queueWorker{r: r, c: c, prefix: fmt.Sprintf("leveret-bench.%s.%d.", r.sc.Name, i)}
	if err := c.openChannel(1); err != nil {
		c.cut()
		return nil, err
	}
	return w, nil
}

// work runs one worker until the run is stopped, or so many operations are done.
func (r *run) work(ctx context.Context, w worker, left *atomic.Int64) {
	var err error
	var opened, closed tally
	for !r.stopped.Load() && ctx.Err() == nil {
		if r.sc.Messages > 0 && left.Add(-1) < 0 {
			break
		}
		began := r.m.clock.now()
		if err = w.open(ctx); err != nil {
			break
		}
		between := r.m.clock.now()
		if err = w.close(); err != nil {
			break
		}
		opened.add(between - began)
		closed.add(r.m.clock.now() - between)
		r.m.latencies[latencyOpen].record(&opened)
		r.m.latencies[latencyClose].record(&closed)
		r.m.ops.Add(1)
	}
	if ctx.Err() != nil {
		err = nil // what the end has cut off is no error
	}
	if err = errors.Join(err, w.end(err)); err != nil {
		r.failed(err)
	}
}

// A connWorker opens connections, each with a channel.
type connWorker struct {
	r *run
	c *conn
}

func (w *connWorker) open(ctx context.Context) (err error) {
	if w.c, err = dial(ctx, w.r.b, w.r.sc.Heartbeat, churnBuffer); err != nil {
		return err
	}
	return w.c.openChannel(1)
}

func (w *connWorker) close() error { return w.c.goodbye() }

func (w *connWorker) end(err error) error {
	if err != nil && w.c != nil {
		w.c.cut()
	}
	return nil
}

// A channelWorker opens channels of one connection.
type channelWorker struct{ c *conn }

func (w *channelWorker) open(context.Context) error { return w.c.openChannel(1) }

func (w *channelWorker) close() error {
	_, err := call[*frames.ChannelCloseOk](w.c, 1, &frames.ChannelClose{ReplyCode: 200, ReplyText: "done"})
	return err
}

func (w *channelWorker) end(err error) error { return endOf(w.c, err) }

// A queueWorker declares queues and binds them to amq.direct.
type queueWorker struct {
	r      *run
	c      *conn
	prefix string
	n      int
}

func (w *queueWorker) open(context.Context) error {
	w.n++
	sc := w.r.sc
	m := &frames.QueueDeclare{Queue: w.name(), Durable: sc.Durable, Arguments: sc.queueArguments()}
	if _, err := call[*frames.QueueDeclareOk](w.c, 1, m); err != nil {
		return err
	}
	_, err := call[*frames.QueueBindOk](w.c, 1, &frames.QueueBind{Queue: w.name(), Exchange: "amq.direct", RoutingKey: w.name()})
	return err
}

func (w *queueWorker) name() string { return fmt.Sprint(w.prefix, w.n) }

func (w *queueWorker) close() error {
	_, err := call[*frames.QueueDeleteOk](w.c, 1, &frames.QueueDelete{Queue: w.name()})
	return err
}

func (w *queueWorker) end(err error) error { return endOf(w.c, err) }

// endOf closes a worker's connection: in order, unless it is in an unknown state.
func endOf(c *conn, err error) error {
	if err != nil {
		c.cut()
		return nil
	}
	return c.goodbye()
}

// settleTime is how long a broker has to come to rest after connections were
// opened, before what they cost is read.
const settleTime = time.Second

// connections opens connections, each with a channel, an exclusive queue and a
// consumer, and leaves them idle for the duration.
func (r *run) connections(ctx context.Context) error {
	if err := r.introduce(ctx); err != nil {
		return err
	}
	before := r.m.read()
	r.m.begin()
	idle := r.openIdle(ctx)
	r.m.end(r.result)
	if n := len(idle); n > 0 && ctx.Err() == nil {
		r.watch(ctx, "settle", settleTime, nil)
		from := r.m.last
		if from.broker.known {
			r.result.KiBPerConn = ptr(round(float64(from.broker.rss-before.broker.rss)/1024/float64(n), 1))
		}
		r.watch(ctx, "idle", r.sc.Duration, nil)
		if span := time.Duration(r.m.last.at - from.at).Seconds(); from.broker.known && span > 0 {
			r.result.IdleCores = ptr(round((r.m.last.broker.cpu-from.broker.cpu).Seconds()/span, 3))
			r.result.RSSMiB = ptr(mib(r.m.last.broker.rss))
		}
	}
	for _, c := range idle {
		if err := c.goodbye(); err != nil && ctx.Err() == nil {
			r.failed(fmt.Errorf("close: %w", err))
		}
	}
	r.report()
	return nil
}

// openIdle opens the connections, a few at a time, and returns those that the
// broker has taken.
func (r *run) openIdle(ctx context.Context) []*conn {
	var mu sync.Mutex // guards idle
	var idle []*conn
	var next atomic.Int64
	for range r.sc.Publishers {
		r.writers.Go(func() {
			var opened tally
			for ctx.Err() == nil && next.Add(1) <= int64(r.sc.Connections) {
				began := r.m.clock.now()
				c, err := r.openIdleOne(ctx)
				if err != nil {
					r.failed(err)
					return
				}
				opened.add(r.m.clock.now() - began)
				r.m.latencies[latencyOpen].record(&opened)
				r.m.ops.Add(1)
				mu.Lock()
				idle = append(idle, c)
				mu.Unlock()
			}
		})
	}
	over := make(chan struct{})
	go func() { // ends with the workers
		r.writers.Wait()
		close(over)
	}()
	r.watch(ctx, "open", r.sc.Timeout, over)
	r.stopped.Store(true)
	next.Store(int64(r.sc.Connections))
	<-over
	return idle
}

func (r *run) openIdleOne(ctx context.Context) (*conn, error) {
	c, err := dial(ctx, r.b, r.sc.Heartbeat, churnBuffer)
	if err != nil {
		return nil, err
	}
	ok, err := func() (*frames.QueueDeclareOk, error) {
		if err := c.openChannel(1); err != nil {
			return nil, err
		}
		return call[*frames.QueueDeclareOk](c, 1, &frames.QueueDeclare{Exclusive: true, AutoDelete: true})
	}()
	if err == nil {
		_, err = call[*frames.BasicConsumeOk](c, 1, &frames.BasicConsume{Queue: ok.Queue, ConsumerTag: consumerTag, NoAck: true})
	}
	if err != nil {
		c.cut()
		return nil, err
	}
	return c, nil
}
