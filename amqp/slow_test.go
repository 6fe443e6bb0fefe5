package amqp

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
)

// Who sends one byte at a time has no more time than others: nothing it does
// moves the end of the handshake.
func TestSlowHandshakesEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		wrap func(net.Conn) net.Conn
		text string
		want time.Duration
	}{
		"AMQP": {func(c net.Conn) net.Conn { return c }, frames.ProtocolHeader + "\x01\x00\x00\x00\x00\x10\x00" + strings.Repeat("\x00", 4096), 10 * time.Second},
		"TLS": {func(c net.Conn) net.Conn { return tls.Server(c, &tls.Config{MinVersion: tls.VersionTLS12}) },
			"\x16\x03\x01\x10\x00\x01\x00\x0f\xfc\x03\x03" + strings.Repeat("\x00", 4096), 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestServer(t, zap.NewNop())
				client, server := net.Pipe()
				defer client.Close()
				began := time.Now()
				go s.serveConn(context.Background(), tt.wrap(server)) // ends when it closes the connection
				go io.Copy(io.Discard, client)
				for i := range tt.text {
					if _, err := client.Write([]byte{tt.text[i]}); err != nil {
						break
					}
					time.Sleep(200 * time.Millisecond)
				}
				if took := time.Since(began); took < tt.want || took > tt.want+lingerDelay+time.Second {
					t.Errorf("closed after %s, want %s and at most %s to say so", took, tt.want, lingerDelay)
				}
			})
		})
	}
}
