package cases_test

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A channel is one channel of a conn, opened when it is first used and again
// after the broker has closed it. Its methods return what the broker answered
// as text: "ok" and the values of the reply, or
// "channel 404 NOT_FOUND - no queue 'q' in vhost '/' (50,10)".
// Flags are letters, as each method says.
type channel struct {
	*conn
	n          uint16
	open       bool
	confirming bool
	published  uint64
	inbox      []item // what came and was not asked for, oldest first
	last       item   // the reply to the latest call
}

// on is a channel of the connection by its number.
func (c *conn) on(n uint16) *channel {
	ch := c.channels[n]
	if ch == nil {
		ch = &channel{conn: c, n: n}
		c.channels[n] = ch
	}
	return ch
}

// solicited says whether a method answers a call.
func (it item) solicited() bool {
	return !slices.Contains([]method{basicDeliver, basicReturn, basicAck, basicNack, basicCancel, connectionBlocked, connectionUnblocked}, it.method)
}

// call sends a method and waits for its reply.
func (ch *channel) call(m method, args ...[]byte) string {
	ch.Helper()
	ch.tell(m, args...)
	return ch.reply()
}

// tell sends a method that has no reply.
func (ch *channel) tell(m method, args ...[]byte) {
	ch.Helper()
	ch.ready()
	ch.send(methodFrame(ch.n, m, args...))
}

// ready opens the channel if it is not open.
func (ch *channel) ready() {
	ch.Helper()
	if ch.open || ch.ended != "" || ch.n == 0 {
		return
	}
	ch.confirming, ch.published = false, 0
	ch.send(methodFrame(ch.n, channelOpen, short("")))
	if got := ch.reply(); got != "ok" {
		ch.Fatalf("open channel %d: %s", ch.n, got)
	}
	ch.open = true
}

// reply waits for the reply to what was sent.
func (ch *channel) reply() string {
	ch.Helper()
	for {
		it, ok := ch.read(patience)
		if !ok {
			if ch.ended == "" {
				return "no reply"
			}
			return ch.ended
		}
		if it.channel == 0 && it.method == connectionClose {
			return ch.ended
		}
		if it.channel == ch.n && it.solicited() {
			ch.last = it
			return ch.text(it)
		}
		home := ch.on(it.channel)
		home.inbox = append(home.inbox, it)
	}
}

// next is what comes on the channel without being asked for: a delivery,
// return, ack, nack, cancel or close.
func (ch *channel) next() string {
	ch.Helper()
	return ch.nextWithin(patience)
}

// nextWithin is next, or "nothing" when the time has passed.
func (ch *channel) nextWithin(d time.Duration) string {
	ch.Helper()
	for end := time.Now().Add(d); ; {
		if len(ch.inbox) > 0 {
			ch.last = ch.inbox[0]
			ch.inbox = ch.inbox[1:]
			return ch.text(ch.last)
		}
		it, ok := ch.read(time.Until(end))
		if !ok {
			if ch.ended != "" {
				return ch.ended
			}
			return "nothing"
		}
		if it.method == connectionClose {
			return ch.ended
		}
		home := ch.on(it.channel)
		home.inbox = append(home.inbox, it)
	}
}

// want compares what comes unasked with a list.
func (ch *channel) want(list ...string) {
	ch.Helper()
	for _, want := range list {
		ch.is(ch.next(), want)
	}
}

// quiet is how long a test waits to see that nothing comes.
const quiet = 150 * time.Millisecond

// wantNothing waits a moment in which nothing may come.
func (ch *channel) wantNothing() {
	ch.Helper()
	ch.is(ch.nextWithin(quiet), "nothing")
}

// is compares an answer; a want that ends in "..." is a beginning.
func (c *conn) is(got, want string) {
	c.Helper()
	if head, ok := strings.CutSuffix(want, "..."); ok && strings.HasPrefix(got, head) {
		return
	}
	if got != want {
		c.Errorf("got  %s\nwant %s", got, want)
	}
}

// ok fails the test at once when a preparation is refused.
func (c *conn) ok(got string) {
	c.Helper()
	if got != "ok" && !strings.HasPrefix(got, "ok ") {
		c.Fatalf("got %s, want ok", got)
	}
}

// eventually waits until an answer is as wanted.
func (c *conn) eventually(want string, ask func() string) {
	c.Helper()
	got := ""
	for end := time.Now().Add(patience); time.Now().Before(end); c.pause(20 * time.Millisecond) {
		if got = ask(); got == want {
			return
		}
	}
	c.Errorf("got  %s\nwant %s", got, want)
}

