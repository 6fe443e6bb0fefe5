//go:build linux && !foreign

package interop_test

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"golang.org/x/sys/unix"
)

// smallDisk mounts a file system of so many bytes for the test. That takes
// root, as which CI runs: there a failure to mount is a failure.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	err := unix.Mount("leveret-test", dir, "tmpfs", 0, "size="+size)
	if errors.Is(err, unix.EPERM) && os.Getenv("CI") == "" {
		t.Skip("only root may mount a file system of the test's own; run it as root, or set CI to fail instead")
	}
	if err != nil {
		t.Fatalf("mount a file system of %s: %v", size, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

// A ballast takes space of a file system.
type ballast struct {
	*testing.T
	file *os.File
	size int64
}

func newBallast(t *testing.T, dir string) *ballast {
	t.Helper()
	f, err := os.CreateTemp(dir, "ballast")
	if err != nil {
		t.Fatal(err)
	}
	return &ballast{T: t, file: f}
}

// fill takes all space but so many bytes.
func (b *ballast) fill(but int64) {
	b.Helper()
	for {
		var st unix.Statfs_t
		if err := unix.Fstatfs(int(b.file.Fd()), &st); err != nil {
			b.Fatal(err)
		}
		step := min(int64(st.Bavail)*st.Bsize-but, 1<<30)
		if step <= 0 {
			return
		}
		if err := unix.Fallocate(int(b.file.Fd()), 0, b.size, step); err != nil && !errors.Is(err, syscall.ENOSPC) {
			b.Fatal(err)
		}
		b.size += step
	}
}

// release gives the space back.
func (b *ballast) release() {
	b.Helper()
	if err := errors.Join(os.Remove(b.file.Name()), b.file.Close()); err != nil {
		b.Error(err)
	}
}

// A full disk stops publishers, not consumers and not the broker, and loses
// nothing that was confirmed: whether messages fill it or others do.
func TestFullDisk(t *testing.T) {
	dir := smallDisk(t, "200m")
	p := start(t, dir, "--profile", "tiny", "--disk-free-limit", "60MB")
	c := p.client()
	_, err := c.ch.QueueDeclare("q", true, false, false, false, nil)
	c.must(err)
	pub := newBlockable(p)

	pub.untilBlocked()
	taker := p.client()
	ds := taker.consume("q", "taker", false)
	var taken, sent int
	unblocked := false
	for !unblocked { // what is taken makes space
		select {
		case b := <-pub.blocked:
			unblocked = !b.Active
		case d := <-ds:
			wantNumber(t, d, taken)
			taken++
			taker.must(d.Ack(false))
		case <-time.After(patience):
			t.Fatalf("still blocked after %d messages were taken", taken)
		}
	}
	for range 500 { // for what comes
		pub.publish()
	}
	sent = pub.sent
	pub.wantConfirmed()

	// Others take nearly all there is, and what a flush gives back, and when the
	// store writes nothing more, the rest: what it had begun to write needs the space
	// that it keeps free for that. Consumers go on.
	others := newBallast(t, dir)
	others.fill(8 << 20)
	pub.untilBlocked()
	atRest := p.awaiting("nothing more is being written: the last byte may be taken")
	for rest := false; !rest; {
		others.fill(8 << 20)
		d := receive(t, ds)
		wantNumber(t, d, taken)
		taken++
		taker.must(d.Ack(false)) // something to write
		select {
		case rest = <-atRest:
		case <-time.After(50 * time.Millisecond):
		}
	}
	others.fill(0)
	for range 20 {
		wantNumber(t, receive(t, ds), taken)
		taken++
	}
	others.release()
	if b := receive(t, pub.blocked); b.Active {
		t.Errorf("got %+v, want unblocked", b)
	}
	pub.wantConfirmed()
	if pub.sent == sent {
		t.Error("nothing was published after the disk was full")
	}
	for _, line := range []string{"the disk is full: nothing is written or confirmed until space is free", "disk alarm set", "disk alarm cleared"} {
		p.await(line)
	}
	p.kill()

	p = start(t, dir, "--profile", "tiny", "--disk-free-limit", "1MB")
	c = p.client()
	ready, _ := c.counts("q")
	ds = c.consume("q", "all", true)
	next := pub.sent - ready // acks of the last moment may be lost
	if next > taken {
		t.Errorf("%d messages are left of %d, of which %d were taken", ready, pub.sent, taken)
	}
	for range ready {
		wantNumber(t, receive(t, ds), next)
		next++
	}
	p.stop()
}

// A broker that finds the disk full says so and ends in order.
func TestStartWithFullDisk(t *testing.T) {
	dir := smallDisk(t, "64m")
	start(t, dir, "--profile", "tiny", "--disk-free-limit", "40MB").stop()
	newBallast(t, dir).fill(1 << 20)
	code, _, stderr := runToEnd(t, "--listen", "127.0.0.1:0", "--data-dir", dir, "--profile", "tiny", "--disk-free-limit", "40MB")
	if code != 1 || !strings.Contains(stderr, "the disk is full") || !strings.Contains(stderr, "free some space") {
		t.Errorf("exit code %d, stderr %q, want 1 and what to do", code, stderr)
	}
}

// A blockable is a publisher of numbered messages of 20 kB that learns when it
// is blocked.
type blockable struct {
	*client
	blocked chan amqp.Blocking
	last    *amqp.DeferredConfirmation
	sent    int
}

func newBlockable(p *process) *blockable {
	p.Helper()
	b := &blockable{client: p.client(), blocked: make(chan amqp.Blocking, 10)}
	b.conn.NotifyBlocked(b.blocked)
	b.must(b.ch.Confirm(false))
	return b
}

// publish publishes the next message.
func (b *blockable) publish() {
	b.Helper()
	d, err := b.ch.PublishWithDeferredConfirm("", "q", false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: numbered(b.sent)})
	b.must(err)
	b.sent++
	b.last = d
}

// untilBlocked publishes with few messages unconfirmed until the broker says
// that it takes no more.
func (b *blockable) untilBlocked() {
	b.Helper()
	var window []*amqp.DeferredConfirmation
	for {
		b.publish()
		window = append(window, b.last)
		if len(window) > 50 {
			select {
			case <-window[0].Done():
				if !window[0].Acked() {
					b.Fatalf("message %d was refused", b.sent-len(window))
				}
				window = window[1:]
			case blocked := <-b.blocked:
				if !blocked.Active {
					b.Fatalf("got %+v, want blocked", blocked)
				}
				return
			case <-time.After(patience):
				b.Fatalf("neither confirmed nor blocked after %d messages", b.sent)
			}
		}
	}
}

// wantConfirmed waits until all messages are confirmed.
func (b *blockable) wantConfirmed() {
	b.Helper()
	receive(b.T, confirmation(b.last))
}

// confirmation turns the end of waiting into a value.
func confirmation(d *amqp.DeferredConfirmation) <-chan bool {
	ch := make(chan bool, 1)
	go func() { ch <- d.Wait() }()
	return ch
}

// numbered makes a body of 20 kB that starts with a number.
func numbered(n int) []byte {
	body := make([]byte, 20_000)
	copy(body, strconv.Itoa(n)+" ")
	return body
}

func wantNumber(t *testing.T, d amqp.Delivery, want int) {
	t.Helper()
	text, _, _ := strings.Cut(string(d.Body[:min(len(d.Body), 20)]), " ")
	if text != strconv.Itoa(want) {
		t.Fatalf("got message %s, want %d", text, want)
	}
}
