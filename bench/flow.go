package bench

import (
	"context"
	"time"
)

// onTopology declares what the scenario needs, connects the publishers, and measures;
// then it reports, and deletes what was declared.
func (r *run) onTopology(ctx context.Context, measure func(context.Context, *topology) error) error {
	t, err := r.prepare(ctx)
	if err != nil {
		return err
	}
	defer r.tidy(t)
	defer r.report()
	defer r.part()
	if err := r.connectPublishers(ctx); err != nil {
		return err
	}
	return measure(ctx, t)
}

// flow publishes and consumes at the same time.
func (r *run) flow(ctx context.Context, _ *topology) (err error) {
	if r.sc.Messages > 0 {
		err = r.measureMessages(ctx)
	} else {
		err = r.measureTime(ctx)
	}
	r.account()
	return err
}

// measureMessages measures until so many messages are through: those that it
// publishes, or without publishers those that it finds.
func (r *run) measureMessages(ctx context.Context) error {
	if r.sc.Publishers == 0 { // deliveries come with the first consumer
		r.m.begin()
		r.target.Store(r.sc.Messages)
	}
	if err := r.connectConsumers(ctx); err != nil {
		return err
	}
	if r.sc.Publishers == 0 {
		r.watch(ctx, "measure", r.sc.Timeout, r.over(r.reached))
		r.stopPublishers()
	} else {
		r.m.begin()
		r.startPublishers()
		r.watch(ctx, "measure", r.sc.Timeout, r.over(r.finished))
		r.stopPublishers()
		r.settle(ctx, "measure")
	}
	r.m.end(r.result)
	return nil
}

// measureTime warms up and measures for the time asked for.
func (r *run) measureTime(ctx context.Context) error {
	if err := r.connectConsumers(ctx); err != nil {
		return err
	}
	if r.sc.Publishers > 0 {
		r.startPublishers()
	}
	over := r.over(r.finished)
	if r.sc.Warmup > 0 {
		r.watch(ctx, "warm-up", r.sc.Warmup, over)
	}
	r.m.begin()
	r.watch(ctx, "measure", r.sc.Duration, over)
	r.m.end(r.result)
	r.stopPublishers()
	r.settle(ctx, "end")
	return nil
}

// over is closed when done is, or there are consumers and all of them are lost.
func (r *run) over(done <-chan struct{}) <-chan struct{} {
	if len(r.subs) == 0 {
		return done
	}
	over := make(chan struct{})
	go func() { // ends with done or the consumers' connections
		defer close(over)
		for _, s := range r.subs {
			select {
			case <-done:
				return
			case <-s.gone:
			}
		}
	}()
	return over
}

// prepare declares what the scenario needs and notes what the broker is.
func (r *run) prepare(ctx context.Context) (*topology, error) {
	t, err := declare(ctx, r.b, r.sc)
	if err != nil {
		return nil, err
	}
	r.result.Product = t.c.product
	r.fan = newFan(r.sc, t.bound)
	return t, nil
}

// tidy deletes what was declared. What it cannot delete is an error of the result,
// which keeps what was measured before the broker went away.
func (r *run) tidy(t *topology) {
	if err := t.remove(); err != nil {
		r.result.Errors = append(r.result.Errors, "clean up: "+err.Error())
	}
}

// backlog fills queues while nobody consumes, then drains them.
func (r *run) backlog(ctx context.Context, t *topology) error {
	if err := r.fill(ctx, t); err != nil || ctx.Err() != nil {
		return err
	}
	fill := *r.result
	if err := r.drain(ctx); err != nil {
		return err
	}
	r.result.FillRate, r.result.FillCPU = fill.PublishRate, fill.BrokerCPU
	r.result.DrainRate, r.result.DrainCPU = r.result.ConsumeRate, r.result.BrokerCPU
	r.result.PublishRate, r.result.ConfirmRate, r.result.PublishMBs = fill.PublishRate, fill.ConfirmRate, fill.PublishMBs
	r.result.Confirm, r.result.ConfirmCurve = fill.Confirm, fill.ConfirmCurve
	r.result.Seconds += fill.Seconds
	r.account()
	return nil
}

// fill publishes until all messages are in the queues.
func (r *run) fill(ctx context.Context, t *topology) error {
	r.m.begin()
	r.startPublishers()
	r.watch(ctx, "fill", r.sc.Timeout, r.finished)
	r.stopPublishers()
	if r.sc.confirms() {
		r.awaitConfirms(ctx)
	} else if err := r.awaitDepth(ctx, t); err != nil {
		return err
	}
	r.m.sample("fill")
	r.m.end(r.result)
	return nil
}

// awaitConfirms waits until every publish is confirmed or refused, or its
// channel has ended.
func (r *run) awaitConfirms(ctx context.Context) {
	end := time.NewTimer(r.sc.Timeout)
	defer end.Stop()
	for r.awaited() > 0 {
		select {
		case <-r.reached:
		case <-end.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// awaitDepth asks the queues until they hold what was published: without
// confirms nothing else says when the broker has taken it.
func (r *run) awaitDepth(ctx context.Context, t *topology) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(r.sc.DrainTime); time.Now().Before(end); {
		ready := int64(0)
		for i := range r.sc.Queues {
			n, err := t.depth(r.sc.queueName(i))
			if err != nil {
				return err
			}
			ready += n
		}
		if ready >= r.m.published.Load() {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// drain consumes what fill has left.
func (r *run) drain(ctx context.Context) error {
	r.m.begin()
	r.target.Store(r.due())
	if err := r.connectConsumers(ctx); err != nil {
		return err
	}
	r.settle(ctx, "drain")
	r.m.end(r.result)
	return nil
}