// gone waits until the default exchange has no queue of this name. Unlike a
// declare, a publish does not renew the lease of x-expires.
func (ch *channel) gone(queue string) {
	ch.Helper()
	ch.eventually("return 312 NO_ROUTE /"+queue+` "probe", ack`, func() string {
		return ch.put("", queue, "probe", props{}, "m")
	})
}

// pause lets real time pass, as the broker's clock is the thing under test.
func (c *conn) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-c.Context().Done():
	}
}

func bits(flags, letters string) []byte {
	var b byte
	for _, f := range flags {
		i := strings.IndexRune(letters, f)
		if i < 0 {
			panic(fmt.Sprintf("flag %q is none of %q", f, letters))
		}
		b |= 1 << i
	}
	return u8(b)
}

// declare declares a queue: p passive, d durable, x exclusive, a auto-delete.
func (ch *channel) declare(queue, flags string, args table) string {
	ch.Helper()
	if queue != "" && !strings.Contains(flags, "p") {
		*ch.created = append(*ch.created, [2]string{"queue", ch.name(queue)})
	}
	return ch.call(queueDeclare, u16(0), short(ch.name(queue)), bits(flags, "pdxan"), args.encode())
}

// depth is the state of a queue: its ready messages and consumers.
func (ch *channel) depth(queue string) string {
	ch.Helper()
	text := ch.declare(queue, "p", nil)
	if ready, ok := strings.CutPrefix(text, "ok "+ch.plain(ch.name(queue))+" "); ok {
		return ready
	}
	return text
}

// exchange declares one: p passive, d durable, a auto-delete, i internal.
func (ch *channel) exchange(name, kind, flags string, args table) string {
	ch.Helper()
	if !strings.Contains(flags, "p") {
		*ch.created = append(*ch.created, [2]string{"exchange", ch.name(name)})
	}
	return ch.call(exchangeDeclare, u16(0), short(ch.name(name)), short(kind), bits(flags, "pdain"), args.encode())
}

func (ch *channel) bind(queue, exchange, key string, args table) string {
	ch.Helper()
	return ch.call(queueBind, u16(0), short(ch.name(queue)), short(ch.name(exchange)), short(key), u8(0), args.encode())
}

func (ch *channel) unbind(queue, exchange, key string, args table) string {
	ch.Helper()
	return ch.call(queueUnbind, u16(0), short(ch.name(queue)), short(ch.name(exchange)), short(key), args.encode())
}

// link binds an exchange to another: what source gets, destination gets.
func (ch *channel) link(destination, source, key string, args table) string {
	ch.Helper()
	return ch.call(exchangeBind, u16(0), short(ch.name(destination)), short(ch.name(source)), short(key), u8(0), args.encode())
}

func (ch *channel) unlink(destination, source, key string, args table) string {
	ch.Helper()
	return ch.call(exchangeUnbind, u16(0), short(ch.name(destination)), short(ch.name(source)), short(key), u8(0), args.encode())
}

// remove deletes a queue: u if unused, e if empty.
func (ch *channel) remove(queue, flags string) string {
	ch.Helper()
	return ch.call(queueDelete, u16(0), short(ch.name(queue)), bits(flags, "uen"))
}

// removeExchange deletes an exchange: u if unused.
func (ch *channel) removeExchange(name, flags string) string {
	ch.Helper()
	return ch.call(exchangeDelete, u16(0), short(ch.name(name)), bits(flags, "un"))
}

func (ch *channel) purge(queue string) string {
	ch.Helper()
	return ch.call(queuePurge, u16(0), short(ch.name(queue)), u8(0))
}

// key is a routing key: through the default exchange, the name of a queue.
func (ch *channel) key(exchange, key string) string {
	if exchange == "" {
		return ch.name(key)
	}
	return key
}

// message is the frames of a publish: m mandatory, i immediate.
func (ch *channel) message(exchange, key, body string, p props, flags string) []byte {
	b := slices.Concat(
		methodFrame(ch.n, basicPublish, u16(0), short(ch.name(exchange)), short(ch.key(exchange, key)), bits(flags, "mi")),
		frame(frameHeader, ch.n, header(uint64(len(body)), p.encode())))
	for piece := range slices.Chunk([]byte(body), ch.frameMax-8) {
		b = append(b, frame(frameBody, ch.n, piece)...)
	}
	return b
}

// publish sends a message and does not wait.
func (ch *channel) publish(exchange, key, body string, p props, flags string) {
	ch.Helper()
	ch.ready()
	ch.published++
	ch.send(ch.message(exchange, key, body, p, flags))
}

