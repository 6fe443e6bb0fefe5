//go:build linux && !foreign

package interop_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// small makes a broker that keeps little in memory.
var small = []string{"--profile", "tiny", "--queue-memory", "1MiB", "--gc-headroom", "4MiB"}

// diskUse is what the files below a folder take on disk, in bytes.
func diskUse(t *testing.T, dir string) int64 {
	t.Helper()
	total := int64(0)
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err != nil {
			return ignoreGone(err)
		}
		total += info.Sys().(*syscall.Stat_t).Blocks * 512
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return total
}

// ignoreGone takes it for normal that files go while a folder is read.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// send publishes numbered messages of a size and returns when all are confirmed.
func (c *client) send(queue string, mode uint8, from, count, size int) {
	c.Helper()
	c.must(c.ch.Confirm(false))
	var window []*amqp.DeferredConfirmation
	for i := from; i < from+count || len(window) > 0; i++ {
		if i < from+count {
			body := fmt.Appendf(make([]byte, 0, size), "%d ", i)[:size]
			d, err := c.ch.PublishWithDeferredConfirm("", queue, false, false, amqp.Publishing{DeliveryMode: mode, Body: body})
			c.must(err)
			window = append(window, d)
		}
		if len(window) > 500 || i >= from+count {
			if !window[0].Wait() {
				c.Fatalf("message %d was refused", i-len(window))
			}
			window = window[1:]
		}
	}
}

// takeNumbered consumes count messages and checks their order.
func (c *client) takeNumbered(queue string, from, count int) {
	c.Helper()
	ch, err := c.conn.Channel() // its own: closing it gives back what is too much
	c.must(err)
	c.must(ch.Qos(1000, 0, false))
	ds, err := ch.Consume(queue, "", false, false, false, false, nil)
	c.must(err)
	for i := from; i < from+count; i++ {
		d := receive(c.T, ds)
		text, _, _ := strings.Cut(string(d.Body[:min(len(d.Body), 20)]), " ")
		if text != strconv.Itoa(i) {
			c.Fatalf("queue %s: got message %s, want %d", queue, text, i)
		}
		if i%250 == 249 || i == from+count-1 {
			c.must(d.Ack(true))
		}
	}
	c.must(ch.Close())
}

// A long queue takes memory for its budget and little more, while it grows,
// while it is read, and after a restart.
func TestLongQueueTakesLittleMemory(t *testing.T) {
	const count, size = 180_000, 100
	const most = 45 << 20 // more than when it was empty; in memory they would take 60 MiB and a half
	dir := t.TempDir()
	p := start(t, dir, small...)
	empty := p.anonymousMemory()
	c := p.client()
	_, err := c.ch.QueueDeclare("q", true, false, false, false, nil)
	c.must(err)
	const step = count / 6
	for from := 0; from < count; from += step {
		c.send("q", amqp.Persistent, from, step, size)
		if used := p.anonymousMemory() - empty; used > most {
			t.Errorf("%d messages take %d MiB, want at most %d", from+step, used>>20, most>>20)
		}
	}
	p.kill()
	p = start(t, dir, small...)
	c = p.client()
	for from := 0; from < count; from += step {
		if used := p.anonymousMemory() - empty; used > most {
			t.Errorf("after %d of %d messages were read: %d MiB, want at most %d", from, count, used>>20, most>>20)
		}
		c.takeNumbered("q", from, step)
	}
	if ready, _ := c.counts("q"); ready != 0 {
		t.Errorf("%d messages are left", ready)
	}
	p.stop()
}

// Transient messages that do not fit in memory wait on disk, in order, in a
// folder that ends with the broker.
func TestTransientMessagesSpill(t *testing.T) {
	const count, size = 40_000, 1000
	dir := t.TempDir()
	folder := filepath.Join(dir, "spill")
	p := start(t, dir, small...)
	wantSpill := func(least int64) {
		t.Helper()
		if used := diskUse(t, folder); used < least || least == 0 && used > 0 {
			t.Errorf("the spilled messages take %d KiB on disk, want %d at least", used>>10, least>>10)
		}
	}
	wantSpill(0)
	empty := p.anonymousMemory()
	c := p.client()
	_, err := c.ch.QueueDeclare("q", true, false, false, false, nil)
	c.must(err)
	c.send("q", amqp.Transient, 0, count, size)
	wantSpill(count * size / 2)
	if used := p.anonymousMemory() - empty; used > 30<<20 {
		t.Errorf("%d transient messages of %d bytes take %d MiB, want at most 30", count, size, used>>20)
	}
	c.takeNumbered("q", 0, count)
	c.send("q", amqp.Transient, 0, count/4, size)
	wantSpill(1)
	p.stop()
	wantSpill(0)

	p = start(t, dir, small...)
	c = p.client()
	if ready, _ := c.counts("q"); ready != 0 {
		t.Errorf("%d transient messages after a restart, want none", ready)
	}
	c.send("q", amqp.Transient, 0, count/4, size)
	wantSpill(1)
	p.kill()
	wantSpill(1)
	p = start(t, dir, small...)
	wantSpill(0)
	p.stop()
}

// Persistent and transient messages of one queue keep their order although
// they wait in two stores.
func TestMixedMessagesKeepTheirOrder(t *testing.T) {
	const count = 20_000
	p := start(t, t.TempDir(), small...)
	c := p.client()
	_, err := c.ch.QueueDeclare("q", true, false, false, false, nil)
	c.must(err)
	for from := 0; from < count; from += 1000 {
		mode := []uint8{amqp.Transient, amqp.Persistent}[from/1000%2]
		c.send("q", mode, from, 1000, 500)
	}
	c.takeNumbered("q", 0, count)
	p.stop()
}

// A queue that is filled and emptied over and over takes disk for what is live,
// not for what went through it.
func TestChurnTakesLittleDisk(t *testing.T) {
	churn(t, small, tinyDisk, func(round int) bool { return round <= 12 })
}

// What a store may take besides three times what is live, in bytes: one step that
// is being collected and one that gathers meanwhile, the padding that starts it,
// and the files being written. See docs/persistence.md.
const (
	tinyDisk   = 2*8<<20 + 4<<20 + 3*4<<20
	serverDisk = 2*256<<20 + 16<<20 + 3*32<<20
)

// churn sends 10 MB a round through a queue that keeps the last 5 MB, for as
// long as more says.
func churn(t *testing.T, args []string, extra int64, more func(round int) bool) {
	const size, perRound, kept = 5000, 2000, 1000
	limit := 3*size*kept + extra
	dir := t.TempDir()
	p := start(t, dir, args...)
	c := p.client()
	_, err := c.ch.QueueDeclare("q", true, false, false, false, nil)
	c.must(err)
	most := int64(0)
	sent, taken := 0, 0
	for round := 1; more(round); round++ {
		for range 4 {
			c.send("q", amqp.Persistent, sent, perRound/4, size)
			sent += perRound / 4
			if rest := sent - kept - taken; rest > 0 {
				c.takeNumbered("q", taken, rest)
				taken += rest
			}
			most = max(most, diskUse(t, filepath.Join(dir, "store")))
		}
	}
	t.Logf("%d MB sent, %d MB kept; %d MiB on disk at most, limit %d", sent*size/1e6, kept*size/1_000_000, most>>20, limit>>20)
	if most > limit {
		t.Errorf("%d MiB on disk, want at most %d", most>>20, limit>>20)
	}
	c.takeNumbered("q", taken, kept)
	p.stop()
}
