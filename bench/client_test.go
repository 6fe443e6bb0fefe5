package bench

import (
	"context"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"crypto/tls"

	"github.com/leveretmq/leveret/frames"
)

// TestWhatTheBrokerSaysIsCounted feeds a publishing connection what a broker
// says when things go wrong.
func TestWhatTheBrokerSaysIsCounted(t *testing.T) {
	sc := scenario(t, "confirm: 10", "channels: 2", "publishers: 2")
	r := newRun(&Broker{}, sc, Options{})
	client, server := net.Pipe()
	pc := &pubConn{r: r, c: &conn{sock: client, in: make([]byte, 64), stopBeats: func() {}}, wake: make(chan struct{}, 1), read: make(chan struct{})}
	for range 2 {
		p := &publisher{r: r, channel: uint16(len(pc.publishers) + 1), confirms: newConfirms(10)}
		p.confirms.add(6, r.m.clock.now())
		pc.publishers = append(pc.publishers, p)
	}
	go pc.readLoop()
	go func() { _, _ = io.Copy(io.Discard, server) }() // ends with the pipe
	var out []byte
	for _, m := range []struct {
		channel uint16
		method  frames.Method
	}{
		{0, &frames.ConnectionBlocked{Reason: "low on memory"}},
		{0, &frames.ConnectionBlocked{Reason: "low on disk"}}, // still once
		{1, &frames.BasicAck{DeliveryTag: 2, Multiple: true}},
		{1, &frames.BasicNack{DeliveryTag: 5, Multiple: true}},
		{2, &frames.BasicReturn{ReplyCode: 312, ReplyText: "NO_ROUTE"}},
		{2, &frames.BasicAck{DeliveryTag: 3}},
		{0, &frames.ConnectionUnblocked{}},
		{0, &frames.ConnectionBlocked{Reason: "again"}},
		{2, &frames.ChannelClose{ReplyCode: 404, ReplyText: "NOT_FOUND"}},
		{0, &frames.ConnectionClose{ReplyCode: 320, ReplyText: "CONNECTION_FORCED"}},
	} {
		out = frames.AppendMethod(out, m.channel, m.method)
	}
	if _, err := server.Write(out); err != nil {
		t.Fatal(err)
	}
	<-pc.read
	m := r.m
	got := []int64{m.confirmed.Load(), m.nacked.Load(), m.returned.Load(), m.blocked.Load(), m.blockedNow.Load(), m.channelCloses.Load(), m.connCloses.Load(), pc.unconfirmed()}
	if want := []int64{3, 3, 1, 2, 0, 1, 1, 1 + 6}; !slices.Equal(got, want) {
		t.Errorf("confirmed, nacked, returned, blocked, blocked now, channel closes, connection closes, unconfirmed: %v, want %v", got, want)
	}
	if want := []string{"the broker closed the channel: 404 NOT_FOUND", "the broker closed the connection: 320 CONNECTION_FORCED"}; !slices.Equal(r.errs, want) {
		t.Errorf("errors %q, want %q", r.errs, want)
	}
	if !pc.publishers[0].ended.Load() || !pc.publishers[1].ended.Load() {
		t.Error("publishers go on without a connection")
	}
	server.Close()
}

// TestFillEndsWithWhatComesLast ends the wait for the confirms of a backlog.
func TestFillEndsWithWhatComesLast(t *testing.T) {
	for _, tt := range []struct {
		name        string
		last        []byte // from the broker; it hangs up without
		unconfirmed int64
	}{
		{"ack", frames.AppendMethod(nil, 1, &frames.BasicAck{DeliveryTag: 6, Multiple: true}), 0},
		{"nack", frames.AppendMethod(nil, 1, &frames.BasicNack{DeliveryTag: 6, Multiple: true}), 0},
		{"end of the channel", frames.AppendMethod(nil, 1, &frames.ChannelClose{ReplyCode: 404, ReplyText: "NOT_FOUND"}), 6},
		{"end of the connection", frames.AppendMethod(nil, 0, &frames.ConnectionClose{ReplyCode: 320, ReplyText: "CONNECTION_FORCED"}), 6},
		{"end of the socket", nil, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRun(&Broker{}, scenario(t, "confirm: 10", "timeout: 20s"), Options{})
			client, server := net.Pipe()
			pc := &pubConn{r: r, c: &conn{sock: client, in: make([]byte, 64), stopBeats: func() {}}, wake: make(chan struct{}, 1), read: make(chan struct{})}
			p := &publisher{r: r, channel: 1, confirms: newConfirms(10)}
			p.confirms.add(6, r.m.clock.now())
			p.ended.Store(true)
			pc.publishers, r.pubs = []*publisher{p}, []*pubConn{pc}
			go pc.readLoop()
			go func() { _, _ = io.Copy(io.Discard, server) }() // ends with the pipe
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				_, _ = server.Write(tt.last)
				if tt.last == nil {
					server.Close()
				}
			}()
			began := time.Now()
			r.awaitConfirms(t.Context())
			if took := time.Since(began); took > 10*time.Second || r.unconfirmed() != tt.unconfirmed {
				t.Errorf("%d unconfirmed after %v, want %d", r.unconfirmed(), took, tt.unconfirmed)
			}
			<-sent
			server.Close()
			<-pc.read
		})
	}
}

