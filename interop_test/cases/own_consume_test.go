//go:build !foreign

package cases_test

import "testing"

// Some clients answer the broker's basic.cancel, for which RabbitMQ closes the
// connection with 503; it harms nobody (pika#183).
func TestCancelOkFromAClientIsIgnored(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "", nil))
	c.ok(c.declare("other", "", nil))
	c.ok(c.consume("q", "t", "", nil))
	c.ok(c.consume("other", "u", "", nil))
	c.ok(c.remove("q", ""))
	c.want("cancel t")
	c.tell(basicCancelOk, short("t"))
	c.is(c.sync(), "ok")
	c.publish("", "other", "m", props{}, "")
	c.want(`deliver u #1 /other "m"`)
}
