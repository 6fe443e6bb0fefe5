//go:build !foreign

package cases_test

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// An alarm stops those who publish and nobody else (lavinmq#2202). These tests
// share one broker, so they do not run in parallel.
func TestAlarmStopsPublishers(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "", nil))
	c.puts("q", "0")
	c.is(c.sync(), "ok") // the confirm may come before the broker looks for alarms: this comes after
	own.server.SetAlarm("memory", true)
	lift := func() { own.server.SetAlarm("memory", false) }
	t.Cleanup(lift)

	d := c.again(login{}) // new connections are welcome
	d.is(d.declare("new", "", nil), "ok new 0 0")
	d.ok(d.consume("q", "t", "", nil)) // and may consume
	d.want(`deliver t #1 /q "0"`)
	d.ack(1, "")
	d.is(d.sync(), "ok")
	d.wantNothing()

	c.publish("", "q", "1", props{}, "")
	it, _ := c.read(patience)
	c.is(c.text(it), "blocked low on memory")
	d.wantNothing() // what caused it waits too
	own.server.SetAlarm("disk", true)
	c.send(methodFrame(1, queueDeclare, u16(0), short(c.name("q")), u8(1), table{}.encode()))
	c.wantNothing()
	lift()
	c.wantNothing() // the disk's is up still
	own.server.SetAlarm("disk", false)
	it, _ = c.read(patience)
	c.is(c.text(it), "unblocked")
	d.want(`deliver t #2 /q "1"`)
	c.want("ack 2")
	c.is(c.reply(), "ok q 0 1")
}

// Clients that do not know connection.blocked are stopped without a word.
func TestAlarmIsSilentForClientsThatDoNotKnowIt(t *testing.T) {
	c := connectAs(t, login{capabilities: table{}})
	c.ok(c.declare("q", "", nil))
	own.server.SetAlarm("disk", true)
	t.Cleanup(func() { own.server.SetAlarm("disk", false) })
	c.publish("", "q", "1", props{}, "")
	c.wantNothing()
	c.send(methodFrame(1, queueDeclare, u16(0), short(c.name("q")), u8(1), table{}.encode()))
	c.wantNothing()
	own.server.SetAlarm("disk", false)
	c.is(c.reply(), "ok q 1 0")
}

// Heartbeats go on while a client is blocked, and it is not cut off.
func TestBlockedClientGetsHeartbeats(t *testing.T) {
	c := connectAs(t, login{heartbeat: 1})
	c.ok(c.declare("x", "x", nil))
	own.server.SetAlarm("memory", true)
	t.Cleanup(func() { own.server.SetAlarm("memory", false) })
	c.publish("", "x", "1", props{}, "")
	beats := 0
	began := time.Now()
	for (beats < 4 || time.Since(began) < 4*time.Second) && time.Since(began) < patience && c.ended == "" {
		if f, ok := c.frame(500 * time.Millisecond); ok && f.kind == frameHeartbeat {
			beats++
		}
		c.send(frame(frameHeartbeat, 0, nil))
	}
	if beats < 4 || c.ended != "" {
		t.Errorf("%d heartbeats in %v, %s, want 4 and an open connection", beats, time.Since(began), c.ended)
	}
}

// A no-ack reader that does not read costs little (bunny#603, streadway/amqp#149,
// MassTransit#3788).
func TestSlowReaderCostsLittle(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "", nil))
	const n, size = 100_000, 1000
	body := strings.Repeat("m", size)
	batch := strings.Repeat(string(c.message("", "q", body, props{}, "")), 100)
	for range n / 100 {
		c.send([]byte(batch))
	}
	c.is(c.sync(), "ok")
	c.is(c.depth("q"), "100000 0")
	before := heap()
	d := c.again(login{})
	d.ready()
	d.tell(basicConsume, u16(0), short(c.name("q")), short("t"), bits("a", "laxn"), table{}.encode())
	c.pause(500 * time.Millisecond)
	grown := int64(heap()) - int64(before)
	if grown > 20<<20 {
		t.Errorf("memory grew by %d MiB, want little", grown>>20)
	}
	left := strings.Fields(c.depth("q"))[0]
	t.Logf("grown by %d KiB, %s of %d still in the queue", grown>>10, left, n)
	if len(left) < 5 {
		t.Errorf("%s messages are left in the queue, want most of %d", left, n)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A big purge holds up nobody (lavinmq 1.2, lavinmq#1083).
func TestPurgeOfABigQueueIsFast(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "d", nil))
	c.ok(c.declare("other", "", nil))
	batch := strings.Repeat(string(c.message("", "q", "0123456789", props{}, "")), 500)
	for range 400 {
		c.send([]byte(batch))
	}
	c.is(c.sync(), "ok")
	began := time.Now()
	c.is(c.purge("q"), "ok 200000")
	if took := time.Since(began); took > 5*time.Second { // a slow machine's 1 s
		t.Errorf("the purge took %v, want under 5 s", took)
	}
	c.is(c.depth("q"), "0 0")
}

// A message over the limit is refused at its content header, before the client
// has sent a byte of the body (rabbitmq-server#11455).
func TestTooLargeIsRefusedAtItsHeader(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	c.send(methodFrame(1, basicPublish, u16(0), short(""), short(c.name("q")), u8(0)),
		frame(frameHeader, 1, header(16<<20+1, u16(0))))
	f, _ := c.frame(patience)
	if f.method() != channelClose {
		t.Fatalf("got %v, want channel.close", f)
	}
	c.is(c.text(item{channel: 1, method: channelClose, args: f.payload[4:]}),
		"channel 406 PRECONDITION_FAILED - message size 16777217 is larger than configured max size 16777216 (60,40)")
	c.send(frame(frameBody, 1, []byte("late")), methodFrame(1, channelCloseOk)) // the body was on its way
	c.open = false
	c.is(c.depth("q"), "0 0")
	c.is(c.put("", "q", "m", props{}, ""), "ack")
}

// An exclusive queue of a client that fell silent is free when its heartbeats
// are missed (metricq-python#25, nameko#359).
func TestExclusiveQueueIsFreeAfterHeartbeatLoss(t *testing.T) {
	t.Parallel()
	a := connectAs(t, login{heartbeat: 1})
	silent := time.Now()
	a.is(a.declare("q", "x", nil), "ok q 0 0")
	b := a.again(login{})
	b.is(b.declare("q", "x", nil), "channel 405 RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'q' in vhost '/'. "+
		"It could be originally declared on another connection or the exclusive property value does not match that of the original declaration. (50,10)")
	b.eventually("ok q 0 0", func() string { return b.declare("q", "x", nil) })
	if took := time.Since(silent); took < 1500*time.Millisecond || took > 15*time.Second {
		t.Errorf("free after %v, want 1.5 s to 15 s", took)
	}
}
