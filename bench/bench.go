// Package bench puts load on an AMQP 0-9-1 broker and measures rates,
// latencies and what the broker spends. It is a client and nothing else: it
// speaks raw frames, so that its own share of the machine stays small, and it
// knows no broker's inside.
//
// A Scenario says what to do, a Broker where; Run does it and returns a Result.
package bench

import (
	"context"
	"fmt"
	"time"
)

// Options are how a run is watched. The zero value is a run nobody watches.
type Options struct {
	// Progress, if set, is called after each interval with what happened in it.
	Progress func(Sample)
	// Interval is the time between samples; zero means a second.
	Interval time.Duration
}

// Run runs a scenario against a broker. It returns an error if the run could
// not take place: no broker there, a login or a declaration refused. What goes
// wrong later is in the result. Cancelling ctx ends the run early; what was
// measured until then is returned.
func Run(ctx context.Context, b *Broker, sc *Scenario, o Options) (*Result, error) {
	if err := sc.Validate(); err != nil {
		return nil, err
	}
	r := newRun(b, sc, o)
	var err error
	switch sc.Kind {
	case KindFlow:
		err = r.onTopology(ctx, r.flow)
	case KindBacklog:
		err = r.onTopology(ctx, r.backlog)
	case KindConnections:
		err = r.connections(ctx)
	case KindConnChurn, KindChannelChurn, KindQueueChurn:
		err = r.churn(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%s on %s: %w", sc.Name, b, err)
	}
	r.result.Interrupted = ctx.Err() != nil
	r.result.judge(sc)
	return r.result, nil
}
