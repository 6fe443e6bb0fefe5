package amqp

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/frames"
)

// socketPair is both ends of a TCP connection.
func socketPair(t testing.TB) (ours, theirs net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if theirs, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if ours, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return ours, theirs
}

// newSleeper is a connection whose writer sleeps: it can only be pushed.
func newSleeper(t testing.TB, log *zap.Logger) (c *conn, client net.Conn) {
	t.Helper()
	s := newTestServer(t, log)
	sock, client := socketPair(t)
	c = newConn(s, sock)
	c.sleep()
	return c, client
}

// sleep pretends that there is a writer, which sleeps.
func (c *conn) sleep() { c.out.started, c.out.wake = true, make(chan struct{}, 1) }

// woken says whether the writer was woken.
func (c *conn) woken() bool { return len(c.out.wake) > 0 }

func wantBytes(t *testing.T, from io.Reader, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(from, got); err != nil {
		t.Fatalf("read %d of %d bytes: %v", n, len(want), err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("byte %d of %d is %d, want %d", i, len(want), got[i], want[i])
		}
	}
}

func channelOk(n int) []byte {
	var b []byte
	for range n {
		b = frames.AppendMethod(b, 1, &frames.ChannelOpenOk{})
	}
	return b
}

func TestAnswersOfABatchAreWrittenByTheReader(t *testing.T) {
	c, client := newSleeper(t, zap.NewNop())
	c.out.batching = true
	for range 3 {
		c.out.method(1, &frames.ChannelOpenOk{})
	}
	c.batchDone()
	wantBytes(t, client, channelOk(3))
	if c.woken() || !c.out.asleep {
		t.Error("the writer was woken")
	}
	if got, want := c.sent.Load(), uint64(len(channelOk(3))); got != want {
		t.Errorf("counted %d bytes, want %d", got, want)
	}
}

func TestDeliveriesOfABatchAreWrittenByTheReader(t *testing.T) {
	consumer, client := newSleeper(t, zap.NewNop())
	publisher := &conn{srv: consumer.srv, out: newOutbox(nil), log: zap.NewNop()}
	publisher.out.batching = true
	publisher.join()
	consumer.out.ack(1, 1, false)
	consumer.out.ack(1, 2, true)
	if consumer.woken() {
		t.Error("the writer was woken during the batch")
	}
	publisher.batchDone()
	wantBytes(t, client, frames.AppendAck(frames.AppendAck(nil, 1, 1, false), 1, 2, true))
	if consumer.woken() || consumer.srv.pushes.readers != 0 || len(consumer.srv.pushes.conns) != 0 {
		t.Errorf("after the batch: woken %v, %+v", consumer.woken(), &consumer.srv.pushes)
	}
}

// What no reader will see to is the writer's at once.
func TestWithoutABatchTheWriterIsWoken(t *testing.T) {
	c, _ := newSleeper(t, zap.NewNop())
	c.out.ack(1, 1, false)
	if !c.woken() {
		t.Error("the writer was not woken for an ack")
	}
	c, _ = newSleeper(t, zap.NewNop())
	c.out.method(1, &frames.ChannelOpenOk{})
	if !c.woken() {
		t.Error("the writer was not woken for a method")
	}
	c, _ = newSleeper(t, zap.NewNop())
	c.join() // outside of a batch nobody would leave
	c.out.ack(1, 1, false)
	if !c.woken() {
		t.Error("the writer was not woken for an ack after a join outside of a batch")
	}
}

func TestMuchIsTheWriters(t *testing.T) {
	c, _ := newSleeper(t, zap.NewNop())
	c.out.batching = true
	c.join()
	for c.out.bytes <= pushLimit {
		if c.woken() {
			t.Fatalf("the writer was woken for %d bytes", c.out.bytes)
		}
		c.out.method(1, &frames.ChannelOpenOk{})
	}
	if !c.woken() {
		t.Errorf("the writer was not woken for %d bytes", c.out.bytes)
	}
	c, _ = newSleeper(t, zap.NewNop())
	c.out.batching = true
	c.join()
	for !c.woken() && c.out.bytes <= 2*pushLimit {
		c.out.ack(1, 1, false)
	}
	if c.out.bytes > 2*pushLimit || c.out.bytes <= pushLimit {
		t.Errorf("the writer was woken after %d bytes of acks, want one more than %d", c.out.bytes, pushLimit)
	}
	c.batchDone()
	if c.out.queued || len(c.out.wake) != 1 {
		t.Error("after the batch it is still queued, or was woken twice")
	}
}

