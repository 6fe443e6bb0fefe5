package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leveretmq/leveret/frames"
)

// The kinds of scenario.
const (
	KindFlow         = "flow"         // publish and consume at the same time
	KindBacklog      = "backlog"      // fill queues, then drain them
	KindConnections  = "connections"  // open connections and leave them idle
	KindConnChurn    = "connchurn"    // open and close connections
	KindChannelChurn = "channelchurn" // open and close channels
	KindQueueChurn   = "queuechurn"   // declare, bind and delete queues
)

var kinds = []string{KindFlow, KindBacklog, KindConnections, KindConnChurn, KindChannelChurn, KindQueueChurn}

// The limits of what a scenario may ask for; beyond them lies a mistake.
const (
	maxClients      = 100_000   // publishers, consumers, queues, connections
	maxBodySize     = 512 << 20 // in bytes
	maxTemplateSize = 256 << 20 // prepared messages of one publisher, in bytes
	maxConfirm      = 1 << 20
)

// A Scenario says what load to make. NewScenario has the defaults. Settings
// lists what each field means; flags and scenario files set the same fields.
type Scenario struct {
	Name        string
	Description string
	Kind        string

	Duration  time.Duration // measured time; ignored with Messages
	Warmup    time.Duration
	Messages  int64         // over all publishers, 0 = as many as the time allows
	Timeout   time.Duration // longest time for a phase that has an end of its own
	DrainTime time.Duration // how long to wait for what does not come any more

	Publishers  int
	Consumers   int
	Queues      int
	Channels    int // channels of one connection
	Connections int // of kind connections

	Rate            Rates   // of one publisher
	TotalRate       float64 // messages a second over all publishers, 0 = Rate counts
	Size            Sizes
	Confirm         int // outstanding confirms of a publisher, 0 = no confirms
	InFlight        int // deliveries due over all queues, 0 = no limit
	Batch           int // messages of one write at most
	Persistent      bool
	Mandatory       bool
	PublisherDelay  time.Duration
	PublisherJitter time.Duration

	Prefetch        int
	AckEvery        int
	AutoAck         bool
	ConsumerLatency time.Duration
	ConsumerArgs    frames.Table

	Queue        string // name, with %d for the number; "" = names of our own
	From         int    // first number
	Durable      bool
	QueueType    string
	QueueArgs    frames.Table
	Predeclared  bool
	Keep         bool
	Exchange     string
	ExchangeType string // "" = the default exchange
	RoutingKeys  []string
	BindingKeys  []string
	Keys         int // routing keys, 0 = one for each queue
	Bindings     int // 0 = one for each queue

	Heartbeat time.Duration

	MaxP99  time.Duration // expectation, 0 = none
	MinRate float64       // expectation, 0 = none
	Lossy   bool          // missing deliveries are no failure

	to int // last number of Queue as given, -1 = not given
}

// NewScenario returns the defaults: one publisher and one consumer of one
// queue, as fast as they can, for 10 seconds.
func NewScenario() *Scenario {
	return &Scenario{
		Kind:      KindFlow,
		Duration:  10 * time.Second,
		Warmup:    time.Second,
		Timeout:   time.Minute,
		DrainTime: 10 * time.Second,

		Publishers:  1,
		Consumers:   1,
		Queues:      1,
		Channels:    1,
		Connections: 1000,

		Size:  Sizes{{Min: 100, Max: 100, Weight: 1}},
		Batch: 256,

		Prefetch: 1000,
		AckEvery: 100,
		to:       -1,
	}
}

