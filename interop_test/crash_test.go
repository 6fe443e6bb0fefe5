//go:build !foreign

package interop_test

import (
	"math/rand/v2"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/leveretmq/leveret/persistence/storetest"
)

// A crashSuite kills a broker under load again and again and compares what the
// next one has with what its clients know.
type crashSuite struct {
	*testing.T
	dir        string
	queues     map[string]*crashQueue
	publishers []*crashPublisher
	round      int
	torn       int           // log files that got a torn tail
	found      int           // messages that were in queues after a crash
	slowest    time.Duration // start
}

// TestCrash kills a few times, see crashRounds. Rounds alternate between the levels of durability: both survive a kill.
func TestCrash(t *testing.T) {
	rounds := crashRounds(4)
	s := newCrashSuite(t)
	s.declare()
	for s.round = 1; s.round <= rounds && !t.Failed(); s.round++ {
		s.load()
		s.damage()
		s.check()
		if s.round%10 == 0 {
			s.progress()
		}
	}
	s.round--
	s.progress()
	if s.confirmed() == 0 || s.found == 0 {
		t.Errorf("%d messages were confirmed and %d found: nothing was tested", s.confirmed(), s.found)
	}
}

func newCrashSuite(t *testing.T) *crashSuite {
	t.Helper()
	if _, err := program(); err != nil { // now, so that it is not in the time of a start
		t.Fatal(err)
	}
	s := &crashSuite{T: t, dir: t.TempDir(), queues: map[string]*crashQueue{}}
	add := func(exchange, key string, queues ...string) {
		p := &crashPublisher{id: len(s.publishers), exchange: exchange, key: key}
		for _, name := range queues {
			if s.queues[name] == nil {
				s.queues[name] = &crashQueue{name: name, of: map[int]*crashLedger{}}
			}
			s.queues[name].of[p.id] = &crashLedger{}
			p.queues = append(p.queues, s.queues[name])
		}
		s.publishers = append(s.publishers, p)
	}
	add("", "work", "work")
	add("", "work", "work")
	add("fan", "", "fan.a", "fan.b", "fan.c") // shared bodies
	add("", "prio", "prio")
	add("", "keep", "keep")
	s.queues["work"].consumers = 2
	s.queues["fan.a"].consumers = 1
	s.queues["prio"].consumers = 1
	s.queues["prio"].priority = true
	return s
}

func (s *crashSuite) start() *process {
	s.Helper()
	began := time.Now()
	p := start(s.T, s.dir, "--durability", []string{"synced", "relaxed"}[s.round%2], "--profile", []string{"tiny", "server"}[s.round/2%2], "--disk-free-limit", "1MB")
	s.slowest = max(s.slowest, time.Since(began))
	return p
}

func (s *crashSuite) declare() {
	p := s.start()
	c := p.client()
	c.must(c.ch.ExchangeDeclare("fan", "fanout", true, false, false, false, nil))
	for name, q := range s.queues {
		args := amqp.Table{}
		if q.priority {
			args["x-max-priority"] = int32(4)
		}
		_, err := c.ch.QueueDeclare(name, true, false, false, false, args)
		c.must(err)
	}
	_, err := c.ch.QueueDeclare("marker", true, false, false, false, nil)
	c.must(err)
	for _, name := range []string{"fan.a", "fan.b", "fan.c"} {
		c.must(c.ch.QueueBind(name, "", "fan", false, nil))
	}
	p.kill()
}

