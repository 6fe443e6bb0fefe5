package amqp

import (
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leveretmq/leveret/frames"
)

// FuzzConnection sends whatever bytes after a good handshake: the connection
// may end, but never by a panic, and the server serves the next one.
func FuzzConnection(f *testing.F) {
	m := func(channel uint16, m frames.Method) []byte { return frames.AppendMethod(nil, channel, m) }
	join := func(parts ...[]byte) (b []byte) {
		for _, p := range parts {
			b = append(b, p...)
		}
		return b
	}
	f.Add(join(m(1, &frames.QueueDeclare{Queue: "q"}), appendPublish(nil, 1, "q", []byte{0, 0}, []byte("body")), m(1, &frames.BasicGet{Queue: "q"}),
		m(1, &frames.BasicAck{DeliveryTag: 1})))
	f.Add(join(m(1, &frames.QueueDeclare{}), m(1, &frames.BasicConsume{ConsumerTag: "c"}), appendPublish(nil, 1, "q", []byte{0, 0}, nil),
		m(1, &frames.BasicRecover{Requeue: true}), m(1, &frames.BasicCancel{ConsumerTag: "c"}), m(1, &frames.ChannelClose{})))
	f.Add(join(m(1, &frames.TxSelect{}), appendPublish(nil, 1, "q", []byte{0x10, 0, 2}, []byte("x")), m(1, &frames.TxCommit{}), m(1, &frames.TxRollback{})))
	f.Add(join(m(1, &frames.ConfirmSelect{}), m(1, &frames.ExchangeDeclare{Exchange: "x", Type: "headers"}),
		m(1, &frames.QueueBind{Queue: "q", Exchange: "x", Arguments: frames.Table{{Name: "x-match", Value: "any"}}}), m(0, &frames.ConnectionClose{})))
	f.Add([]byte{1, 0, 1, 0xff, 0xff, 0xff, 0xff})
	core, logs := observer.New(zapcore.ErrorLevel)
	s := newTestServer(f, zap.New(core))
	f.Fuzz(func(t *testing.T, data []byte) {
		client, server := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.serveConn(t.Context(), server)
		}()
		c := &rawClient{t: t, sock: client}
		c.login()
		go io.Copy(io.Discard, client) // ends when the pipe is closed
		client.SetWriteDeadline(time.Now().Add(5 * time.Second))
		client.Write(data) // the connection may have ended before all of it was taken
		client.Close()
		<-done
		for _, e := range logs.TakeAll() {
			t.Errorf("%s: %v", e.Message, e.ContextMap())
		}
	})
}