// Validate checks that the settings go together and fills in those that follow
// from others. Its errors say what to change.
func (sc *Scenario) Validate() error {
	if sc.Name == "" {
		sc.Name = sc.Kind
	}
	if !slices.Contains(kinds, sc.Kind) {
		return fmt.Errorf("kind %q does not exist; it is one of %s", sc.Kind, strings.Join(kinds, ", "))
	}
	if sc.to >= 0 {
		if sc.to < sc.From {
			return fmt.Errorf("to %d is before from %d", sc.to, sc.From)
		}
		sc.Queues = sc.to - sc.From + 1
	}
	for _, check := range []func() error{sc.checkCounts, sc.checkFlow, sc.checkQueues, sc.checkTemplate} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (sc *Scenario) checkCounts() error {
	for _, c := range []struct {
		key        string
		value, min int
	}{
		{"publishers", sc.Publishers, 0}, {"consumers", sc.Consumers, 0}, {"queues", sc.Queues, 1}, {"connections", sc.Connections, 1},
		{"channels", sc.Channels, 1}, {"keys", sc.Keys, 0}, {"bindings", sc.Bindings, 0}, {"batch", sc.Batch, 1}, {"ack-every", sc.AckEvery, 1},
	} {
		if c.value < c.min || c.value > maxClients {
			return fmt.Errorf("%s is %d; it must be %d to %d", c.key, c.value, c.min, maxClients)
		}
	}
	switch {
	case sc.Channels > 2047:
		return fmt.Errorf("channels is %d; brokers allow 2047 on a connection", sc.Channels)
	case sc.Prefetch < 0 || sc.Prefetch > 65535:
		return fmt.Errorf("prefetch is %d; it must be 0 (no limit) to 65535", sc.Prefetch)
	case sc.Confirm < 0 || sc.Confirm > maxConfirm:
		return fmt.Errorf("confirm is %d; it must be 0 (no confirms) to %d", sc.Confirm, maxConfirm)
	case sc.Duration <= 0 && sc.Messages == 0:
		return fmt.Errorf("duration is %v; it must be more, or messages must be given", sc.Duration)
	}
	return nil
}

func (sc *Scenario) checkFlow() error {
	switch sc.Kind {
	case KindFlow:
		if sc.Publishers == 0 && sc.Consumers == 0 {
			return fmt.Errorf("publishers and consumers are both 0; there is nothing to do")
		}
	case KindBacklog:
		if sc.Publishers == 0 || sc.Consumers == 0 || sc.Messages == 0 {
			return fmt.Errorf("kind backlog needs publishers, consumers and messages")
		}
	default:
		if sc.Publishers == 0 {
			return fmt.Errorf("kind %s needs publishers: they are what works at the same time", sc.Kind)
		}
	}
	if sc.TotalRate > 0 && len(sc.Rate) > 0 {
		return fmt.Errorf("rate and total-rate exclude each other: the one is of each publisher, the other of all")
	}
	if sc.InFlight > 0 && (sc.Consumers == 0 || sc.Kind != KindFlow) {
		return fmt.Errorf("inflight needs consumers in the same run of kind flow: they say what has arrived")
	}
	return nil
}

func (sc *Scenario) checkQueues() error {
	switch {
	case sc.QueueType != "" && sc.QueueType != "classic" && sc.QueueType != "quorum" && sc.QueueType != "stream":
		return fmt.Errorf("queue-type %q does not exist; it is classic, quorum or stream", sc.QueueType)
	case sc.QueueType == "stream" && sc.AutoAck:
		return fmt.Errorf("auto-ack does not go with queue-type stream: streams need acks and a prefetch")
	case sc.QueueType == "stream" && sc.Prefetch == 0:
		return fmt.Errorf("prefetch 0 does not go with queue-type stream: streams need a limit")
	case sc.Queue == "" && sc.Predeclared:
		return fmt.Errorf("predeclared needs queue: the name of what is there")
	case sc.Queue != "" && strings.Count(sc.Queue, "%") != strings.Count(sc.Queue, "%d"):
		return fmt.Errorf("queue %q: the only pattern is %%d, for the number", sc.Queue)
	case sc.Queue != "" && sc.Queues > 1 && !strings.Contains(sc.Queue, "%d"):
		return fmt.Errorf("queue %q has no %%d for the numbers of %d queues", sc.Queue, sc.Queues)
	case sc.ExchangeType == "" && sc.Exchange == "" && (len(sc.RoutingKeys) > 0 || len(sc.BindingKeys) > 0) && sc.Consumers > 0:
		return fmt.Errorf("routing-key and binding-key need an exchange: set exchange-type")
	}
	if sc.QueueType == "quorum" || sc.QueueType == "stream" {
		sc.Durable = true
	}
	return nil
}

// checkTemplate keeps the prepared messages within memory.
func (sc *Scenario) checkTemplate() error {
	if len(sc.Size) == 0 {
		return fmt.Errorf("size is missing")
	}
	if n := sc.templateLength(); int64(n)*int64(sc.Size.max()+80) > maxTemplateSize {
		return fmt.Errorf("%d prepared messages of up to %d bytes are too much memory; use fewer keys or sizes", n, sc.Size.max())
	}
	return nil
}

// confirms says whether publishers ask for confirms.
func (sc *Scenario) confirms() bool { return sc.Confirm > 0 }

// queueName is the name of the i-th queue, counted from 0.
func (sc *Scenario) queueName(i int) string {
	if sc.Queue == "" {
		return fmt.Sprintf("leveret-bench.%s.%d", sc.Name, i)
	}
	return strings.ReplaceAll(sc.Queue, "%d", fmt.Sprint(sc.From+i))
}

// exchangeName is the exchange that is published to, "" for the default one.
func (sc *Scenario) exchangeName() string {
	if sc.Exchange == "" && sc.ExchangeType != "" {
		return "leveret-bench." + sc.Name
	}
	return sc.Exchange
}

// rates is the pace of one publisher, nil for none.
func (sc *Scenario) rates() Rates {
	if sc.TotalRate > 0 && sc.Publishers > 0 {
		return Rates{{PerSecond: sc.TotalRate / float64(sc.Publishers)}}
	}
	return sc.Rate
}

// keepsAll says whether every message of a queue must reach a consumer. Where
// the broker may drop some, a missing one is no loss.
func (sc *Scenario) keepsAll() bool {
	for _, name := range []string{"x-max-length", "x-max-length-bytes", "x-message-ttl", "x-expires", "x-max-age"} {
		if _, limited := sc.QueueArgs.Lookup(name); limited {
			return false
		}
	}
	return !sc.Lossy
}
