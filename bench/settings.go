package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leveretmq/leveret/frames"
)

// A Setting is one field of a Scenario by the name it has as a flag and in a
// scenario file.
type Setting struct {
	Name   string
	Usage  string
	Switch bool // true or false; as a flag it needs no value
	List   bool // may be given as a list

	set  func(sc *Scenario, text string) error
	text func(sc *Scenario) string
}

// Set reads the setting's value into sc.
func (s *Setting) Set(sc *Scenario, text string) error {
	if err := s.set(sc, text); err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	return nil
}

// Text is the value that sc has, as Set reads it.
func (s *Setting) Text(sc *Scenario) string { return s.text(sc) }

// Settings lists all settings in the order of the help.
func Settings() []Setting {
	return slices.Concat(generalSettings(), publisherSettings(), consumerSettings(), queueSettings(), expectations())
}

func generalSettings() []Setting {
	return []Setting{
		textSetting("kind", "what to do: "+strings.Join(kinds, ", "), func(sc *Scenario) *string { return &sc.Kind }),
		durationSetting("duration", "how long to measure", func(sc *Scenario) *time.Duration { return &sc.Duration }),
		durationSetting("warmup", "load before measuring", func(sc *Scenario) *time.Duration { return &sc.Warmup }),
		{Name: "messages", Usage: "publish so many over all publishers, then stop; all of them are measured, without a warm-up",
			set:  func(sc *Scenario, text string) (err error) { sc.Messages, err = natural(text); return err },
			text: func(sc *Scenario) string { return strconv.FormatInt(sc.Messages, 10) }},
		durationSetting("timeout", "longest time for what ends by itself: messages, filling, draining", func(sc *Scenario) *time.Duration { return &sc.Timeout }),
		durationSetting("drain-time", "at the end, how long to wait for confirms and deliveries while none comes", func(sc *Scenario) *time.Duration { return &sc.DrainTime }),
		countSetting("connections", "connections of kind connections", func(sc *Scenario) *int { return &sc.Connections }),
		countSetting("channels", "channels of a connection: so many publishers, or consumers, share one", func(sc *Scenario) *int { return &sc.Channels }),
		durationSetting("heartbeat", "heartbeat of all connections, 0 for none", func(sc *Scenario) *time.Duration { return &sc.Heartbeat }),
	}
}

func publisherSettings() []Setting {
	return []Setting{
		countSetting("publishers", "publishers; of kinds that do not publish, how many work at the same time", func(sc *Scenario) *int { return &sc.Publishers }),
		{Name: "rate", Usage: "messages a second of each publisher, evenly paced: 1000, 2.5k, or in turn 1000:30s,5000:10s; 0 is no limit", List: true,
			set:  func(sc *Scenario, text string) (err error) { sc.Rate, err = ParseRates(text); return err },
			text: func(sc *Scenario) string { return sc.Rate.String() }},
		rateSetting("total-rate", "messages a second over all publishers, 0 is no limit", func(sc *Scenario) *float64 { return &sc.TotalRate }),
		{Name: "size", Usage: "bytes of a body: 100, 64K, 100-2000 (random), or 100,1000:3 (three of four have 1000)", List: true,
			set:  func(sc *Scenario, text string) (err error) { sc.Size, err = ParseSizes(text); return err },
			text: func(sc *Scenario) string { return sc.Size.String() }},
		countSetting("confirm", "confirms that a publisher may be waiting for, 0 for no confirms", func(sc *Scenario) *int { return &sc.Confirm }),
		countSetting("inflight", "deliveries that may be under way before publishers wait, 0 for no limit", func(sc *Scenario) *int { return &sc.InFlight }),
		countSetting("batch", "messages of one write at most", func(sc *Scenario) *int { return &sc.Batch }),
		switchSetting("persistent", "publish with delivery mode 2", func(sc *Scenario) *bool { return &sc.Persistent }),
		switchSetting("mandatory", "ask for messages back that no queue takes", func(sc *Scenario) *bool { return &sc.Mandatory }),
		durationSetting("publisher-delay", "time between the starts of publishers", func(sc *Scenario) *time.Duration { return &sc.PublisherDelay }),
		durationSetting("publisher-jitter", "further delay of each publisher, random up to this", func(sc *Scenario) *time.Duration { return &sc.PublisherJitter }),
	}
}

func consumerSettings() []Setting {
	return []Setting{
		countSetting("consumers", "consumers, dealt to the queues in turn", func(sc *Scenario) *int { return &sc.Consumers }),
		countSetting("prefetch", "unacknowledged deliveries of a consumer, 0 for no limit", func(sc *Scenario) *int { return &sc.Prefetch }),
		countSetting("ack-every", "deliveries that one ack is for, at most half the prefetch", func(sc *Scenario) *int { return &sc.AckEvery }),
		switchSetting("auto-ack", "consume without acks", func(sc *Scenario) *bool { return &sc.AutoAck }),
		durationSetting("consumer-latency", "time a consumer thinks about each delivery", func(sc *Scenario) *time.Duration { return &sc.ConsumerLatency }),
		argumentSetting("consumer-args", "arguments of consumers: x-priority=1,x-stream-offset=first", func(sc *Scenario) *frames.Table { return &sc.ConsumerArgs }),
	}
}

