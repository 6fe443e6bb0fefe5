package bench

import "context"

// RunAll runs scenarios against brokers in rounds: all scenarios on the first
// broker, then on the next, and again from the first. A run that cannot take
// place becomes a result that says so, and the others go on. before, if not nil,
// is called ahead of each run and after, if not nil, behind it; an error of
// after ends it all. So does cancelling ctx, with the results until then.
func RunAll(ctx context.Context, brokers []*Broker, scenarios []*Scenario, rounds int, o Options,
	before func(b *Broker, sc *Scenario, round int), after func(*Result) error) ([]*Result, error) {
	var results []*Result
	for round := 1; round <= rounds; round++ {
		for _, b := range brokers {
			for _, sc := range scenarios {
				if ctx.Err() != nil {
					return results, nil
				}
				if before != nil {
					before(b, sc, round)
				}
				r := attempt(ctx, b, sc, o)
				if rounds > 1 {
					r.Round = round
				}
				results = append(results, r)
				if after == nil {
					continue
				}
				if err := after(r); err != nil {
					return results, err
				}
			}
		}
	}
	return results, nil
}

// attempt is Run, but that a run that cannot take place has a result as well.
func attempt(ctx context.Context, b *Broker, sc *Scenario, o Options) *Result {
	r, err := Run(ctx, b, sc, o)
	if err != nil {
		return &Result{Scenario: sc.Name, Broker: b.String(), Settings: sc.changed(), NotRun: true,
			Interrupted: ctx.Err() != nil, Failures: []string{err.Error()}}
	}
	return r
}