// load runs a broker under load and kills it at a random moment.
func (s *crashSuite) load() {
	p := s.start()
	var clients sync.WaitGroup
	for _, pub := range s.publishers {
		clients.Go(func() { s.connect(p, pub.run) })
	}
	for _, q := range s.queues {
		for range q.consumers {
			clients.Go(func() { s.connect(p, func(ch *amqp.Channel) { q.consume(s.T, ch) }) })
		}
	}
	timer := time.AfterFunc(time.Duration(50+rand.IntN(800))*time.Millisecond, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	clients.Wait()
	p.wait()
	status := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !status.Signaled() || status.Signal() != syscall.SIGKILL {
		s.Fatalf("round %d: the broker ended by itself, %v: %s%s", s.round, p.cmd.ProcessState, p.lines(), p.stderr.String())
	}
}

// connect calls fn with a channel in confirm mode. Clients end when the broker
// is gone; what it says to them before that is a fault.
func (s *crashSuite) connect(p *process, fn func(*amqp.Channel)) {
	conn, err := amqp.Dial("amqp://guest:guest@" + p.addr + "/")
	if err != nil {
		return // killed already
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return
	}
	for _, closed := range []chan *amqp.Error{conn.NotifyClose(make(chan *amqp.Error, 1)), ch.NotifyClose(make(chan *amqp.Error, 1))} {
		defer func() {
			if e := <-closed; e != nil && e.Server {
				s.Errorf("round %d: the broker closed: %v", s.round, e)
			}
		}()
	}
	defer conn.Close()
	if ch.Confirm(false) == nil {
		fn(ch)
	}
}

// damage leaves in the store what a crash can leave there, and now and then
// kills a broker that is starting.
func (s *crashSuite) damage() {
	s.Helper()
	store := filepath.Join(s.dir, "store")
	if rand.IntN(3) == 0 {
		if err := storetest.PlantEmptyFiles(store); err != nil {
			s.Fatal(err)
		}
	}
	if rand.IntN(3) == 0 {
		n, err := storetest.TearTails(store)
		if err != nil {
			s.Fatal(err)
		}
		s.torn += n
	}
	if rand.IntN(5) == 0 {
		cmd := prepare(s.T, "--listen", "127.0.0.1:0", "--data-dir", s.dir)
		if err := cmd.Start(); err != nil {
			s.Fatal(err)
		}
		time.AfterFunc(time.Duration(rand.IntN(60))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // killed
	}
}

// check compares the queues with what is known of them. Half the rounds kill
// the broker that was asked, half stop it.
func (s *crashSuite) check() {
	s.Helper()
	p := s.start()
	c := p.client()
	_, err := c.ch.QueuePurge("marker", false)
	c.must(err)
	c.must(c.ch.Confirm(false))
	for name, q := range s.queues {
		ready, _ := c.counts(name)
		ds := c.consume(name, name, false)
		all := make([]amqp.Delivery, ready)
		for i := range all {
			all[i] = receive(s.T, ds)
		}
		s.found += ready
		if rest := c.stop(name, ds); rest != nil {
			s.Errorf("round %d: queue %s: %d messages more than it counted", s.round, name, len(rest))
		}
		taken := len(all)
		if q.consumers == 0 {
			taken = len(all) / 2 // what is left gets old
		}
		q.compare(s, all, taken)
		if taken > 0 {
			c.must(all[taken-1].Ack(true))
		}
		c.must(passMarkers(s.T, c.ch))
		q.settle()
		// Gives back what was not taken, before the next consumer's acks.
		c.must(c.ch.Close())
		c.reopen()
		c.must(c.ch.Confirm(false))
	}
	c.must(c.conn.Close())
	if rand.IntN(2) == 0 {
		p.kill()
	} else {
		p.stop()
	}
}

// confirmed is the number of messages that the broker has confirmed. No publisher
// may run.
func (s *crashSuite) confirmed() int {
	n := 0
	for _, p := range s.publishers {
		n += p.confirmed
	}
	return n
}

func (s *crashSuite) progress() {
	lost, back := 0, 0
	for _, q := range s.queues {
		lost, back = lost+q.lost, back+q.back
	}
	s.Logf("%d rounds: %d confirmed, %d lost, %d settled and back; %d found after crashes, %d torn files, slowest start %v",
		s.round, s.confirmed(), lost, back, s.found, s.torn, s.slowest.Round(time.Millisecond))
}

// passMarkers returns when all that was acknowledged on the channel before is
// committed. A marker may share its commit with neither, if the acks came in
// while that commit was being put together; the second's begins after the
// first's.
func passMarkers(t *testing.T, ch *amqp.Channel) error {
	for range 2 {
		d, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), "", "marker", false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("marker")})
		if err != nil {
			return err
		}
		ok, err := d.WaitContext(t.Context())
		if err != nil {
			return err
		}
		if !ok {
			return amqp.ErrClosed // the broker is gone, and with it the confirm
		}
	}
	return nil
}