// TestRepeatedDeliveriesDoNotCount feeds a consumer's connection a message twice.
func TestRepeatedDeliveriesDoNotCount(t *testing.T) {
	for publishers, want := range map[int][]int64{1: {1, 1, 20, 1}, 0: {2, 0, 40, 2}} {
		r := newRun(&Broker{}, scenario(t, "auto-ack: true", "size: 20", fmt.Sprint("publishers: ", publishers)), Options{})
		client, server := net.Pipe()
		s := r.newSubConn(&conn{sock: client, in: make([]byte, 64), stopBeats: func() {}}, 1)
		go s.readLoop()
		body := make([]byte, 20)
		binary.BigEndian.PutUint32(body, stampMark)
		binary.BigEndian.PutUint64(body[4:], uint64(r.m.clock.now()))
		var out []byte
		for _, again := range []bool{false, true} {
			out = frames.AppendMethod(out, 1, &frames.BasicDeliver{ConsumerTag: consumerTag, DeliveryTag: 1, Redelivered: again})
			out = frames.AppendContentHeader(out, 1, 20, (&frames.Properties{}).Append(nil))
			out = frames.AppendBody(out, 1, body, frameMax)
		}
		if _, err := server.Write(frames.AppendMethod(out, 0, &frames.ConnectionCloseOk{})); err != nil {
			t.Fatal(err)
		}
		<-s.read
		server.Close()
		latencies := r.m.latencies[latencyDelivery].interval.TotalCount()
		if got := []int64{r.m.consumed.Load(), r.m.repeated.Load(), r.m.consumedBytes.Load(), latencies}; !slices.Equal(got, want) {
			t.Errorf("%d publishers: consumed, repeated, bytes, latencies are %v, want %v", publishers, got, want)
		}
	}
}

// TestLatencyEndsWithTheWholeMessage feeds a consumer's connection a body whose
// second frame comes later than the first, and an empty one behind it.
func TestLatencyEndsWithTheWholeMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(&Broker{}, scenario(t, "auto-ack: true", "size: 40"), Options{})
		client, server := net.Pipe()
		s := r.newSubConn(&conn{sock: client, in: make([]byte, 64), stopBeats: func() {}}, 1)
		go s.readLoop()
		body := make([]byte, 40)
		binary.BigEndian.PutUint32(body, stampMark)
		binary.BigEndian.PutUint64(body[4:], uint64(r.m.clock.now()))
		deliver := func(size int) []byte {
			out := frames.AppendMethod(nil, 1, &frames.BasicDeliver{ConsumerTag: consumerTag, DeliveryTag: 1})
			return frames.AppendContentHeader(out, 1, uint64(size), (&frames.Properties{}).Append(nil))
		}
		last := append(frames.AppendBody(nil, 1, body[20:], frameMax), deliver(0)...)
		for _, out := range [][]byte{frames.AppendBody(deliver(40), 1, body[:20], frameMax), last, frames.AppendMethod(nil, 0, &frames.ConnectionCloseOk{})} {
			if _, err := server.Write(out); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		<-s.read
		server.Close()
		p := percentilesOf(r.m.latencies[latencyDelivery].interval)
		if p == nil || p.Count != 1 || p.P50 < 100_000 || p.P50 > 101_000 {
			t.Errorf("latencies %+v, want one of 100 ms", p)
		}
	})
}