func queueSettings() []Setting {
	return []Setting{
		countSetting("queues", "queues", func(sc *Scenario) *int { return &sc.Queues }),
		textSetting("queue", "name of the queue, or of several with %d for the number; own names that are always made anew if not given", func(sc *Scenario) *string { return &sc.Queue }),
		textSetting("queue-pattern", "as queue", func(sc *Scenario) *string { return &sc.Queue }),
		countSetting("from", "first number of the queue pattern", func(sc *Scenario) *int { return &sc.From }),
		{Name: "to", Usage: "last number of the queue pattern, instead of queues",
			set: func(sc *Scenario, text string) error {
				n, err := natural(text)
				sc.to = int(min(n, maxClients))
				return err
			},
			text: func(sc *Scenario) string {
				if sc.to < 0 {
					return ""
				}
				return strconv.Itoa(sc.to)
			}},
		switchSetting("durable", "durable queues and exchange", func(sc *Scenario) *bool { return &sc.Durable }),
		textSetting("queue-type", "classic, quorum or stream", func(sc *Scenario) *string { return &sc.QueueType }),
		argumentSetting("queue-args", "arguments of queues: x-max-length=1000,x-overflow=reject-publish", func(sc *Scenario) *frames.Table { return &sc.QueueArgs }),
		switchSetting("predeclared", "use queues, exchange and bindings that are there; declare nothing", func(sc *Scenario) *bool { return &sc.Predeclared }),
		switchSetting("keep", "leave queues and exchange behind", func(sc *Scenario) *bool { return &sc.Keep }),
		textSetting("exchange", "name of the exchange to publish to", func(sc *Scenario) *string { return &sc.Exchange }),
		textSetting("exchange-type", "declare an exchange of this type and bind the queues: direct, fanout, topic, headers or any other", func(sc *Scenario) *string { return &sc.ExchangeType }),
		listSetting("routing-key", "routing keys with %d for a number below keys; several in turn", func(sc *Scenario) *[]string { return &sc.RoutingKeys }),
		listSetting("binding-key", "binding keys with %d for a number below bindings; several in turn", func(sc *Scenario) *[]string { return &sc.BindingKeys }),
		countSetting("keys", "numbers of routing keys, 0 for as many as queues", func(sc *Scenario) *int { return &sc.Keys }),
		countSetting("bindings", "bindings, dealt to the queues in turn, 0 for one each", func(sc *Scenario) *int { return &sc.Bindings }),
	}
}

func expectations() []Setting {
	return []Setting{
		durationSetting("max-p99", "fail if the 99th percentile of the latency is higher: of delivery, else of confirms, else of opening", func(sc *Scenario) *time.Duration { return &sc.MaxP99 }),
		rateSetting("min-rate", "fail if fewer messages a second are consumed (published without consumers; operations of churn)", func(sc *Scenario) *float64 { return &sc.MinRate }),
		switchSetting("lossy", "do not fail if deliveries are missing", func(sc *Scenario) *bool { return &sc.Lossy }),
	}
}

func natural(text string) (int64, error) {
	n, err := parseCount(text)
	if err == nil && n < 0 {
		err = fmt.Errorf("%s is negative", text)
	}
	return n, err
}

func textSetting(name, usage string, field func(*Scenario) *string) Setting {
	return Setting{Name: name, Usage: usage,
		set: func(sc *Scenario, text string) error {
			if len(text) > 200 {
				return fmt.Errorf("%d characters are too many, at most 200 are possible", len(text))
			}
			*field(sc) = text
			return nil
		},
		text: func(sc *Scenario) string { return *field(sc) }}
}

func listSetting(name, usage string, field func(*Scenario) *[]string) Setting {
	return Setting{Name: name, Usage: usage, List: true,
		set: func(sc *Scenario, text string) error {
			keys := strings.Split(text, ",")
			for _, k := range keys {
				if len(k) > 200 {
					return fmt.Errorf("%d characters are too many, at most 200 are possible", len(k))
				}
			}
			*field(sc) = keys
			return nil
		},
		text: func(sc *Scenario) string { return strings.Join(*field(sc), ",") }}
}

func countSetting(name, usage string, field func(*Scenario) *int) Setting {
	return Setting{Name: name, Usage: usage,
		set: func(sc *Scenario, text string) error {
			n, err := natural(text)
			*field(sc) = int(min(n, 1<<31-1))
			return err
		},
		text: func(sc *Scenario) string { return strconv.Itoa(*field(sc)) }}
}

func rateSetting(name, usage string, field func(*Scenario) *float64) Setting {
	return Setting{Name: name, Usage: usage,
		set:  func(sc *Scenario, text string) (err error) { *field(sc), err = parseRate(text); return err },
		text: func(sc *Scenario) string { return strconv.FormatFloat(*field(sc), 'f', -1, 64) }}
}

func durationSetting(name, usage string, field func(*Scenario) *time.Duration) Setting {
	return Setting{Name: name, Usage: usage,
		set:  func(sc *Scenario, text string) (err error) { *field(sc), err = parseDuration(text); return err },
		text: func(sc *Scenario) string { return field(sc).String() }}
}

func argumentSetting(name, usage string, field func(*Scenario) *frames.Table) Setting {
	return Setting{Name: name, Usage: usage, List: true,
		set:  func(sc *Scenario, text string) (err error) { *field(sc), err = ParseArguments(text); return err },
		text: func(sc *Scenario) string { return formatArguments(*field(sc)) }}
}

func switchSetting(name, usage string, field func(*Scenario) *bool) Setting {
	return Setting{Name: name, Usage: usage, Switch: true,
		set: func(sc *Scenario, text string) error {
			b, err := strconv.ParseBool(text)
			if err != nil {
				return fmt.Errorf("%q is not true or false", text)
			}
			*field(sc) = b
			return nil
		},
		text: func(sc *Scenario) string { return strconv.FormatBool(*field(sc)) }}
}
