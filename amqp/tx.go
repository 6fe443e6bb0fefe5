package amqp

import (
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/vhost"
)

// A transaction is what a channel in tx mode has done since the last commit.
// Publishes wait in the channel's Publisher, which is not flushed; settled
// deliveries wait here.
type transaction struct {
	settled  []settlement
	returns  []*message.Message // unroutable and mandatory: returned at commit
	receipt  *message.Receipt   // of the publishes; nil if there are none
	seq      uint64
	complete chan struct{} // capacity 1
}

// A settlement is deliveries that will be settled in one way at commit.
type settlement struct {
	list []outstanding
	how  queue.Outcome
}

// Settled implements message.Owner.
func (tx *transaction) Settled(*message.Receipt) { tx.complete <- struct{}{} }

var _ message.Owner = (*transaction)(nil)

// txSelect handles tx.select (ref §1.9.2.1).
func (ch *channel) txSelect() error {
	if ch.acks != nil {
		return frames.Errorf(frames.PreconditionFailed, "cannot switch from confirm to tx mode")
	}
	if ch.tx == nil {
		ch.tx = &transaction{complete: make(chan struct{}, 1)}
		ch.transactional.Store(true)
		ch.pub.Transactional = true
	}
	ch.reply(&frames.TxSelectOk{})
	return nil
}

var errNotTransactional = frames.Errorf(frames.PreconditionFailed, "channel is not transactional")

// add routes a publish now and enqueues it at commit.
func (tx *transaction) add(ch *channel, rt *vhost.Route, m *message.Message) {
	if tx.receipt == nil {
		tx.receipt = message.NewReceipt(tx, 1, 0)
		tx.receipt.Hold(1)
	}
	tx.seq++
	ch.counts.uncommitted.Store(int64(tx.seq))
	switch {
	case ch.pub.Add(rt, m, tx.receipt, tx.seq):
	case m.Mandatory:
		tx.returns = append(tx.returns, m)
	default:
		ch.counts.dropped.Add(1)
	}
}

// settle keeps deliveries to be settled at commit. The tags are gone from the
// unacknowledged ones already.
func (tx *transaction) settle(ch *channel, list []outstanding, how queue.Outcome) {
	ch.counts.acksUncommitted.Add(int64(len(list)))
	tx.settled = append(tx.settled, settlement{append([]outstanding(nil), list...), how})
	clear(list)
}

// txCommit handles tx.commit (ref §1.9.2.3): the answer comes when the queues
// have all of it.
func (ch *channel) txCommit() error {
	tx := ch.tx
	if tx == nil {
		return errNotTransactional
	}
	for _, m := range tx.returns {
		ch.returned(m)
	}
	clear(tx.returns)
	tx.returns = tx.returns[:0]
	partial, ended := tx.publish(ch)
	if ended {
		return nil // the next read says why
	}
	if !partial {
		ch.reply(&frames.TxCommitOk{}) // before what settling makes room for (RabbitMQ 4.0)
	}
	for _, s := range tx.settled {
		ch.settle(s.list, s.how)
	}
	tx.settled = nil
	ch.counts.acksUncommitted.Store(0)
	if partial {
		return frames.Errorf(frames.PreconditionFailed, "partial tx completion")
	}
	return nil
}

// publish enqueues the transaction's messages and waits until they are safe. It
// says whether some were refused, or lost with a queue, or whether the connection has
// ended meanwhile: then nothing that follows is handled.
func (tx *transaction) publish(ch *channel) (partial, ended bool) {
	r := tx.receipt
	tx.receipt, tx.seq = nil, 0
	ch.counts.uncommitted.Store(0)
	if r == nil {
		return false, false
	}
	c := ch.conn
	if err := c.flush(); err != nil || c.state != running { // other channels' first: it may wait for one of those
		return false, true
	}
	ch.counts.published.Add(uint64(ch.pub.Len())) // now, and not if it is rolled back (RabbitMQ 4.0)
	ch.pub.Date(c.now)
	lost := ch.pub.Lost()
	c.toWrite |= ch.pub.Flush()
	r.Release()
	c.beats.pause()
	defer c.beats.resume()
	select {
	case <-tx.complete:
	case <-c.interrupted:
		c.r = c.w
		return false, true
	}
	refused, failed := r.Outcome()
	return lost || failed || len(refused) > 0, false
}

// txRollback handles tx.rollback (ref §1.9.2.5): publishes are dropped, settled
// deliveries are outstanding again.
func (ch *channel) txRollback() error {
	if ch.tx == nil {
		return errNotTransactional
	}
	ch.tx.rollback(ch)
	ch.reply(&frames.TxRollbackOk{})
	return nil
}

func (tx *transaction) rollback(ch *channel) {
	ch.pub.Discard()
	clear(tx.returns)
	tx.returns = tx.returns[:0]
	tx.receipt, tx.seq = nil, 0
	ch.counts.uncommitted.Store(0)
	ch.counts.acksUncommitted.Store(0)
	out := ch.conn.out
	out.mu.Lock()
	for _, s := range tx.settled {
		for _, o := range s.list {
			ch.unacked.restore(o)
		}
	}
	out.mu.Unlock()
	tx.settled = nil
}
