//go:build !foreign

package cases_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// endings are the two ways a broker ends.
var endings = []struct {
	name string
	end  func(p *process)
}{{"orderly", (*process).stop}, {"killed", (*process).kill}}

// What is durable survives, and nothing else (rabbitmq-c#362, lavinmq#1495).
func TestWhatSurvivesARestart(t *testing.T) {
	for _, tt := range endings {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := startProcess(t)
			c := p.connect()
			c.ok(c.declare("durable", "d", table{"x-max-priority", 3}))
			c.ok(c.declare("transient", "", nil))
			c.ok(c.declare("exclusive", "dx", nil))
			c.ok(c.declare("auto", "da", nil))
			c.ok(c.exchange("dx", "topic", "d", table{"alternate-exchange", "ae"}))
			c.ok(c.exchange("ix", "fanout", "di", nil))
			c.ok(c.exchange("tx", "fanout", "", nil))
			c.ok(c.link("ix", "dx", "a.#", table{"n", 1}))
			c.ok(c.bind("durable", "ix", "", nil))
			c.ok(c.bind("durable", "tx", "", nil))
			c.ok(c.bind("transient", "dx", "#", nil))
			for _, m := range []struct {
				body string
				mode any
			}{{"kept", 2}, {"mode 1", 1}, {"no mode", nil}, {"mode 3", 3}} {
				c.is(c.put("", "durable", m.body, props{mode: m.mode}, ""), "ack")
				c.is(c.put("", "transient", m.body, props{mode: m.mode}, ""), "ack")
			}
			c.is(c.put("", "auto", "kept", props{mode: 2}, ""), "ack")
			_ = c.sock.Close()
			tt.end(p)
			p.start()
			c = p.connect()
			c.is(c.depth("durable"), "1 0")
			c.is(c.bodies("durable"), "kept")
			c.is(c.bodies("auto"), "kept")
			for _, q := range []string{"transient", "exclusive"} {
				c.is(c.depth(q), "channel 404 NOT_FOUND - no queue '"+q+"' in vhost '/' (50,10)")
			}
			c.is(c.exchange("tx", "fanout", "p", nil), "channel 404 NOT_FOUND - no exchange 'tx' in vhost '/' (40,10)")
			c.is(c.exchange("dx", "topic", "d", table{"alternate-exchange", "ae"}), "ok")
			c.is(c.exchange("ix", "fanout", "d", nil), "channel 406 PRECONDITION_FAILED - inequivalent arg 'internal' for exchange 'ix' in vhost '/': received 'false' but current is 'true' (40,10)")
			c.is(c.declare("durable", "d", table{"x-max-priority", 3}), "ok durable 0 0")
			c.is(c.put("dx", "a.b", "m", props{}, "m"), "ack")
			c.is(c.put("dx", "b", "m", props{}, "m"), `return 312 NO_ROUTE dx/b "m", ack`)
			c.is(c.unlink("ix", "dx", "a.#", table{"n", 1}), "ok")
			c.is(c.put("dx", "a.b", "m", props{}, "m"), `return 312 NO_ROUTE dx/a.b "m", ack`)
			c.is(c.bodies("durable"), "m")
		})
	}
}

// What came after a crash survives the next end, too (lavinmq#387).
func TestSecondRestartAfterACrash(t *testing.T) {
	for _, tt := range endings {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := startProcess(t)
			c := p.connect()
			c.ok(c.declare("q", "d", nil))
			var want []string
			put := func(body string) {
				c.is(c.put("", "q", body, props{mode: 2}, ""), "ack")
				want = append(want, body)
			}
			for round := range 4 {
				for i := range 10 {
					put(fmt.Sprintf("%d.%d", round, i))
				}
				c.ack(c.tagOf(c.get("q")), "") // the oldest goes
				want = want[1:]
				put(fmt.Sprint("after", round)) // its confirm means that the ack before is safe
				_ = c.sock.Close()
				if round == 0 {
					p.kill()
				} else {
					tt.end(p)
				}
				p.start()
				c = p.connect()
			}
			c.is(c.bodies("q"), strings.Join(want, " "))
		})
	}
}

// A client that does not answer the close does not spoil an orderly end.
func TestStopWithADeafClient(t *testing.T) {
	t.Parallel()
	p := startProcess(t)
	c := p.connect()
	c.ok(c.declare("q", "d", nil))
	c.is(c.put("", "q", "m", props{mode: 2}, ""), "ack")
	p.stop() // checks the exit code
	p.start()
	c = p.connect()
	c.is(c.bodies("q"), "m")
}

// tagOf is the tag in a text like `#3 /q "m" left 0`.
func (ch *channel) tagOf(text string) uint64 {
	var tag uint64
	if _, err := fmt.Sscanf(text, "#%d", &tag); err != nil {
		ch.Fatalf("no tag in %s", text)
	}
	return tag
}