// put publishes and waits for the confirm: "ack", "nack", "return ..., ack",
// or how the broker closed the channel.
func (ch *channel) put(exchange, key, body string, p props, flags string) string {
	ch.Helper()
	ch.ready()
	if !ch.confirming {
		ch.ok(ch.call(confirmSelect, u8(0)))
		ch.confirming, ch.published = true, 0
	}
	ch.publish(exchange, key, body, p, flags)
	got, tag := "", fmt.Sprint(ch.published)
	var others []item // belong to the test
	defer func() { ch.inbox = append(others, ch.inbox...) }()
	for {
		text := ch.next()
		verb, rest, _ := strings.Cut(text, " ")
		switch {
		case verb == "return":
			got += text + ", "
		case (verb == "ack" || verb == "nack") && strings.TrimSuffix(rest, " multiple") == tag:
			return got + verb
		case verb == "channel" || verb == "connection" || verb == "eof" || verb == "nothing":
			return got + text
		default:
			others = append(others, ch.last)
		}
	}
}

// puts puts several plain messages to a queue.
func (ch *channel) puts(queue string, bodies ...string) {
	ch.Helper()
	for _, body := range bodies {
		ch.is(ch.put("", queue, body, props{}, ""), "ack")
	}
}

// sync waits until the broker has dealt with what was sent on the channel:
// "ok", or what it said to it.
func (ch *channel) sync() string {
	ch.Helper()
	return ch.exchange("amq.direct", "direct", "p", nil)
}

// consume starts a consumer: l no-local, a no-ack, x exclusive, n no-wait.
func (ch *channel) consume(queue, tag, flags string, args table) string {
	ch.Helper()
	return ch.call(basicConsume, u16(0), short(ch.name(queue)), short(tag), bits(flags, "laxn"), args.encode())
}

func (ch *channel) cancel(tag string) string {
	ch.Helper()
	return ch.call(basicCancel, short(tag), u8(0))
}

// get takes a message, to be acknowledged: `#1 x/key "body" left 0` or "empty".
func (ch *channel) get(queue string) string {
	ch.Helper()
	return ch.call(basicGet, u16(0), short(ch.name(queue)), u8(0))
}

// take takes a message for good.
func (ch *channel) take(queue string) string {
	ch.Helper()
	return ch.call(basicGet, u16(0), short(ch.name(queue)), u8(1))
}

// bodies takes all messages off a queue: their bodies with blanks between.
func (ch *channel) bodies(queue string) string {
	ch.Helper()
	var got []string
	for {
		text := ch.take(queue)
		if text == "empty" {
			return strings.Join(got, " ")
		}
		if !strings.HasPrefix(text, "#") {
			return text
		}
		got = append(got, string(ch.last.body))
	}
}

// props are the properties of the latest message, as text.
func (ch *channel) props() string { return ch.plain(propsText(ch.last.props)) }

func (ch *channel) qos(count uint16, global bool) string {
	ch.Helper()
	return ch.call(basicQos, u32(0), u16(count), boolean(global))
}

func boolean(v bool) []byte {
	if v {
		return u8(1)
	}
	return u8(0)
}

// ack acknowledges: m multiple.
func (ch *channel) ack(tag uint64, flags string) {
	ch.Helper()
	ch.tell(basicAck, u64(tag), bits(flags, "m"))
}

// nack refuses: m multiple, r requeue.
func (ch *channel) nack(tag uint64, flags string) {
	ch.Helper()
	ch.tell(basicNack, u64(tag), bits(flags, "mr"))
}

// reject refuses one: r requeue.
func (ch *channel) reject(tag uint64, flags string) {
	ch.Helper()
	ch.tell(basicReject, u64(tag), bits(flags, "r"))
}

// close closes the channel in order.
func (ch *channel) close() string {
	ch.Helper()
	got := ch.call(channelClose, u16(200), short("bye"), u16(0), u16(0))
	ch.open = false
	return got
}

// hangUp ends the connection in order and waits for the answer.
func (c *conn) hangUp() {
	c.Helper()
	c.send(methodFrame(0, connectionClose, u16(200), short("bye"), u16(0), u16(0)))
	for {
		it, ok := c.read(patience)
		if !ok {
			c.Errorf("no close-ok: %s", c.ended)
			return
		}
		if it.method == connectionCloseOk {
			c.ended = "closed"
			_ = c.sock.Close() // what it says does not matter any more
			return
		}
	}
}
