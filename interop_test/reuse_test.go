package interop_test

import (
	"bytes"
	"fmt"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// TestBodiesStayWhatTheyWere: whoever may get a message later gets the body that was
// published, whatever was published and consumed since. The broker uses the memory
// of consumed bodies for new ones.
func TestBodiesStayWhatTheyWere(t *testing.T) {
	for _, size := range []int{2000, 40_000} {
		for _, tt := range []struct {
			name string
			keep func(c *client, body []byte) (kept []string) // in these queues
		}{
			{"in another queue", func(c *client, body []byte) []string {
				x := c.exchange("fanout", nil)
				seen, kept := c.bound(x, "", nil), c.bound(x, "", nil)
				c.publish(x, "", string(body))
				ds := c.consume(seen, seen, true)
				c.wantBody(receive(c.T, ds).Body, body)
				return []string{kept}
			}},
			{"by a further key", func(c *client, body []byte) []string {
				seen, kept := c.privateQueue(nil), c.privateQueue(nil)
				ds := c.consume(seen, seen, true)
				c.must(c.ch.PublishWithContext(c.Context(), "", seen, false, false,
					amqp.Publishing{Body: body, Headers: amqp.Table{"CC": []any{kept}}}))
				c.wantBody(receive(c.T, ds).Body, body)
				return []string{kept}
			}},
			{"requeued", func(c *client, body []byte) []string {
				kept := c.privateQueue(nil)
				c.publish("", kept, string(body))
				d := c.get(kept, false)
				c.wantBody(d.Body, body)
				c.must(d.Nack(false, true))
				return []string{kept}
			}},
			{"held by a consumer", func(c *client, body []byte) []string {
				kept := c.privateQueue(nil)
				ds := c.consume(kept, kept, false)
				c.publish("", kept, string(body), string(body))
				for range 2 {
					d := receive(c.T, ds)
					c.wantBody(d.Body, body)
					defer func() { c.must(d.Nack(false, true)) }()
				}
				passOn(c, len(body))
				c.must(c.ch.Cancel(kept, false))
				return []string{kept, kept}
			}},
			{"dead-lettered", func(c *client, body []byte) []string {
				kept := c.privateQueue(nil)
				q := c.privateQueue(amqp.Table{"x-max-length": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": kept})
				c.put("", q, string(body), string(body))
				ds := c.consume(q, q, true)
				c.wantBody(receive(c.T, ds).Body, body)
				return []string{kept}
			}},
			{"rejected", func(c *client, body []byte) []string {
				kept := c.privateQueue(nil)
				q := c.privateQueue(amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": kept})
				c.put("", q, string(body))
				d := c.get(q, false)
				c.must(d.Reject(false))
				return []string{kept}
			}},
			{"by an alternate exchange", func(c *client, body []byte) []string {
				alternate := c.exchange("fanout", nil)
				seen, kept := c.bound(alternate, "", nil), c.bound(alternate, "", nil)
				ds := c.consume(seen, seen, true)
				c.publish(c.exchange("direct", amqp.Table{"alternate-exchange": alternate}), "nowhere", string(body))
				c.wantBody(receive(c.T, ds).Body, body)
				return []string{kept}
			}},
			{"in a quorum queue", func(c *client, body []byte) []string {
				kept := c.durableQueue(amqp.Table{"x-queue-type": "quorum"})
				c.put("", kept, string(body))
				return []string{kept}
			}},
		} {
			t.Run(fmt.Sprintf("%s, %d bytes", tt.name, size), func(t *testing.T) {
				c := newClient(t)
				body := bytes.Repeat([]byte("k"), size)
				kept := tt.keep(c, body)
				passOn(c, size)
				for _, q := range kept {
					c.wantBody(c.get(q, true).Body, body)
				}
			})
		}
	}
}

// passOn publishes other bodies of this size and consumes them.
func passOn(c *client, size int) {
	c.Helper()
	q := c.privateQueue(nil)
	ds := c.consume(q, q, true)
	for i := range 50 {
		body := bytes.Repeat([]byte{byte(i)}, size)
		c.publish("", q, string(body))
		c.wantBody(receive(c.T, ds).Body, body)
	}
}

func (c *client) wantBody(got, want []byte) {
	c.Helper()
	if !bytes.Equal(got, want) {
		c.Fatalf("got a body of %d bytes that begins %q, want %d that begin %q", len(got), got[:min(8, len(got))], len(want), want[:8])
	}
}