// Deleted is deleted (lavinmq#209).
func TestDeletedStaysDeleted(t *testing.T) {
	t.Parallel()
	p := startProcess(t)
	c := p.connect()
	for i := range 5 {
		q := fmt.Sprint("q", i)
		c.ok(c.declare(q, "d", nil))
		c.ok(c.exchange("x", "fanout", "d", nil))
		c.ok(c.bind(q, "x", "", nil))
		for range 20 {
			c.is(c.put("x", "", strings.Repeat("m", 3000), props{mode: 2}, ""), "ack")
		}
		c.is(c.remove(q, ""), "ok 20")
		if i%2 == 0 {
			c.is(c.removeExchange("x", ""), "ok")
		}
		p.kill()
		p.start()
		c = p.connect()
		c.is(c.depth(q), "channel 404 NOT_FOUND - no queue '"+q+"' in vhost '/' (50,10)")
		if i%2 == 0 {
			c.is(c.exchange("x", "fanout", "p", nil), "channel 404 NOT_FOUND - no exchange 'x' in vhost '/' (40,10)")
		} else {
			c.is(c.put("x", "", "m", props{}, "m"), `return 312 NO_ROUTE x/ "m", ack`)
		}
		c.is(c.declare(q, "d", nil), "ok "+q+" 0 0")
	}
}

// Purged stays purged, expired stays expired, and dead letters are where they
// went.
func TestPurgedAndDeadLettersAfterACrash(t *testing.T) {
	t.Parallel()
	p := startProcess(t)
	c := p.connect()
	c.ok(c.declare("purged", "d", nil))
	c.ok(c.declare("dead", "d", nil))
	c.ok(c.declare("q", "d", c.toDead("x-message-ttl", 3_600_000)))
	for i := range 10 {
		c.is(c.put("", "purged", fmt.Sprint(i), props{mode: 2}, ""), "ack")
		c.is(c.put("", "q", fmt.Sprint(i), props{mode: 2}, ""), "ack")
	}
	c.is(c.purge("purged"), "ok 10")
	for range 5 {
		c.reject(c.tagOf(c.get("q")), "")
	}
	c.eventually("5 0", func() string { return c.depth("dead") })
	c.is(c.put("", "purged", "new", props{mode: 2}, ""), "ack")
	p.kill()
	p.start()
	c = p.connect()
	c.is(c.bodies("purged"), "new")
	// A dead letter may be in both queues after a kill, never in none.
	seen := make(map[string]bool)
	for _, body := range strings.Fields(c.bodies("q") + " " + c.bodies("dead")) {
		seen[body] = true
	}
	if len(seen) != 10 {
		t.Errorf("%d messages are left, want all 10: %v", len(seen), seen)
	}
}

// A store whose newest files lost their tails starts, and only the tail is
// missing (lavinmq#1862, lavinmq#669, rabbitmq-server#13390, #12367).
func TestTornTail(t *testing.T) {
	for _, damage := range []struct {
		name  string
		least int // messages of 20 that must be left
		do    func(b []byte) []byte
	}{
		{"cut 1", 15, func(b []byte) []byte { return b[:len(b)-1] }},
		{"cut 7", 15, func(b []byte) []byte { return b[:len(b)-7] }},
		{"zeroed 16", 15, func(b []byte) []byte { return append(b[:len(b)-16:len(b)-16], make([]byte, 16)...) }},
		{"zeros after", 20, func(b []byte) []byte { return append(b, make([]byte, 4096)...) }},
		{"garbage after", 20, func(b []byte) []byte { return append(b, "garbage that no record looks like"...) }},
	} {
		for _, suffix := range []string{".vlog", ".mem"} {
			t.Run(damage.name+suffix, func(t *testing.T) {
				t.Parallel()
				p := startProcess(t)
				c := p.connect()
				c.ok(c.declare("q", "d", nil))
				padding := ""
				if suffix == ".vlog" {
					padding = " " + strings.Repeat("p", 40_000) // else it goes to the other file
				}
				for i := range 20 {
					c.is(c.put("", "q", fmt.Sprint(i)+padding, props{mode: 2}, ""), "ack")
				}
				p.kill()
				damageNewest(p, suffix, damage.do)
				p.start()
				t.Logf("log: %s", strings.Join(p.boot, "\n"))
				c = p.connect()
				got := strings.Fields(strings.ReplaceAll(c.bodies("q"), padding, ""))
				if len(got) < damage.least {
					t.Errorf("%d messages are left, want at least %d", len(got), damage.least)
				}
				for i, body := range got {
					if body != fmt.Sprint(i) {
						t.Errorf("message %d is %q", i, body)
					}
				}
				c.is(c.put("", "q", "new", props{mode: 2}, ""), "ack")
				p.kill()
				p.start()
				c = p.connect()
				c.is(c.bodies("q"), "new")
			})
		}
	}
}

// damageNewest changes what was written last in the newest file with a suffix.
func damageNewest(p *process, suffix string, change func([]byte) []byte) {
	p.Helper()
	files := p.files(suffix)
	if len(files) == 0 {
		p.Fatalf("no file %s", suffix)
	}
	file := files[len(files)-1]
	b, err := os.ReadFile(file)
	if err != nil {
		p.Fatal(err)
	}
	end := len(strings.TrimRight(string(b), "\x00")) // files are allocated ahead
	if end < 32 {
		p.Fatalf("%s has %d bytes", file, end)
	}
	rest := make([]byte, len(b)-end)
	if err := os.WriteFile(file, append(change(b[:end:end]), rest...), 0o600); err != nil {
		p.Fatal(err)
	}
}