// A reader writes to a few connections; the writers of the others are woken.
func TestManyConnectionsAreTheWriters(t *testing.T) {
	reader, _ := newSleeper(t, zap.NewNop())
	reader.out.batching = true
	reader.join()
	var all []*conn
	for range maxPushes + 5 {
		sock, _ := socketPair(t)
		c := newConn(reader.srv, sock)
		c.sleep()
		c.out.ack(1, 1, false)
		all = append(all, c)
	}
	reader.batchDone()
	written, woken := 0, 0
	for _, c := range all {
		if c.woken() {
			woken++
		} else if c.sent.Load() > 0 {
			written++
		}
	}
	if written != maxPushes || woken != 5 {
		t.Errorf("%d were written to and %d woken, want %d and 5", written, woken, maxPushes)
	}
}

// A client that does not read makes no one wait: what its socket does not take
// is left to its writer, in order.
func TestAPushDoesNotWaitForTheClient(t *testing.T) {
	c, client := newSleeper(t, zap.NewNop())
	c.sock.(*net.TCPConn).SetWriteBuffer(1 << 16)
	n := 0
	for !c.woken() {
		c.out.batching = true
		for range 500 {
			c.out.method(1, &frames.ChannelOpenOk{})
		}
		n += 500
		c.batchDone()
	}
	if len(c.out.encoded) == 0 || c.out.bytes != len(c.out.encoded) {
		t.Errorf("%d bytes are left and %d counted", len(c.out.encoded), c.out.bytes)
	}
	c.out.method(1, &frames.ChannelOpenOk{}) // after what is left
	n++
	done := make(chan struct{})
	go func() { // ends when the outbox is closed
		c.writeLoop()
		close(done)
	}()
	wantBytes(t, client, channelOk(n))
	c.out.close(false)
	<-done
	if got, want := c.sent.Load(), uint64(len(channelOk(n))); got != want {
		t.Errorf("counted %d bytes, want %d", got, want)
	}
}

func TestOthersWaitingAreTheWriters(t *testing.T) {
	c, _ := newSleeper(t, zap.NewNop())
	c.out.batching = true
	c.out.method(1, &frames.ChannelOpenOk{})
	c.out.starved = []*consumer{nil} // the writer resumes it
	c.batchDone()
	if !c.woken() || c.sent.Load() != 0 {
		t.Errorf("woken %v, %d bytes written, want all left to the writer", c.woken(), c.sent.Load())
	}
}

// A push that finds a bug ends the connection it was for, not the one that
// pushes.
func TestAPanicOfAPushEndsOnlyItsConnection(t *testing.T) {
	core, logs := observer.New(zap.ErrorLevel)
	c, client := newSleeper(t, zap.New(core))
	other := &conn{srv: c.srv, out: newOutbox(nil), log: zap.NewNop()}
	other.out.batching = true
	other.join()
	c.out.ack(1, 1, false)
	c.out.segments = append(c.out.segments, segment{kind: returnSegment, n: 1}) // of a message that is not there
	other.batchDone()
	if b, err := io.ReadAll(client); err != nil || len(b) > 0 {
		t.Errorf("the client got %q, %v, want the end", b, err)
	}
	lines := logs.All()
	if len(lines) != 1 || !strings.Contains(lines[0].ContextMap()["stack"].(string), "amqp/push.go") {
		t.Errorf("logged %v, want one line with the stack", lines)
	}
	if _, err := c.sock.Write([]byte("x")); err == nil {
		t.Error("the socket is still open")
	}
	c.writeLoop() // ends, as the outbox is closed and empty

	sock, client := socketPair(t)
	next := newConn(c.srv, sock)
	next.out.batching = true
	next.out.method(1, &frames.ChannelOpenOk{})
	next.batchDone()
	wantBytes(t, client, channelOk(1)) // and nothing of the other's
}

