package queuetest

import (
	"sync"

	"github.com/leveretmq/leveret/queue"
)

// A Consumer records what it gets. Its Room is how many deliveries it takes
// before it says that it is full.
type Consumer struct {
	Sub *queue.Subscription

	mu        sync.Mutex // guards the fields below
	room      int
	held      []queue.Delivery
	bodies    []string
	calls     int
	cancelled bool
	active    []bool
}

// Unlimited is room without end.
const Unlimited = 1 << 30

// NewConsumer returns a consumer with unlimited room whose subscription is to
// be filled in.
func NewConsumer() *Consumer {
	c := &Consumer{room: Unlimited}
	c.Sub = &queue.Subscription{Consumer: c, Tag: "c", Window: &queue.Window{}}
	return c
}

// SetRoom changes how many more deliveries the consumer takes.
func (c *Consumer) SetRoom(n int) {
	c.mu.Lock()
	c.room = n
	c.mu.Unlock()
}

// Deliver implements queue.Consumer.
func (c *Consumer) Deliver(batch []queue.Delivery) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	n := min(len(batch), c.room)
	c.room -= n
	for _, d := range batch[:n] {
		c.bodies = append(c.bodies, string(d.Msg.Body))
		if !c.Sub.NoAck {
			c.held = append(c.held, d)
		}
	}
	return n
}

// Cancelled implements queue.Consumer.
func (c *Consumer) Cancelled(*queue.Subscription) {
	c.mu.Lock()
	c.cancelled = true
	c.mu.Unlock()
}

// Activated implements queue.Consumer.
func (c *Consumer) Activated(_ *queue.Subscription, active bool) {
	c.mu.Lock()
	c.active = append(c.active, active)
	c.mu.Unlock()
}

// WasCancelled says whether the queue ended the subscription.
func (c *Consumer) WasCancelled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cancelled
}

// Active is whether the queue last said that the consumer is the active one.
func (c *Consumer) Active() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.active) > 0 && c.active[len(c.active)-1]
}

// Calls is how often Deliver was called.
func (c *Consumer) Calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

// Bodies returns what was delivered since the last call.
func (c *Consumer) Bodies() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.bodies
	c.bodies = nil
	return b
}

// Held takes over the deliveries that have to be settled.
func (c *Consumer) Held() []queue.Delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.held
	c.held = nil
	return h
}
