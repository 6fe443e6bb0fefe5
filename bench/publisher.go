package bench

import (
	"encoding/binary"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leveretmq/leveret/frames"
)

// exactPublishers is up to how many publishing connections keep their pace by
// sleeping in the system, which is exact but takes a thread of each.
const exactPublishers = 16

// A publisher publishes on one channel. All but confirms is owned by the writer
// of its connection.
type publisher struct {
	r        *run
	channel  uint16
	t        *template
	place    int       // next message of the template
	pace     *pacer    // nil = as fast as possible
	starts   int64     // time before which it does nothing
	left     int64     // messages still to publish, -1 = no end
	step     int64     // messages of one write
	confirms *confirms // nil without confirms
	ended    atomic.Bool
	gone     atomic.Bool // its channel or connection has ended: no confirm comes any more
}

// A pubConn is a connection of publishers: one goroutine writes, one reads.
type pubConn struct {
	r          *run
	c          *conn
	publishers []*publisher // by channel number - 1; immutable
	wake       chan struct{}
	exact      bool
	read       chan struct{} // closed when the reader has ended
	acks       tally         // owned by the reader
}

// openPublishers opens a connection with the publishers numbered from up to but
// not including to.
func (r *run) openPublishers(c *conn, f *fan, from, to int) (*pubConn, error) {
	pc := &pubConn{r: r, c: c, wake: make(chan struct{}, 1), read: make(chan struct{})}
	for i := from; i < to; i++ {
		channel := uint16(i - from + 1)
		if err := c.openChannel(channel); err != nil {
			return nil, err
		}
		p := &publisher{r: r, channel: channel, t: newTemplate(r.sc, f, i, channel, c.frameMax), left: -1, step: int64(r.sc.Batch)}
		if r.sc.Messages > 0 {
			p.left = share(r.sc.Messages, i, r.sc.Publishers)
		}
		if r.sc.confirms() {
			if _, err := call[*frames.ConfirmSelectOk](c, channel, &frames.ConfirmSelect{}); err != nil {
				return nil, err
			}
			p.confirms = newConfirms(r.sc.Confirm)
			p.step = max(1, min(p.step, int64(r.sc.Confirm)/8))
		}
		p.step = min(p.step, int64(len(p.t.ends)))
		pc.publishers = append(pc.publishers, p)
	}
	return pc, nil
}

// share is the part of n that the i-th of so many has.
func share(n int64, i, of int) int64 {
	s := n / int64(of)
	if int64(i) < n%int64(of) {
		s++
	}
	return s
}

// writeLoop publishes until all publishers have ended or the run stops them. It
// is the connection's only goroutine that publishes.
func (pc *pubConn) writeLoop() {
	for !pc.r.stopped.Load() {
		sent, next, alive := false, int64(math.MaxInt64), false
		for _, p := range pc.publishers {
			if p.ended.Load() {
				continue
			}
			n, at, err := p.publish(pc.c)
			if err != nil {
				pc.r.failed(err)
				return
			}
			alive = alive || !p.ended.Load()
			sent = sent || n
			next = min(next, at)
		}
		if !alive {
			return
		}
		if !sent {
			pc.sleep(next)
		}
	}
}

// sleep waits until the time next, or until the connection is woken.
func (pc *pubConn) sleep(next int64) {
	d := time.Duration(next - pc.r.m.clock.now())
	const fine = 1200 * time.Microsecond // what a timer may be late, and some
	switch {
	case next == math.MaxInt64:
		select {
		case <-pc.wake:
		case <-pc.r.stop:
		}
		return
	case d <= 0:
		return
	case pc.exact && d <= fine:
		pause(d)
		return
	case pc.exact:
		d -= fine
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-pc.wake:
	case <-pc.r.stop:
	case <-t.C:
	}
}

// publish sends what may be sent now, in one write. It says whether it sent
// anything, and when it wants to be called again if nobody wakes it.
func (p *publisher) publish(c *conn) (sent bool, next int64, err error) {
	now := p.r.m.clock.now()
	if now < p.starts {
		return false, p.starts, nil
	}
	n, next := p.due(now)
	if n == 0 {
		return false, next, nil
	}
	if !p.mayPublish(n) {
		return false, math.MaxInt64, nil
	}
	first := p.place
	p.mark(n, now)
	p.count(first, p.place)
	if p.place == len(p.t.ends) {
		p.place = 0
	}
	_, err = c.sock.Write(p.t.slice(first, first+int(n)))
	if p.left == 0 {
		p.ended.Store(true)
	}
	return true, 0, err
}

// due is how many messages are to be sent in the next write, up to the end of
// the template, and when there will be some if there are none.
func (p *publisher) due(now int64) (n, next int64) {
	n = min(p.step, int64(len(p.t.ends)-p.place))
	if p.left >= 0 {
		n = min(n, p.left)
	}
	if p.pace == nil {
		return n, now
	}
	if at := p.pace.next(); at > now {
		return 0, at
	}
	return min(n, int64(p.pace.group())), now
}

// mayPublish asks whether confirms and deliveries under way leave room.
func (p *publisher) mayPublish(n int64) bool {
	if p.confirms != nil && !p.confirms.ask(n) {
		return false
	}
	return p.r.gate.limit == 0 || p.r.gate.ask(n*p.t.maxFan)
}

