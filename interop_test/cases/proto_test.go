package cases_test

import (
	"testing"
)

func TestSmoke(t *testing.T) {
	c := connect(t)
	c.is(c.declare("q", "", nil), "ok q 0 0")
	c.is(c.put("", "q", "hello", props{headers: table{"a", 1}, mode: 2}, "m"), "ack")
	c.is(c.put("", "nope", "hello", props{}, "m"), `return 312 NO_ROUTE /nope "hello", ack`)
	c.is(c.depth("q"), "1 0")
	c.is(c.get("q"), `#1 /q "hello" left 0`)
	c.is(c.props(), "headers={a:I1} mode=2")
	c.is(c.declare("nope", "p", nil), "channel 404 NOT_FOUND - no queue 'nope' in vhost '/' (50,10)")
	c.is(c.bodies("q"), "hello")
	c.is(c.consume("q", "t", "", nil), "ok t")
	c.put("", "q", "x", props{}, "")
	c.want(`deliver t #2 /q "x"`)
	c.wantNothing()
}
