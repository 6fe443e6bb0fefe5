//go:build linux && !foreign

package interop_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// anonymousMemory is what the process has of its own, in bytes: its heap and
// stacks, not the pages of mapped files.
func (p *process) anonymousMemory() int64 {
	p.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(text)[0], 10, 64)
			if err != nil {
				p.Fatal(err)
			}
			return kib << 10
		}
	}
	p.Fatal("no RssAnon in the process's status")
	return 0
}

// A publisher that nobody consumes from and that never waits for a confirm is
// slowed down, not remembered: memory stays near its limit, everything is
// there in the end, and others can work meanwhile.
func TestFloodOfPersistentMessages(t *testing.T) {
	const size, count = 10_000, 20_000 // 200 MB
	const limit = 96 << 20
	p := start(t, t.TempDir(), "--memory-limit", "96MiB")
	c := p.client()
	_, err := c.ch.QueueDeclare("q", true, false, false, false, nil)
	c.must(err)
	other := p.client()
	private := other.privateQueue(nil)
	var most int64
	for i := range count {
		body := fmt.Appendf(make([]byte, 0, size), "%d", i)[:size]
		c.must(c.ch.PublishWithContext(t.Context(), "", "q", false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body}))
		if i%1000 == 0 {
			most = max(most, p.anonymousMemory())
			other.publish("", private, "undisturbed")
			other.wantReady(private, "undisturbed")
		}
	}
	c.must(c.ch.Close()) // all has been handled
	most = max(most, p.anonymousMemory())
	c.reopen()
	if ready, _ := c.counts("q"); ready != count {
		t.Errorf("%d messages in the queue, want %d", ready, count)
	}
	c.must(c.ch.Qos(500, 0, false))
	ds := c.consume("q", "", false)
	for i := range count {
		d := receive(t, ds)
		if got := strings.TrimRight(string(d.Body), "\x00"); got != strconv.Itoa(i) || len(d.Body) != size {
			t.Fatalf("message %d: got %q of %d bytes", i, got, len(d.Body))
		}
		if i%250 == 249 {
			c.must(d.Ack(true))
		}
		if i%1000 == 0 {
			most = max(most, p.anonymousMemory())
		}
	}
	if most > 2*limit {
		t.Errorf("it took %d MiB of memory, want about the limit of %d MiB", most>>20, limit>>20)
	}
	t.Logf("%d MiB at most", most>>20)
	p.stop()
}