// TestTLS runs over TLS, with a certificate that is trusted, and one that is not.
func TestTLS(t *testing.T) {
	plain := startBroker(t)
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	t.Cleanup(certificate.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate().Raw}), 0o644); err != nil {
		t.Fatal(err)
	}
	front := tlsFront(t, certificate.TLS.Certificates[0], plain.Address)
	for _, query := range []string{"cacertfile=" + ca, "verify=verify_none", "cacertfile=" + ca + "&server_name_indication=example.com"} {
		r := mustRun(t, target(t, "amqps://"+front+"?"+query), scenario(t, "messages: 500", "confirm: 50"))
		if got, want := countsOf(r), (counts{published: 500, confirmed: 500, consumed: 500}); got != want {
			t.Errorf("%s: got %+v, want %+v", query, got, want)
		}
	}
	_, err := Run(t.Context(), target(t, "amqps://"+front), NewScenario(), Options{})
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown certificate: %v", err)
	}
}

// TestConnectingIsNotMeasured looks when measuring begins.
func TestConnectingIsNotMeasured(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	clock := newClock()
	var connected atomic.Int64 // when the last connection was accepted
	b := target(t, "amqp://"+front(t, l, startBroker(t).Address, func() { connected.Store(clock.now()) }))
	r := newRun(b, scenario(t, "messages: 10", "queues: 5", "consumers: 5"), Options{})
	if err := r.onTopology(t.Context(), r.flow); err != nil {
		t.Fatal(err)
	}
	if began := r.m.from.at; began < connected.Load() || r.result.Consumed != 10 {
		t.Errorf("measuring began %v before the last consumer connected, %d consumed", time.Duration(connected.Load()-began), r.result.Consumed)
	}
}

// tlsFront takes TLS connections and hands them on to a plain address.
func tlsFront(t *testing.T, certificate tls.Certificate, to string) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		t.Fatal(err)
	}
	return front(t, l, to, func() {})
}

// front hands connections on to an address and calls accepted before each.
func front(t *testing.T, l net.Listener, to string, accepted func()) string {
	t.Helper()
	t.Cleanup(func() { l.Close() })
	go func() { // ends with the listener
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			accepted()
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				return
			}
			go forward(in, out)
			go forward(out, in)
		}
	}()
	return l.Addr().String()
}

func forward(from, to net.Conn) {
	_, _ = io.Copy(to, from) // either side may end
	to.Close()
	from.Close()
}

// interrupted runs a scenario until a sample is as wanted.
func interrupted(t *testing.T, wanted func(Sample) bool, lines ...string) *Result {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	sc := scenario(t, append([]string{"duration: 1h", "warmup: 0s"}, lines...)...)
	r, err := Run(ctx, startBroker(t), sc, Options{Interval: 20 * time.Millisecond, Progress: func(s Sample) {
		if wanted(s) {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What is under way then is not lost.
func TestInterruptedRunMissesNothing(t *testing.T) {
	r := interrupted(t, func(s Sample) bool { return s.Waiting > 100 }, "consumer-latency: 20ms", "prefetch: 2", "rate: 10k")
	if r.Missing != 0 || len(r.Notes) != 1 || !strings.HasSuffix(r.Notes[0], "deliveries were still to come when the run was interrupted, and were not waited for") {
		t.Errorf("%d missing, notes %q", r.Missing, r.Notes)
	}
}

func TestInterruptedRunSaysWhatItMeasured(t *testing.T) {
	r := interrupted(t, func(s Sample) bool { return s.Publish > 0 }, "confirm: 100")
	if !r.Interrupted || r.Published == 0 || r.PublishRate == 0 || len(r.Failures) > 0 {
		t.Errorf("got %+v", r)
	}
}

func TestHeartbeats(t *testing.T) {
	b := startBroker(t)
	mustRun(t, b, scenario(t, "messages: 10", "heartbeat: 1s"))
	c, err := dial(t.Context(), b, time.Second, churnBuffer)
	if err != nil {
		t.Fatal(err)
	}
	c.stopBeats()
	beating := false
	client, server := net.Pipe()
	beats := &conn{sock: client}
	beats.startBeats(time.Millisecond)
	var one [8]byte
	if _, err := io.ReadFull(server, one[:]); err == nil {
		beating = string(one[:]) == string(frames.AppendHeartbeat(nil))
	}
	server.Close()
	beats.stopBeats()
	if !beating {
		t.Errorf("got % x instead of a heartbeat", one)
	}
	if err := c.goodbye(); err != nil {
		t.Error(err)
	}
}

func TestAddressOfAClosedConnectionError(t *testing.T) {
	b := startBroker(t)
	wrong := *b
	wrong.VHost = "nowhere"
	_, err := Run(t.Context(), &wrong, NewScenario(), Options{})
	if err == nil || !strings.Contains(err.Error(), "virtual host nowhere: the broker closed the connection: 530 NOT_ALLOWED - vhost nowhere not found") {
		t.Errorf("got %v", err)
	}
}