// mark takes n messages of the template and writes into them when they were due.
func (p *publisher) mark(n, now int64) {
	at := now
	if p.pace != nil {
		at = p.pace.next()
		p.pace.take(int(n))
	}
	p.t.stamp(p.place, p.place+int(n), at)
	if p.confirms != nil {
		p.confirms.add(int(n), at)
	}
	p.place += int(n)
	if p.left > 0 {
		p.left -= n
	}
}

// count counts messages before they are written, so that no consumer can be
// ahead.
func (p *publisher) count(from, to int) {
	p.r.m.expected.Add(sum(p.t.fans, from, to))
	p.r.m.publishedBytes.Add(sum(p.t.sizes, from, to))
	p.r.m.published.Add(int64(to - from))
}

// readLoop takes what the broker has to say to publishers until the connection
// ends.
func (pc *pubConn) readLoop() {
	defer close(pc.read)
	var blockedAt int64
	defer func() { pc.unblock(&blockedAt) }()
	for !pc.handleRead(&blockedAt) {
		pc.r.m.latencies[latencyConfirm].record(&pc.acks)
		if err := pc.c.fill(); err != nil {
			pc.lost(err)
			return
		}
	}
}

// handleRead handles the whole frames of what was read; done says that the
// connection is over. All of them have come at the same time.
func (pc *pubConn) handleRead(blockedAt *int64) (done bool) {
	var now int64
	for {
		f, ok, err := pc.c.next()
		if err != nil {
			pc.lost(err)
			return true
		}
		if !ok {
			return false
		}
		if f.Type != frames.MethodFrame || len(f.Payload) < 4 {
			continue
		}
		if now == 0 {
			now = pc.r.m.clock.now()
		}
		if pc.handle(f, now, blockedAt) {
			return true
		}
	}
}

// handle handles one method; done says that the connection is over.
func (pc *pubConn) handle(f frames.Frame, now int64, blockedAt *int64) (done bool) {
	m := pc.r.m
	id, args, _ := frames.SplitMethod(f.Payload)
	switch id {
	case frames.BasicAckID, frames.BasicNackID:
		pc.settle(f.Channel, id, args, now)
	case frames.BasicReturnID:
		m.returned.Add(1)
	case frames.ConnectionBlockedID:
		if *blockedAt == 0 {
			*blockedAt = now
			m.blocked.Add(1)
			m.blockedNow.Add(1)
		}
	case frames.ConnectionUnblockedID:
		pc.unblock(blockedAt)
	case frames.ConnectionCloseOkID:
		return true
	case frames.ChannelCloseID, frames.ConnectionCloseID:
		done = pc.r.closedBy(pc.c, f)
		for _, p := range pc.publishers {
			if done || p.channel == f.Channel {
				p.end()
			}
		}
		pc.wakeAll()
	}
	return done
}

// end stops a publisher whose channel or connection has ended.
func (p *publisher) end() {
	p.ended.Store(true)
	p.gone.Store(true)
}

// wakeAll wakes who waits for a publisher that has ended: its writer, and the
// run, which may wait for its confirms.
func (pc *pubConn) wakeAll() {
	wake(pc.wake)
	wake(pc.r.reached)
}

// settle takes an ack or nack.
func (pc *pubConn) settle(channel uint16, id frames.MethodID, args []byte, now int64) {
	if len(args) != 9 || channel == 0 || int(channel) > len(pc.publishers) || pc.publishers[channel-1].confirms == nil {
		return
	}
	p := pc.publishers[channel-1]
	tag, multiple := int64(binary.BigEndian.Uint64(args)), args[8]&1 != 0
	settled, latencies := &pc.r.m.confirmed, &pc.acks
	if id == frames.BasicNackID {
		settled, latencies = &pc.r.m.nacked, nil
	}
	n, wakes := p.confirms.settle(tag, multiple, now, latencies)
	settled.Add(n)
	if wakes {
		wake(pc.wake)
	}
	if p.ended.Load() && p.confirms.open() == 0 {
		wake(pc.r.reached)
	}
}

func (pc *pubConn) unblock(at *int64) {
	if *at != 0 {
		pc.r.m.blockedFor.Add(pc.r.m.clock.now() - *at)
		pc.r.m.blockedNow.Add(-1)
		*at = 0
	}
}

// lost notes that the connection has ended in a way nobody asked for.
func (pc *pubConn) lost(err error) {
	pc.r.failed(err)
	for _, p := range pc.publishers {
		p.end()
	}
	pc.wakeAll()
}

// awaited is how many publishes of the connection will still be confirmed or
// refused.
func (pc *pubConn) awaited() int64 {
	n := int64(0)
	for _, p := range pc.publishers {
		if p.confirms != nil && !p.gone.Load() {
			n += p.confirms.open()
		}
	}
	return n
}

// unconfirmed is how many publishes of the connection have no confirm, those
// that will get none included.
func (pc *pubConn) unconfirmed() int64 {
	n := int64(0)
	for _, p := range pc.publishers {
		if p.confirms != nil {
			n += p.confirms.open()
		}
	}
	return n
}

// finish closes the connection in order.
func (pc *pubConn) finish(wg *sync.WaitGroup) {
	wg.Go(func() {
		bye := frames.AppendMethod(nil, 0, &frames.ConnectionClose{ReplyCode: 200, ReplyText: "done"})
		pc.r.farewell(pc.c, bye, pc.read)
	})
}
