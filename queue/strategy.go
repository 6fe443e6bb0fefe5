package queue

// Strategies for dead letters, as metrics name them (RabbitMQ 4.0).
const (
	StrategyDisabled    = "disabled" // there is no target
	StrategyAtMostOnce  = "at_most_once"
	StrategyAtLeastOnce = "at_least_once"
)

// DeadLetterStrategy is the strategy that a queue with these arguments and this policy
// follows. At least once is for quorum queues that refuse publishes when full;
// others follow at most once (RabbitMQ 4.0).
func DeadLetterStrategy(a Arguments, p Policy) string {
	s := Effective(a, p)
	if s.DeadLetter == nil {
		return StrategyDisabled
	}
	wanted, ok := a.Table.Lookup("x-dead-letter-strategy")
	if !ok {
		wanted = p.Definition["dead-letter-strategy"]
	}
	if a.Type == Quorum && wanted == "at-least-once" && s.Overflow == RejectPublish {
		return StrategyAtLeastOnce
	}
	return StrategyAtMostOnce
}