// Readers, the connection's own and others, and the writer send in the order in
// which things were appended, whoever does it.
func TestPushesKeepTheOrder(t *testing.T) {
	c, client := newSleeper(t, zap.NewNop())
	done := make(chan struct{})
	c.out.asleep = false
	go func() { // ends when the outbox is closed
		c.writeLoop()
		close(done)
	}()
	const acks = 20000
	var mu sync.Mutex // the channel's confirms
	next := uint64(1)
	var wg sync.WaitGroup
	for range 4 { // readers of other connections, each with batches of 1 to 8
		other := &conn{srv: c.srv, out: newOutbox(nil), log: zap.NewNop()}
		wg.Go(func() {
			for i := 1; ; i++ {
				other.out.batching = true
				if i%5 > 0 { // else the writer is woken
					other.join()
				}
				for range i%8 + 1 {
					mu.Lock()
					if next > acks {
						mu.Unlock()
						other.batchDone()
						return
					}
					c.out.ack(1, next, false)
					next++
					mu.Unlock()
				}
				other.batchDone()
			}
		})
	}
	var want []byte
	for tag := uint64(1); tag <= acks; tag++ {
		want = frames.AppendAck(want, 1, tag, false)
	}
	wantBytes(t, client, want)
	wg.Wait()
	c.out.close(false)
	<-done
}

func BenchmarkPush(b *testing.B) {
	c, client := newSleeper(b, zap.NewNop())
	go io.Copy(io.Discard, client)
	b.ReportAllocs()
	for b.Loop() {
		pushAck(c)
	}
}

func pushAck(c *conn) {
	c.out.batching = true
	c.join()
	c.out.ack(1, 1, false)
	c.batchDone()
}

// What readers can send needs no writer; what they cannot starts one.
func TestTheWriterIsStartedWhenItIsNeeded(t *testing.T) {
	s := newTestServer(t, zap.NewNop())
	client := dialTCP(t, s)
	client.call(&frames.QueueDeclare{Queue: "q"}, frames.QueueDeclareOkID)
	c := s.running()[0]
	started := func() bool {
		c.out.mu.Lock()
		defer c.out.mu.Unlock()
		return c.out.started
	}
	if started() {
		t.Error("answers of methods have started the writer")
	}
	const size = 2 * pushLimit
	client.write(appendPublish(nil, 1, "q", []byte{0, 0}, make([]byte, size)))
	client.call(&frames.BasicGet{Queue: "q", NoAck: true}, frames.BasicGetOkID)
	client.next() // header
	if f := client.next(); len(f.Payload) != size || !started() {
		t.Errorf("got a body of %d bytes, writer started %v; want %d of a writer", len(f.Payload), started(), size)
	}
}

// Whoever was the last to write ends the connection's write side.
func TestClosingWhileSomebodyWrites(t *testing.T) {
	s := newTestServer(t, zap.NewNop())
	for _, written := range []bool{false, true} {
		sock, client := socketPair(t)
		c := newConn(s, sock)
		c.out.batching = true
		c.out.method(1, &frames.ChannelOpenOk{})
		if !c.out.seize(true) {
			t.Fatal("the outbox cannot be seized")
		}
		if written {
			c.writeNow(&c.out.taken)
		} else {
			c.out.taken.reset()
			c.out.taken.encoded = channelOk(1) // the socket has taken nothing
			c.out.taken.bytes = len(c.out.taken.encoded)
		}
		c.out.close(false)
		select {
		case <-c.out.done:
			t.Error("it has ended before what is being written")
		default:
		}
		c.out.yield()
		<-c.out.done
		if c.out.started == written {
			t.Errorf("written %v: the writer was started: %v", written, c.out.started)
		}
		wantBytes(t, client, channelOk(1))
		if b, err := io.ReadAll(client); err != nil || len(b) > 0 {
			t.Errorf("then the client got %q, %v, want the end", b, err)
		}
	}
}

// Heartbeats begin before the vhost is known: they are pushed while it is entered.
func TestPushingWhileTheConnectionIsOpened(t *testing.T) {
	s := newTestServer(t, zap.NewNop())
	sock, _ := socketPair(t)
	c := newConn(s, sock)
	c.user, c.state = auth.User{Name: "guest"}, awaitOpen
	pushed := make(chan struct{})
	go func() {
		c.push()
		close(pushed)
	}()
	err := c.open(frames.ConnectionOpenID, &frames.ConnectionOpen{VHost: "/"})
	<-pushed
	c.unwatch()
	c.release()
	if err != nil || c.vhost == nil {
		t.Errorf("opened with %v, state %v", err, c.state)
	}
}
